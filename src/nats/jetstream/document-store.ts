import type { Json } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { type BucketName, bucketStream, bucketSubject } from './names.ts';
import { publish } from './publish.ts';
import { parseJsonBytes, lastMessage } from './stream-reader.ts';

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
