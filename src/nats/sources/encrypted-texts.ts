import { isTemperError } from '../../lib/errors.ts';
import { type Json, parseJsonBytes } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject } from '../jetstream/names.ts';
import { publish } from '../jetstream/publish.ts';
import { lastMessage, messageCounts, purge } from '../jetstream/stream-reader.ts';
import type { AgentQuota } from '../residents/storage-quota.ts';
import { keyIdOf, type SourceCipher } from './source-cipher.ts';

/**
 * The texts of one bucket, encrypted. The first token of a key is the UID of an agent. Methods throw TEMPER_BUS_* and
 * TEMPER_SOURCE_UNAVAILABLE.
 */
export interface EncryptedTexts {
  /** Idempotent. Throws TEMPER_STORAGE_LIMIT_EXCEEDED. */
  put(key: string, text: string): Promise<void>;
  /** Undefined when it is not stored, and when it cannot be decrypted. */
  get(key: string): Promise<string | undefined>;
  /** The keys of everything that is stored. Reads no text. */
  keys(): Promise<string[]>;
  /** `key` may be a filter. Idempotent. */
  remove(key: string): Promise<void>;
  /**
   * Encrypts the text with the current encryption key, unless it has that one. Returns the id of the encryption key that it has
   * afterwards; undefined when nothing is stored.
   */
  renew(key: string): Promise<string | undefined>;
}

const STREAM = bucketStream(BUCKETS.sources);
const PREFIX = bucketSubject(BUCKETS.sources, '');

export function createEncryptedTexts(
  connection: JetStreamConnection,
  cipher: SourceCipher,
  quotaOf: (agentUid: string) => AgentQuota | undefined = () => undefined,
): EncryptedTexts {
  const decrypted = (key: string, value: Json): string | undefined => {
    try {
      return cipher.decrypt(key, value).toString('utf8');
    } catch (error) {
      if (isTemperError(error, 'TEMPER_STATE_CORRUPT')) return undefined;
      throw error;
    }
  };
  const read = async (key: string) => {
    const found = await lastMessage(connection, STREAM, `${PREFIX}${key}`);
    const value = found === undefined ? undefined : parseJsonBytes(found.data);
    return { value, revision: found?.seq ?? 0, text: value === undefined ? undefined : decrypted(key, value) };
  };
  /** False: another process wrote the key meanwhile, the same text. */
  const write = async (key: string, text: string, revision: number): Promise<boolean> => {
    const value = cipher.encrypt(key, Buffer.from(text));
    return (await publish(connection, `${PREFIX}${key}`, value, { expectedLastSequence: revision })) !== undefined;
  };
  return {
    async put(key, text) {
      const { text: before, revision } = await read(key);
      if (before === text) return;
      const quota = quotaOf(agentOf(key));
      const bytes = Buffer.byteLength(JSON.stringify(cipher.encrypt(key, Buffer.from(text))));
      await quota?.reserve('sources', bytes);
      let isStored = false;
      try {
        isStored = await write(key, text, revision);
      } finally {
        if (!isStored) quota?.release('sources', bytes);
      }
    },
    get: async (key) => (await read(key)).text,
    async keys() {
      const subjects = Object.keys(await messageCounts(connection, STREAM, `${PREFIX}>`));
      return subjects.map((subject) => subject.slice(PREFIX.length));
    },
    async remove(key) {
      await purge(connection, STREAM, `${PREFIX}${key}`);
      await quotaOf(agentOf(key))?.recount('sources');
    },
    async renew(key) {
      const { value, text, revision } = await read(key);
      if (value === undefined || text === undefined || cipher.isCurrent(value))
        return value === undefined ? undefined : keyIdOf(value);
      await write(key, text, revision);
      const after = (await read(key)).value;
      return after === undefined ? undefined : keyIdOf(after);
    },
  };
}

function agentOf(key: string): string {
  return key.split('.')[0] ?? '';
}
