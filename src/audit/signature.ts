import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { isJsonObject, type Json, member } from '../lib/json.ts';
import type { Checkpoint } from './port.ts';

/** The key of a user, which signs the chains that this user's processes write. */
export interface AuditKey {
  /** Names the key without revealing it. */
  readonly id: string;
  /** HMAC-SHA256 of the text, as hex. */
  sign(text: string): string;
  /** 32 bytes for another purpose; different bytes for each. */
  derive(purpose: string): Buffer;
}

/** The signature of a record or of the checkpoint: which key signed it, and the HMAC over its number and digest. */
export interface Signature {
  key: string;
  hmac: string;
}

/** The checkpoint signs the whole chain up to its record; a record signs itself, so that the records after the checkpoint are signed too. */
type SignedPart = 'checkpoint' | 'record';

/** `absent`: not signed. `other-key`: signed with another key. `wrong`: it names this key, but this key did not sign it. */
export type SignatureState = 'valid' | 'absent' | 'other-key' | 'wrong';

export function createAuditKey(secret: Uint8Array): AuditKey {
  const sign = (text: string): string => createHmac('sha256', secret).update(text).digest('hex');
  const derive = (purpose: string): Buffer => Buffer.from(hkdfSync('sha256', secret, 'temper', purpose, 32));
  return { id: sign('temper key id').slice(0, 16), sign, derive };
}

export function signatureOf(part: SignedPart, checkpoint: Checkpoint, key: AuditKey): Signature {
  return { key: key.id, hmac: key.sign(signedText(part, checkpoint)) };
}

/** Checks the member `signature` of a stored record or checkpoint. */
export function signatureState(part: SignedPart, value: Json | undefined, key: AuditKey | undefined): SignatureState {
  const signature = member(value, 'signature');
  const seq = member(value, 'seq');
  const digest = member(value, 'digest');
  if (!isJsonObject(signature) || typeof signature['key'] !== 'string') return 'absent';
  if (key === undefined || signature['key'] !== key.id) return 'other-key';
  const { hmac } = signature;
  if (typeof seq !== 'number' || typeof digest !== 'string' || typeof hmac !== 'string') return 'wrong';
  return isEqual(hmac, signatureOf(part, { seq, digest }, key).hmac) ? 'valid' : 'wrong';
}

function signedText(part: SignedPart, { seq, digest }: Checkpoint): string {
  return `temper audit ${part} 1\n${seq}\n${digest}`;
}

function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
