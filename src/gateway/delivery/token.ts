import { createHmac, timingSafeEqual } from 'node:crypto';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, member, textAt } from '../../lib/json.ts';
import type { DeliveryCoordinates } from '../../nats/inbox/inbox-deliveries.ts';

/** The claims of a delivery token. The gateway copies them into every action of the delivery; they are signed, never taken from the pod. */
export interface DeliveryTokenClaims {
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
  /** RFC 3339, deadline of the message chain. */
  deadline: string;
  /** RFC 3339: when the message was accepted. Tokens of older gateways lack this member and `traceparent`. */
  time?: string;
  /** W3C Trace Context of the delivery. */
  traceparent?: string;
  /** Of the message; see `Envelope`. */
  source?: string;
  asker?: string;
  ancestors?: readonly string[];
  /** The message is a call of a program of a user, and no task of the agent. */
  isCall?: true;
  /** In a token that a gateway made for one connection of a call that it executes. No pod has such a token. */
  connects?: BrokeredConnection;
  /** The delivery in NATS. Tokens of older gateways have further numbers. */
  at: Pick<DeliveryCoordinates, 'streamSequence' | 'deliveries'>;
}

/** The host that a gateway connects to for an agent, and what permits it: the policy of the agent, or a Connection of the platform. */
interface BrokeredConnection {
  host: string;
  port: number;
  by: 'Policy' | 'Connection';
}

/** The NATS coordinates of the delivery of a token. */
export function coordinatesOf({ agentUid, message, at }: DeliveryTokenClaims): DeliveryCoordinates {
  const { streamSequence, deliveries } = at;
  return { agentUid, message, streamSequence, deliveries };
}

/** Signs and verifies delivery tokens. Any replica with the same keys verifies tokens of another replica. */
export interface DeliveryTokens {
  /** Signs with the first key. Stores nothing: the claims are readable in the token. Throws TEMPER_CONFIGURATION_INVALID without a valid key. */
  sign(claims: DeliveryTokenClaims): string;
  /** Throws TEMPER_DELIVERY_TOKEN_INVALID for a token that no gateway of this installation signed. Does not check the binding: see `authorizeDelivery`. */
  verify(token: string): DeliveryTokenClaims;
}

export const MAX_DELIVERY_TOKEN_LENGTH = 4_096;
const MIN_KEY_BYTES = 32;
/** Format version. The signature covers it and the purpose, so that signatures of other purposes or formats cannot be reused. */
const VERSION = 'd1';
const PATTERN = /^d1\.([A-Za-z0-9_-]{1,4000})\.([A-Za-z0-9_-]{43})$/;

/**
 * `keys` is called at every use; the first key signs and all verify, so that a key can be rotated while tokens of the previous one are in
 * use. Throws TEMPER_CONFIGURATION_INVALID at once when there is no key or one is shorter than 32 bytes.
 */
export function createDeliveryTokens(keys: () => readonly Uint8Array[]): DeliveryTokens {
  const validKeys = (): readonly Uint8Array[] => {
    const current = keys();
    if (current.length === 0 || current.some((key) => key.length < MIN_KEY_BYTES)) {
      throw new TemperError(
        'TEMPER_CONFIGURATION_INVALID',
        `a key of delivery tokens needs at least ${MIN_KEY_BYTES} bytes`,
      );
    }
    return current;
  };
  validKeys();
  return {
    sign(claims) {
      const [key] = validKeys();
      const content = Buffer.from(JSON.stringify(claims)).toString('base64url');
      return `${VERSION}.${content}.${signature(content, key ?? new Uint8Array()).toString('base64url')}`;
    },
    verify(token) {
      const [, content = '', signed = ''] =
        (token.length > MAX_DELIVERY_TOKEN_LENGTH ? null : PATTERN.exec(token)) ?? [];
      if (content === '') throw invalidToken();
      const decoded = Buffer.from(signed, 'base64url');
      // The last base64url character has unused bits: only the canonical encoding is accepted.
      const genuine = validKeys().some((key) => timingSafeEqual(signature(content, key), decoded));
      if (!genuine || decoded.toString('base64url') !== signed) throw invalidToken();
      return claimsOf(JSON.parse(Buffer.from(content, 'base64url').toString('utf8')) as Json);
    },
  };
}

function signature(content: string, key: Uint8Array): Buffer {
  return createHmac('sha256', key).update(`temper-delivery-token ${VERSION}.${content}`).digest();
}

function invalidToken(): TemperError {
  return new TemperError('TEMPER_DELIVERY_TOKEN_INVALID', 'no gateway of this installation signed this delivery token');
}

/** Checks all required claims: an older or newer gateway may have signed a token without some of them. */
function claimsOf(value: Json): DeliveryTokenClaims {
  const texts = ['agentUid', 'agent', 'namespace', 'podUid', 'message', 'session', 'root', 'deadline'] as const;
  const at = member(value, 'at');
  const numbers = ['streamSequence', 'deliveries'].map((name) => member(at, name));
  const optional = ['time', 'traceparent', 'source', 'asker'].map((name) => member(value, name));
  const ancestors = member(value, 'ancestors') ?? [];
  const isComplete =
    isJsonObject(value) &&
    optional.every((text) => text === undefined || typeof text === 'string') &&
    isBrokeredConnection(value['connects']) &&
    Array.isArray(ancestors) &&
    ancestors.every((uid) => typeof uid === 'string') &&
    texts.every((name) => textAt(value, [name]) !== '') &&
    [...numbers, value['depth']].every((number) => Number.isSafeInteger(number)) &&
    Number.isFinite(Date.parse(textAt(value, ['deadline'])));
  if (!isComplete) throw invalidToken();
  return value as JsonObject as unknown as DeliveryTokenClaims;
}

function isBrokeredConnection(value: Json | undefined): boolean {
  if (value === undefined) return true;
  const by = member(value, 'by');
  const hasTarget = textAt(value, ['host']) !== '' && Number.isSafeInteger(member(value, 'port'));
  return hasTarget && (by === 'Policy' || by === 'Connection');
}
