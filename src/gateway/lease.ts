import { createHmac, timingSafeEqual } from 'node:crypto';
import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, member, textAt } from '../lib/json.ts';
import type { DeliveryCoordinates } from '../nats/delivery.ts';

/** What a delivery lease holds: what the gateway copies into everything that is done under it. Signed, never said by the pod. */
export interface LeaseClaims {
  agentUid: string;
  /** Name of the agent. */
  agent: string;
  namespace: string;
  podUid: string;
  /** Id of the message. */
  message: string;
  session: string;
  root: string;
  depth: number;
  /** RFC 3339: after it the chain of messages is worth nothing. */
  deadline: string;
  /** RFC 3339: when the message was accepted. Leases of older gateways lack this and the next. */
  time?: string;
  /** W3C Trace Context of the delivery. */
  traceparent?: string;
  /** How the delivery is settled at the bus. */
  at: Pick<DeliveryCoordinates, 'streamSequence' | 'consumerSequence' | 'deliveries'>;
}

/** A lease as the bus knows the delivery it is for. */
export function coordinatesOf({ agentUid, message, at }: LeaseClaims): DeliveryCoordinates {
  return { agentUid, message, ...at };
}

/** Signs leases and reads them. Any replica with the same keys reads what another signed. */
export interface Leases {
  sign(claims: LeaseClaims): string;
  /** Throws TEMPER_LEASE_INVALID for a text no gateway of this installation signed. Says nothing about the binding: see `leaseOf`. */
  read(lease: string): LeaseClaims;
}

export const LONGEST_LEASE = 4_096;
const SHORTEST_KEY = 32;
/** Names the form and what the signature is for, so that the key's other uses and later forms cannot be confused with it. */
const FORM = 'l1';
const SHAPE = /^l1\.([A-Za-z0-9_-]{1,4000})\.([A-Za-z0-9_-]{43})$/;

/**
 * `keys`: read at every use; the first signs, all are accepted, so that a key can be replaced while leases of the old one
 * are still held. Throws TEMPER_CONFIGURATION_INVALID at once for no key or one shorter than 32 bytes.
 */
export function createLeases(keys: () => readonly Uint8Array[]): Leases {
  const accepted = (): readonly Uint8Array[] => {
    const found = keys();
    if (found.length === 0 || found.some((key) => key.length < SHORTEST_KEY)) {
      throw new TemperError('TEMPER_CONFIGURATION_INVALID', `a lease key has at least ${SHORTEST_KEY} bytes`);
    }
    return found;
  };
  accepted();
  return {
    sign(claims) {
      const [key] = accepted();
      const content = Buffer.from(JSON.stringify(claims)).toString('base64url');
      return `${FORM}.${content}.${signature(content, key ?? new Uint8Array()).toString('base64url')}`;
    },
    read(lease) {
      const [, content = '', signed = ''] = (lease.length > LONGEST_LEASE ? null : SHAPE.exec(lease)) ?? [];
      if (content === '') throw invalidLease();
      const given = Buffer.from(signed, 'base64url');
      // The last character of the text has bits nobody signed: only the one text that we write is taken.
      const genuine = accepted().some((key) => timingSafeEqual(signature(content, key), given));
      if (!genuine || given.toString('base64url') !== signed) throw invalidLease();
      return claimsOf(JSON.parse(Buffer.from(content, 'base64url').toString('utf8')) as Json);
    },
  };
}

function signature(content: string, key: Uint8Array): Buffer {
  return createHmac('sha256', key).update(`temper-lease ${FORM}.${content}`).digest();
}

function invalidLease(): TemperError {
  return new TemperError('TEMPER_LEASE_INVALID', 'no gateway of this installation gave this lease');
}

/** What an older or newer gateway signed may lack a member; half a lease is none. */
function claimsOf(value: Json): LeaseClaims {
  const texts = ['agentUid', 'agent', 'namespace', 'podUid', 'message', 'session', 'root', 'deadline'] as const;
  const at = member(value, 'at');
  const numbers = ['streamSequence', 'consumerSequence', 'deliveries'].map((name) => member(at, name));
  const optional = ['time', 'traceparent'].map((name) => member(value, name));
  const whole =
    isJsonObject(value) &&
    optional.every((text) => text === undefined || typeof text === 'string') &&
    texts.every((name) => textAt(value, [name]) !== '') &&
    [...numbers, value['depth']].every((number) => Number.isSafeInteger(number)) &&
    Number.isFinite(Date.parse(textAt(value, ['deadline'])));
  if (!whole) throw invalidLease();
  return value as JsonObject as unknown as LeaseClaims;
}
