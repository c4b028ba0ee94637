import { TemperError } from '../../lib/errors.ts';
import { type Json, parseJsonBytes } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { type BucketName, bucketStream, bucketSubject } from './names.ts';
import { publish } from './publish.ts';
import { lastMessage } from './stream-reader.ts';

interface StoredDocument {
  /** Undefined when the stored bytes are not JSON. */
  value: Json | undefined;
  revision: number;
}

/** JSON documents with optimistic concurrency. Methods throw TEMPER_BUS_* when the server is not reachable. */
export interface DocumentStore {
  get(key: string): Promise<StoredDocument | undefined>;
  /** Returns the new revision; undefined when another writer changed the document. `revision` 0: only if the key does not exist. */
  write(key: string, value: Json, revision: number): Promise<number | undefined>;
}

/** The documents of a bucket, read from the stream leader. */
export function createDocumentStore(connection: JetStreamConnection, bucket: BucketName): DocumentStore {
  return {
    async get(key) {
      const found = await lastMessage(connection, bucketStream(bucket), bucketSubject(bucket, key));
      return found === undefined ? undefined : { value: parseJsonBytes(found.data), revision: found.seq };
    },
    async write(key, value, revision) {
      return (await publish(connection, bucketSubject(bucket, key), value, { expectedLastSequence: revision }))?.seq;
    },
  };
}

/** Each conflict means that another write succeeded. */
const MAX_ATTEMPTS = 20;

export interface DocumentChange<T> {
  parse: (value: Json | undefined) => T | undefined;
  /** Pure; may be called several times. When it returns its argument, nothing is written. */
  change: (value: T) => T;
}

/** Changes a document by compare-and-swap and returns what is stored, and whether this call wrote it. Undefined without a valid document. */
export async function changeDocument<T>(
  documents: DocumentStore,
  key: string,
  { parse, change }: DocumentChange<T>,
): Promise<{ value: T; isWritten: boolean } | undefined> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const stored = await documents.get(key);
    const value = parse(stored?.value);
    if (stored === undefined || value === undefined) return undefined;
    const next = change(value);
    if (next === value) return { value, isWritten: false };
    if ((await documents.write(key, next as unknown as Json, stored.revision)) !== undefined)
      return { value: next, isWritten: true };
  }
  throw new TemperError('TEMPER_BUS_UNAVAILABLE', 'a record changed too often; try again', { retry: 'backoff' });
}
