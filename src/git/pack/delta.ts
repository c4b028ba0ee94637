import { gitFailure } from '../failure.ts';

/** Of an operation that copies: which bytes of the offset and of the length follow it. */
const OFFSET_BITS = [1, 2, 4, 8];
const LENGTH_BITS = [16, 32, 64];
/** The length of a part that states none. */
const WHOLE_PART = 65_536;

/** A position in bytes that another party sent. */
class Cursor {
  readonly #bytes: Buffer;
  offset = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.offset >= this.#bytes.length;
  }

  byte(): number {
    const value = this.#bytes[this.offset];
    if (value === undefined) throw malformed();
    this.offset += 1;
    return value;
  }

  /** Seven bits per byte, the lowest first. */
  size(): number {
    let value = 0;
    for (let factor = 1; factor <= 2 ** 28; factor *= 128) {
      const byte = this.byte();
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
    throw malformed();
  }

  /** The bytes of a number that the operation has, the lowest first. */
  number(operation: number, bits: readonly number[]): number {
    let value = 0;
    let factor = 1;
    for (const bit of bits) {
      if ((operation & bit) !== 0) value += this.byte() * factor;
      factor *= 256;
    }
    return value;
  }

  /** Moves beyond the next bytes. Returns where they begin. */
  skip(length: number): number {
    const start = this.offset;
    this.offset += length;
    return start;
  }
}

/** The size of the object that a delta makes. */
export function deltaSize(delta: Buffer): number {
  const cursor = new Cursor(delta);
  cursor.size();
  return cursor.size();
}

/** The object that a delta makes of its base. The result has exactly the size that the delta states. */
export function applyDelta(base: Buffer, delta: Buffer): Buffer {
  const cursor = new Cursor(delta);
  if (cursor.size() !== base.length) throw malformed();
  const result = Buffer.alloc(cursor.size());
  let filled = 0;
  while (!cursor.isAtEnd) filled += copyPart(cursor, { base, delta, result }, filled);
  if (filled !== result.length) throw malformed();
  return result;
}

/** Copies a part of the base, or bytes of the delta itself. Returns their number. No buffer is made for each of what may be millions of parts. */
function copyPart(
  cursor: Cursor,
  { base, delta, result }: { base: Buffer; delta: Buffer; result: Buffer },
  filled: number,
): number {
  const operation = cursor.byte();
  if (operation === 0) throw malformed();
  const isOwn = operation < 128;
  const start = isOwn ? cursor.skip(operation) : cursor.number(operation, OFFSET_BITS);
  const length = isOwn ? operation : cursor.number(operation, LENGTH_BITS) || WHOLE_PART;
  const source = isOwn ? delta : base;
  if (start + length > source.length || filled + length > result.length) throw malformed();
  source.copy(result, filled, start, start + length);
  return length;
}

function malformed(): Error {
  return gitFailure('the server sent a delta that does not fit its base');
}
