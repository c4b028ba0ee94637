import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { type Json, type JsonObject, textAt } from '../../lib/json.ts';
import { decrypt, encrypt, unreadable } from '../../tempering/withheld/encryption.ts';
import { encryptingKey, type SourceKey } from './source-keys.ts';

/** Encrypts and decrypts with the keys of the release. What is moved to another place cannot be decrypted there. */
export interface SourceCipher {
  /** Throws TEMPER_SOURCE_UNAVAILABLE without a key. */
  encrypt(place: string, plain: Uint8Array): JsonObject;
  /** Throws TEMPER_STATE_CORRUPT for a value that was changed or whose key does not exist any more, and TEMPER_SOURCE_UNAVAILABLE without a key. */
  decrypt(place: string, value: Json): Buffer;
  /** Whether the key that encrypts now has encrypted the value. */
  isCurrent(value: Json): boolean;
}

/** The keys of this process, which change while it runs. */
export class SourceKeyring {
  keys: readonly SourceKey[] = [];
  /** Ids of the keys that encrypt something stored; undefined while that is unknown. */
  inUse: ReadonlySet<string> | undefined;
}

export function createSourceCipher(keyring: Readonly<SourceKeyring>, clock: Pick<Clock, 'now'>): SourceCipher {
  const current = (): SourceKey => {
    const key = encryptingKey(keyring.keys, clock.now());
    if (key !== undefined) return key;
    throw new TemperError('TEMPER_SOURCE_UNAVAILABLE', 'this process has no key of withheld sources yet; try again', {
      retry: 'backoff',
    });
  };
  return {
    encrypt(place, plain) {
      const { id, key } = current();
      return { key: id, ...encrypt(key, place, Buffer.from(plain)) };
    },
    decrypt(place, value) {
      current();
      const found = keyring.keys.find(({ id }) => id === keyIdOf(value));
      if (found === undefined) throw unreadable(place, 'its key does not exist any more');
      return decrypt(found.key, place, value);
    },
    isCurrent: (value) => keyIdOf(value) === current().id,
  };
}

/** The id of the key that encrypted a value. */
export function keyIdOf(value: Json): string {
  return textAt(value, ['key']);
}
