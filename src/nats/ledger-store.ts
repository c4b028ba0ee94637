import type { KV } from '@nats-io/kv';
import { TemperError } from '../lib/errors.ts';
import { type Json, parseUntrustedJson } from '../lib/json.ts';

export interface StoredDocument {
  value: Json;
  revision: number;
}

/** Documents that are written only over the revision one has read. What cannot be reached throws. */
export interface LedgerStore {
  get(key: string): Promise<StoredDocument | undefined>;
  /** The new revision; undefined when somebody else wrote first. `revision` 0: only when there is none. */
  write(key: string, value: Json, revision: number): Promise<number | undefined>;
}

/** The server's codes for a write over another revision than the last. */
const WRONG_REVISION: readonly unknown[] = [10_071, 10_164];
const WRITE_MILLISECONDS = 2_000;

/** The bucket `temper-ledger`, bound without `allow_direct`: a replica that lags must not answer. */
export function kvLedgerStore(bucket: KV): LedgerStore {
  return {
    async get(key) {
      const entry = await bucket.get(key);
      if (entry === null || entry.operation !== 'PUT') return undefined;
      return { value: parsed(key, entry.string()), revision: entry.revision };
    },
    async write(key, value, revision) {
      const text = JSON.stringify(value);
      try {
        if (revision === 0) return await bucket.create(key, text);
        return await bucket.update(key, text, revision, WRITE_MILLISECONDS);
      } catch (error) {
        if (isConflict(error)) return undefined;
        throw error;
      }
    },
  };
}

function parsed(key: string, text: string): Json {
  try {
    return parseUntrustedJson(text);
  } catch (error) {
    throw new TemperError('TEMPER_STATE_CORRUPT', `ledger document "${key}" is not JSON; delete it to begin anew`, {
      cause: error,
    });
  }
}

function isConflict(error: unknown): boolean {
  return error instanceof Error && 'code' in error && WRONG_REVISION.includes(error.code);
}
