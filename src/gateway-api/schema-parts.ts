import { type Static, type TSchema, Type } from 'typebox';
import type { JsonObject } from '../lib/json.ts';

/** Limit of a message's text in characters; NATS has its own limit in bytes. */
export const TEXT_CHARACTERS = 100_000;

export const AgentName = Type.String({
  pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
  maxLength: 63,
  description: 'Name of an Agent.',
});

export const DeliveryToken = Type.String({
  minLength: 1,
  maxLength: 4_096,
  description:
    'The delivery token, as received with the delivery: opaque to the pod, signed, with every member that the gateway copies into actions of this delivery.',
});

export const DigestText = Type.String({ pattern: '^sha256:[0-9a-f]{64}$', description: 'Digest of a tool.' });

/** RFC 3339. */
export const Timestamp = Type.String({ description: 'RFC 3339.' });

export const AnyObject = Type.Unsafe<JsonObject>({ type: 'object' });

/** The names of all members, over all kinds of a union. */
type MembersOf<T> = T extends unknown ? keyof T : never;
type Mutual<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
type Describes<S extends TSchema, T> =
  Mutual<Static<S>, T> extends true ? (Mutual<MembersOf<Static<S>>, MembersOf<T>> extends true ? S : never) : never;

/**
 * For a shape whose type belongs to a port below the API, such as `Envelope`: returns the schema as it is, and does not compile unless
 * the schema and the type have the same members. Limits (lengths, patterns) of the schema are not part of the comparison: the gateway is
 * stricter than the port.
 */
export function describes<T>(): <S extends TSchema>(schema: S & Describes<S, T>) => S {
  return (schema) => schema;
}

export const AnswerSignature = Type.String({
  pattern: '^a1\\.[A-Za-z0-9_-]{43}$',
  description: 'The signature of an answer that a gateway carried, for the recording of the tool that got it.',
});
