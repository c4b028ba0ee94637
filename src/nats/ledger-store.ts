import type { Json } from '../lib/json.ts';
import type { BusConnection } from './connection.ts';
import { type BucketName, bucketStream, bucketSubject } from './names.ts';
import { publish } from './publish.ts';
import { jsonOf, lastMessage } from './stored.ts';

interface StoredDocument {
  /** Undefined for what is no JSON. */
  value: Json | undefined;
  revision: number;
}

/** Documents that are written only over the revision one has read. What cannot be reached throws. */
export interface LedgerStore {
  get(key: string): Promise<StoredDocument | undefined>;
  /** The new revision; undefined when somebody else wrote first. `revision` 0: only when there is none. */
  write(key: string, value: Json, revision: number): Promise<number | undefined>;
}

/** The documents of a bucket, read from the server that decides about writes. */
export function documentsIn(connection: BusConnection, bucket: BucketName): LedgerStore {
  return {
    async get(key) {
      const found = await lastMessage(connection, bucketStream(bucket), bucketSubject(bucket, key));
      return found === undefined ? undefined : { value: jsonOf(found.data), revision: found.seq };
    },
    async write(key, value, revision) {
      return (await publish(connection, bucketSubject(bucket, key), value, { after: revision }))?.seq;
    },
  };
}
