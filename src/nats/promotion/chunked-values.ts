import { sha256 } from '../../lib/canonical.ts';
import { isJsonObject } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { createDocumentStore } from '../jetstream/document-store.ts';
import { type BucketName, bucketStream, bucketSubject } from '../jetstream/names.ts';
import { publish } from '../jetstream/publish.ts';
import { lastMessage, purge } from '../jetstream/stream-reader.ts';

/** Below the limit of one message. */
const PART_BYTES = 190 * 1_024;

/**
 * Values of a bucket that may be larger than one message: parts, and a head that is written last, so that a value is complete when its
 * head exists. The head names the number of parts and the digest of the whole. The keys of parts begin with the key of the value, so
 * that the accounting of bytes and the deletion of an agent's data cover them; the object store of JetStream stores parts under random
 * names.
 */
export interface ChunkedValues {
  /** False when the key has a value; the existing one stays. */
  put(key: string, value: Uint8Array): Promise<boolean>;
  /** Undefined when there is no complete value, or when it differs from its digest. */
  get(key: string): Promise<Buffer | undefined>;
  has(key: string): Promise<boolean>;
  remove(key: string): Promise<void>;
}

export function createChunkedValues(connection: JetStreamConnection, bucket: BucketName): ChunkedValues {
  const documents = createDocumentStore(connection, bucket);
  const stream = bucketStream(bucket);
  const headOf = async (key: string) => {
    const head = (await documents.get(key))?.value;
    if (!isJsonObject(head) || typeof head.parts !== 'number' || typeof head.digest !== 'string') return undefined;
    return { parts: head.parts, digest: head.digest };
  };
  return {
    async put(key, value) {
      if ((await headOf(key)) !== undefined) return false;
      const digest = sha256(value);
      const parts = Math.ceil(value.byteLength / PART_BYTES);
      for (let part = 0; part < parts; part += 1) {
        const bytes = value.subarray(part * PART_BYTES, (part + 1) * PART_BYTES);
        await publish(connection, bucketSubject(bucket, partKey(key, digest, part)), bytes);
      }
      return (await documents.write(key, { parts, digest, bytes: value.byteLength }, 0)) !== undefined;
    },
    async get(key) {
      const head = await headOf(key);
      if (head === undefined) return undefined;
      const parts: Uint8Array[] = [];
      for (let part = 0; part < head.parts; part += 1) {
        const found = await lastMessage(connection, stream, bucketSubject(bucket, partKey(key, head.digest, part)));
        if (found === undefined) return undefined;
        parts.push(found.data);
      }
      const value = Buffer.concat(parts);
      return sha256(value) === head.digest ? value : undefined;
    },
    has: async (key) => (await headOf(key)) !== undefined,
    async remove(key) {
      await purge(connection, stream, bucketSubject(bucket, key));
      await purge(connection, stream, bucketSubject(bucket, `${key}.>`));
    },
  };
}

/** With the digest, so that two writers of different values do not mix their parts. */
function partKey(key: string, digest: string, part: number): string {
  return `${key}.${digest.slice('sha256:'.length, 'sha256:'.length + 16)}.${part}`;
}
