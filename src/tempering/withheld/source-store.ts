import { randomBytes } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, textAt } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { decrypt, encrypt, KEY_BYTES, unreadable } from './encryption.ts';

/** Texts that are stored encrypted and nowhere else, each under a place: `<collection>/<name>`. */
export interface SourceStore {
  put(collection: string, name: string, text: string): Promise<void>;
  /** Undefined when nothing is stored there. Throws TEMPER_STATE_CORRUPT for a text that was changed or that another key encrypted. */
  get(collection: string, name: string): Promise<string | undefined>;
  delete(collection: string, name: string): Promise<void>;
}

export interface SourceStoreDeps {
  records: RecordStore;
  clock: Clock;
  /** Derives 32 bytes from the key of the user; different bytes for each purpose. */
  derive: (purpose: string) => Buffer;
}

/** The collection of the sources of tools, each under the digest of its tool. */
export const SOURCES = 'sources';
const KEYS = { collection: 'source-keys', name: 'keys' } as const;
/** A new key replaces an older one, and encrypts all sources again. */
const MAX_KEY_AGE_MS = 90 * 24 * 3_600_000;

interface DataKey {
  id: string;
  /** RFC 3339. */
  createdAt: string;
  key: Buffer;
}

/**
 * Opens the sources of a state folder. Each folder has keys of its own, encrypted with the key of its user, so a copy of the folder alone
 * reveals no source. Replaces a key that is 90 days old, and encrypts sources that an earlier release stored as plain text.
 */
export async function openSourceStore(deps: SourceStoreDeps): Promise<SourceStore> {
  const keys = await readKeys(deps);
  const newest = keys.at(-1);
  const isOld = newest !== undefined && deps.clock.now().getTime() - Date.parse(newest.createdAt) >= MAX_KEY_AGE_MS;
  const store = new EncryptedSources(deps, keys);
  if (isOld) await store.addKey();
  if (await store.encryptAgain(SOURCES)) await store.removeOldKeys();
  return store;
}

class EncryptedSources implements SourceStore {
  readonly #deps: SourceStoreDeps;
  readonly #records: RecordStore;
  /** Oldest first; the last one encrypts. */
  #keys: DataKey[];
  #firstKey: Promise<void> | undefined;

  constructor(deps: SourceStoreDeps, keys: DataKey[]) {
    this.#deps = deps;
    this.#records = deps.records;
    this.#keys = keys;
  }

  async put(collection: string, name: string, text: string): Promise<void> {
    if (this.#keys.length === 0) await (this.#firstKey ??= this.addKey());
    const key = this.#keys.at(-1);
    if (key === undefined) throw new TemperError('TEMPER_INTERNAL', 'the source store has no key');
    const value = { key: key.id, ...encrypt(key.key, `${collection}/${name}`, Buffer.from(text)) };
    await this.#records.put(collection, name, value);
  }

  /** The key is stored before anything is encrypted with it. */
  async addKey(): Promise<void> {
    const createdAt = this.#deps.clock.now().toISOString();
    const keys = [...this.#keys, { id: randomBytes(8).toString('hex'), createdAt, key: randomBytes(KEY_BYTES) }];
    await writeKeys(this.#deps, keys);
    this.#keys = keys;
  }

  async removeOldKeys(): Promise<void> {
    if (this.#keys.length < 2) return;
    const keys = this.#keys.slice(-1);
    await writeKeys(this.#deps, keys);
    this.#keys = keys;
  }

  async get(collection: string, name: string): Promise<string | undefined> {
    const stored = await this.#records.get(collection, name);
    if (stored === undefined) return undefined;
    const key = this.#keys.find(({ id }) => id === textAt(stored, ['key']));
    if (key === undefined) throw unreadable(`${collection}/${name}`, 'another key encrypted it');
    return decrypt(key.key, `${collection}/${name}`, stored).toString('utf8');
  }

  async delete(collection: string, name: string): Promise<void> {
    await this.#records.delete(collection, name);
  }

  /** True when every text that can be read has the newest key now. */
  async encryptAgain(collection: string): Promise<boolean> {
    const newest = this.#keys.at(-1)?.id;
    let isComplete = true;
    for (const { name, value } of await this.#records.list(collection)) {
      if (textAt(value, ['key']) === newest) continue;
      const text = isPlain(value) ? value.source : await this.get(collection, name).catch(() => undefined);
      if (text === undefined) isComplete = false;
      else await this.put(collection, name, text);
    }
    return isComplete;
  }
}

/** The form of releases that did not encrypt. */
function isPlain(value: Json): value is JsonObject & { source: string } {
  return isJsonObject(value) && typeof value['source'] === 'string' && value['key'] === undefined;
}

async function readKeys({ records, derive }: SourceStoreDeps): Promise<DataKey[]> {
  const stored = await records.get(KEYS.collection, KEYS.name);
  const listed = isJsonObject(stored) && Array.isArray(stored['keys']) ? stored['keys'] : [];
  const wrapping = derive('source keys');
  return listed.flatMap((value) => {
    const [id, createdAt] = [textAt(value, ['id']), textAt(value, ['createdAt'])];
    try {
      return [{ id, createdAt, key: decrypt(wrapping, `key ${id} ${createdAt}`, value) }];
    } catch {
      // Of another user, whose folder was adopted: its sources stay unreadable, and new ones get a new key.
      return [];
    }
  });
}

async function writeKeys({ records, derive }: SourceStoreDeps, keys: readonly DataKey[]): Promise<void> {
  const wrapping = derive('source keys');
  const wrapped = keys.map(({ id, createdAt, key }) => ({
    id,
    createdAt,
    ...encrypt(wrapping, `key ${id} ${createdAt}`, key),
  }));
  await records.put(KEYS.collection, KEYS.name, { keys: wrapped });
}
