import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { inflateSync } from 'node:zlib';
import { gitFailure } from '../failure.ts';
import { type GitObject, objectId } from '../objects/object-id.ts';
import { applyDelta, deltaSize } from './delta.ts';

/** Commits and trees by their ids. */
export type PackObjects = ReadonlyMap<string, GitObject>;

export interface PackLimits {
  readonly objects: number;
  /** Of one object and of all, when they are not compressed. */
  readonly objectBytes: number;
  readonly totalBytes: number;
}

export const PACK_LIMITS: PackLimits = { objects: 100_000, objectBytes: 8 * 1_048_576, totalBytes: 64 * 1_048_576 };

const HEADER_BYTES = 12;
const CHECKSUM_BYTES = 20;
const ID_BYTES = 20;
const REF_DELTA = 7;
const KEPT: Readonly<Record<number, 'commit' | 'tree'>> = { 1: 'commit', 2: 'tree' };
/** Blobs and tags: this client has no use for their contents. */
const DROPPED: ReadonlySet<number> = new Set([3, 4]);
const TURN_OBJECTS = 200;
const MIN_CHUNK_BYTES = 64;

interface Delta {
  readonly base: string;
  readonly bytes: Buffer;
}

/** Counts what a pack costs before it is spent. */
class Budget {
  readonly limits: PackLimits;
  #bytes = 0;

  constructor(limits: PackLimits) {
    this.limits = limits;
  }

  spend(bytes: number): void {
    this.#bytes += bytes;
    if (bytes > this.limits.objectBytes || this.#bytes > this.limits.totalBytes) throw tooLarge();
  }
}

/**
 * The commits and trees of a pack. Every id is computed from the content, so a server cannot send one object in place of another. Bytes are
 * counted before they are inflated. Contents of files are dropped; deltas of them never find their base, and are dropped too.
 */
export async function readPack(pack: Buffer, limits: PackLimits = PACK_LIMITS): Promise<PackObjects> {
  const count = objectCount(pack, limits);
  const budget = new Budget(limits);
  const objects = new Map<string, GitObject>();
  const deltas: Delta[] = [];
  const end = pack.length - CHECKSUM_BYTES;
  let offset = HEADER_BYTES;
  for (let index = 0; index < count; index += 1) {
    if (index % TURN_OBJECTS === TURN_OBJECTS - 1) await setImmediate();
    const { type, size, start, base } = entryAt(pack, offset, end);
    budget.spend(size);
    const { bytes, consumed } = inflated(pack.subarray(start, end), size);
    const kept = KEPT[type];
    if (base !== undefined) deltas.push({ base, bytes });
    else if (kept !== undefined) objects.set(objectId({ type: kept, content: bytes }), { type: kept, content: bytes });
    offset = start + consumed;
  }
  if (offset !== end) throw malformed();
  await resolveDeltas(objects, deltas, budget);
  return objects;
}

function objectCount(pack: Buffer, limits: PackLimits): number {
  if (pack.length < HEADER_BYTES + CHECKSUM_BYTES || pack.toString('latin1', 0, 4) !== 'PACK') throw malformed();
  if (pack.readUInt32BE(4) !== 2) throw malformed();
  const checksum = createHash('sha1').update(pack.subarray(0, -CHECKSUM_BYTES)).digest();
  if (!checksum.equals(pack.subarray(-CHECKSUM_BYTES))) throw malformed();
  const count = pack.readUInt32BE(8);
  if (count > limits.objects) throw tooLarge();
  return count;
}

interface PackEntry {
  readonly type: number;
  /** Inflated. */
  readonly size: number;
  /** Of the compressed content. */
  readonly start: number;
  /** Of a delta. */
  readonly base: string | undefined;
}

function entryAt(pack: Buffer, offset: number, end: number): PackEntry {
  let position = offset;
  const next = (): number => {
    if (position >= end) throw malformed();
    return pack.readUInt8(position++);
  };
  const first = next();
  let size = first & 15;
  let last = first;
  for (let factor = 16; last >= 128; factor *= 128) {
    if (factor > 2 ** 32) throw malformed();
    last = next();
    size += (last & 127) * factor;
  }
  const type = (first >> 4) & 7;
  if (type !== REF_DELTA) {
    if (KEPT[type] === undefined && !DROPPED.has(type)) throw malformed();
    return { type, size, start: position, base: undefined };
  }
  if (position + ID_BYTES > end) throw malformed();
  return { type, size, start: position + ID_BYTES, base: pack.toString('hex', position, position + ID_BYTES) };
}

/** Never more bytes than the entry states. */
function inflated(input: Buffer, size: number): { bytes: Buffer; consumed: number } {
  try {
    const chunkSize = Math.max(MIN_CHUNK_BYTES, size);
    const options = { maxOutputLength: Math.max(1, size), chunkSize, info: true };
    const { buffer, engine } = inflateSync(input, options) as unknown as {
      buffer: Buffer;
      engine: { bytesWritten: number };
    };
    if (buffer.length === size) return { bytes: buffer, consumed: engine.bytesWritten };
  } catch {
    // The message of zlib says nothing more to a user.
  }
  throw malformed();
}

/** Turns deltas into objects, from bases that are there to what rests on them. */
async function resolveDeltas(objects: Map<string, GitObject>, deltas: readonly Delta[], budget: Budget): Promise<void> {
  const byBase = Map.groupBy(deltas, ({ base }) => base);
  const waiting = [...objects.keys()];
  for (let done = 0; done < waiting.length; done += 1) {
    if (done % TURN_OBJECTS === TURN_OBJECTS - 1) await setImmediate();
    const id = waiting[done] ?? '';
    const base = objects.get(id);
    const resting = byBase.get(id) ?? [];
    byBase.delete(id);
    for (const { bytes } of base === undefined ? [] : resting) {
      budget.spend(deltaSize(bytes));
      const object = { type: base!.type, content: applyDelta(base!.content, bytes) };
      const resolved = objectId(object);
      if (!objects.has(resolved)) waiting.push(resolved);
      objects.set(resolved, object);
    }
  }
}

function tooLarge(): Error {
  return gitFailure(
    'the repository is too large to be read; permit filters on the server (uploadpack.allowFilter), or use a repository of its own for tools',
  );
}

function malformed(): Error {
  return gitFailure('the server sent a pack that is not in the form of Git');
}
