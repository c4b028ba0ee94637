import { createHash } from 'node:crypto';
import { deflateSync } from 'node:zlib';
import type { GitObject, ObjectType } from '../objects/object-id.ts';

const VERSION = 2;
const TYPES: Readonly<Record<ObjectType, number>> = { commit: 1, tree: 2, blob: 3, tag: 4 };

/** A pack of whole objects, for a push. */
export function writePack(objects: readonly GitObject[]): Buffer {
  const header = Buffer.alloc(12);
  header.write('PACK');
  header.writeUInt32BE(VERSION, 4);
  header.writeUInt32BE(objects.length, 8);
  const entries = objects.flatMap(({ type, content }) => [
    entryHeader(TYPES[type], content.length),
    deflateSync(content),
  ]);
  const pack = Buffer.concat([header, ...entries]);
  return Buffer.concat([pack, createHash('sha1').update(pack).digest()]);
}

/** Three bits of type and four of size, then seven bits of size per byte. */
function entryHeader(type: number, size: number): Buffer {
  const bytes = [(type << 4) | (size & 15)];
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) {
    bytes.push(bytes.pop()! | 128, rest & 127);
  }
  return Buffer.from(bytes);
}
