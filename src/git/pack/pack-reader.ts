import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { inflateSync } from 'node:zlib';
import { gitFailure } from '../failure.ts';
import { type GitObject, objectId, type ObjectType } from '../objects/object-id.ts';
import { applyDelta, deltaSize } from './delta.ts';

/** Commits and trees by their ids, and contents of files when they were asked for. */
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
const TYPES: Readonly<Record<number, ObjectType>> = { 1: 'commit', 2: 'tree', 3: 'blob', 4: 'tag' };
const FOLDERS: ReadonlySet<ObjectType> = new Set<ObjectType>(['commit', 'tree']);
export const EVERYTHING: ReadonlySet<ObjectType> = new Set(Object.values(TYPES));
export const FILES: ReadonlySet<ObjectType> = new Set<ObjectType>(['blob']);
/** Others take their turn after so much work. */
const TURN_OBJECTS = 200;
const TURN_BYTES = 1_048_576;
const MIN_CHUNK_BYTES = 64;

interface Delta {
  readonly base: string;
  readonly bytes: Buffer;
}

/** Counts what a pack costs before it is spent. */
class Budget {
  readonly limits: PackLimits;
  #bytes = 0;
  #turnBytes = 0;
  #turnObjects = 0;

  constructor(limits: PackLimits) {
    this.limits = limits;
  }

  /** Lets others take their turn first, when this one was long. */
  async spend(bytes: number): Promise<void> {
    this.#bytes += bytes;
    if (bytes > this.limits.objectBytes || this.#bytes > this.limits.totalBytes) throw tooLarge();
    this.#turnBytes += bytes;
    this.#turnObjects += 1;
    if (this.#turnBytes < TURN_BYTES && this.#turnObjects < TURN_OBJECTS) return;
    [this.#turnBytes, this.#turnObjects] = [0, 0];
    await setImmediate();
  }
}

/**
 * The commits and trees of a pack, or its objects of other types. Every id is computed from the content, so a server cannot send one object
 * in place of another. Bytes are counted before they are inflated. Other objects are dropped; deltas of them never find their base, and are
 * dropped too.
 */
export async function readPack(
  pack: Buffer,
  limits: PackLimits = PACK_LIMITS,
  kept: ReadonlySet<ObjectType> = FOLDERS,
): Promise<PackObjects> {
  const count = objectCount(pack, limits);
  const budget = new Budget(limits);
  const objects = new Map<string, GitObject>();
  const deltas: Delta[] = [];
  const end = pack.length - CHECKSUM_BYTES;
  let offset = HEADER_BYTES;
  for (let index = 0; index < count; index += 1) {
    const { type, size, start, base } = entryAt(pack, offset, end);
    await budget.spend(size);
    const { bytes, consumed } = inflated(pack.subarray(start, end), size);
    const ownType = TYPES[type];
    if (base !== undefined) deltas.push({ base, bytes });
    else if (ownType !== undefined && kept.has(ownType))
      objects.set(objectId({ type: ownType, content: bytes }), { type: ownType, content: bytes });
    offset = start + consumed;
  }
  if (offset !== end) throw malformed();
  const unresolved = await resolveDeltas(objects, deltas, budget);
  // The base of a delta of another type was dropped; one that was never sent would make an object without a check.
  if (unresolved > 0 && kept.size === EVERYTHING.size) throw malformed();
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
    if (TYPES[type] === undefined) throw malformed();
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

/** Turns deltas into objects, from bases that are there to what rests on them. Returns for how many bases there is no object. */
async function resolveDeltas(
  objects: Map<string, GitObject>,
  deltas: readonly Delta[],
  budget: Budget,
): Promise<number> {
  const byBase = Map.groupBy(deltas, ({ base }) => base);
  const waiting = [...objects.keys()];
  for (let done = 0; done < waiting.length; done += 1) {
    const id = waiting[done] ?? '';
    const base = objects.get(id);
    const resting = byBase.get(id) ?? [];
    byBase.delete(id);
    for (const { bytes } of base === undefined ? [] : resting) {
      await budget.spend(deltaSize(bytes));
      const object = { type: base!.type, content: applyDelta(base!.content, bytes) };
      const resolved = objectId(object);
      if (!objects.has(resolved)) waiting.push(resolved);
      objects.set(resolved, object);
    }
  }
  return byBase.size;
}

function tooLarge(): Error {
  return gitFailure(
    'the repository is too large to be read; permit filters on the server (uploadpack.allowFilter), or use a repository of its own',
  );
}

function malformed(): Error {
  return gitFailure('the server sent a pack that is not in the form of Git');
}
