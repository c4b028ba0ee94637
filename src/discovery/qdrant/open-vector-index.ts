import { readFile } from 'node:fs/promises';
import type { Clock } from '../../lib/clock.ts';
import type { DiscoverySettings } from '../../models/named-models.ts';
import { MemoryVectorIndex } from '../vector/memory-index.ts';
import type { VectorIndex } from '../vector/port.ts';
import { QdrantVectorIndex } from './qdrant-index.ts';

/** The index of the settings. A file with a key is read for each new client, so a rotated key is used after a failure. */
export function openVectorIndex({ embedder: model, qdrant }: DiscoverySettings, clock: Clock): VectorIndex {
  if (qdrant === undefined) return new MemoryVectorIndex();
  const { url, keyFile, prefix } = qdrant;
  const key = async (): Promise<string | undefined> =>
    keyFile === undefined ? undefined : (await readFile(keyFile, 'utf8')).trim();
  return new QdrantVectorIndex({ url, key, prefix, model, clock });
}
