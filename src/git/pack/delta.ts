import { gitFailure } from '../failure.ts';

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

  take(length: number): Buffer {
    const end = this.offset + length;
    if (end > this.#bytes.length) throw malformed();
    const taken = this.#bytes.subarray(this.offset, end);
    this.offset = end;
    return taken;
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
  while (!cursor.isAtEnd) {
    const part = nextPart(cursor, base);
    if (part.length === 0 || filled + part.length > result.length) throw malformed();
    part.copy(result, filled);
    filled += part.length;
  }
  if (filled !== result.length) throw malformed();
  return result;
}

/** A part of the base, or bytes of the delta itself. */
function nextPart(cursor: Cursor, base: Buffer): Buffer {
  const operation = cursor.byte();
  if (operation === 0) throw malformed();
  if (operation < 128) return cursor.take(operation);
  const number = (bits: readonly number[]): number =>
    bits.reduce((sum, bit, index) => sum + ((operation & bit) === 0 ? 0 : cursor.byte() * 256 ** index), 0);
  const offset = number([1, 2, 4, 8]);
  const length = number([16, 32, 64]);
  const end = offset + (length === 0 ? 65_536 : length);
  if (end > base.length) throw malformed();
  return base.subarray(offset, end);
}

function malformed(): Error {
  return gitFailure('the server sent a delta that does not fit its base');
}
