import { randomBytes } from 'node:crypto';

/** The source of identifiers. Tests replace it with a predictable one. */
export interface IdGenerator {
  /** Sortable by time, unguessable, lower-case letters and digits: `<prefix>-<26 characters>`. */
  next(prefix: string): string;
}

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** ULID in lower-case Crockford base 32: 10 characters of milliseconds, 16 of randomness. */
export const ulids: IdGenerator = {
  next(prefix) {
    let milliseconds = Date.now();
    let time = '';
    for (let index = 0; index < 10; index += 1) {
      time = ALPHABET[milliseconds % 32] + time;
      milliseconds = Math.floor(milliseconds / 32);
    }
    let noise = '';
    for (const byte of randomBytes(16)) noise += ALPHABET[byte % 32];
    return `${prefix}-${time}${noise}`;
  },
};
