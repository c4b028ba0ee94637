import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { TemperError } from '../../lib/errors.ts';
import { type Json, textAt } from '../../lib/json.ts';

const ALGORITHM = 'aes-256-gcm';
export const KEY_BYTES = 32;
/** Random. A key encrypts far fewer texts than the 2^32 for which random nonces of this size are safe. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** `context` is authenticated: a text that is moved to another place cannot be decrypted there. */
export function encrypt(key: Buffer, context: string, plain: Buffer): { nonce: string; data: string } {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(context));
  const data = Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  return { nonce: nonce.toString('base64'), data: data.toString('base64') };
}

/** Throws TEMPER_STATE_CORRUPT for a text that was changed, that belongs to another context, or that another key encrypted. */
export function decrypt(key: Buffer, context: string, stored: Json): Buffer {
  const nonce = Buffer.from(textAt(stored, ['nonce']), 'base64');
  const data = Buffer.from(textAt(stored, ['data']), 'base64');
  if (nonce.byteLength !== NONCE_BYTES || data.byteLength < TAG_BYTES) throw unreadable(context, 'it is damaged');
  const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(data.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(data.subarray(0, -TAG_BYTES)), decipher.final()]);
  } catch (error) {
    throw unreadable(context, 'it was changed', error);
  }
}

export function unreadable(place: string, why: string, cause?: unknown): TemperError {
  return new TemperError('TEMPER_STATE_CORRUPT', `${place} cannot be decrypted: ${why}`, { cause });
}
