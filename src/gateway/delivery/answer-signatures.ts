import { createHmac, timingSafeEqual } from 'node:crypto';
import { canonicalJson, sha256 } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import type { DeliveryTokenClaims } from './token.ts';

/** A call that a gateway carried for a message, as the recording of a composed tool has it. */
export interface CarriedCall {
  /** The built-in tool. */
  name: string;
  input: Json;
  /** Its result. */
  value: Json;
}

type Message = Pick<DeliveryTokenClaims, 'agentUid' | 'message'>;

/**
 * Signs the answers of calls that this installation carried. A pod reports the signatures with its recordings, so any replica knows which
 * recorded answers are observed, and none stores them. A signature is for one message of one agent.
 */
export interface AnswerSignatures {
  /** Undefined for a call that is not valid Unicode. */
  sign(message: Message, call: CarriedCall): string | undefined;
  /** Whether one of the signatures is of this call. */
  isSigned(message: Message, call: CarriedCall, signatures: ReadonlySet<string>): boolean;
}

/** Format version; the signed text begins with it and with the purpose. */
const VERSION = 'a1';

/** `keys` are those of delivery tokens: the first one signs, all verify. */
export function createAnswerSignatures(keys: () => readonly Uint8Array[]): AnswerSignatures {
  return {
    sign(message, call) {
      const [key] = keys();
      const text = signedText(message, call);
      return key === undefined || text === undefined ? undefined : signature(key, text);
    },
    isSigned(message, call, signatures) {
      const text = signatures.size === 0 ? undefined : signedText(message, call);
      if (text === undefined) return false;
      return keys().some((key) => hasSignature(signatures, signature(key, text)));
    },
  };
}

function signedText({ agentUid, message }: Message, { name, input, value }: CarriedCall): string | undefined {
  try {
    return `temper-answer ${VERSION}.${sha256(canonicalJson({ agentUid, message, name, input, value }))}`;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function signature(key: Uint8Array, text: string): string {
  return `${VERSION}.${createHmac('sha256', key).update(text).digest('base64url')}`;
}

function hasSignature(signatures: ReadonlySet<string>, expected: string): boolean {
  const wanted = Buffer.from(expected);
  for (const one of signatures) {
    const given = Buffer.from(one);
    if (given.byteLength === wanted.byteLength && timingSafeEqual(given, wanted)) return true;
  }
  return false;
}
