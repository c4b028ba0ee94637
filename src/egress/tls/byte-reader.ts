/** The bytes end before the member that was to be read. */
export class OutOfBytes extends Error {}

/** Reads members of a binary message one after the other, and never beyond its end. */
export class ByteReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  skip(count: number): void {
    this.#take(count);
  }

  /** An integer of one to six bytes, the highest first. */
  integer(size: number): number {
    return this.#take(size).readUIntBE(0, size);
  }

  /** The content of a vector whose length stands before it in `size` bytes. */
  vector(size: number): ByteReader {
    return new ByteReader(this.#take(this.integer(size)));
  }

  rest(): Buffer {
    return this.#take(this.#bytes.length - this.#at);
  }

  /** Throws OutOfBytes. */
  #take(count: number): Buffer {
    const end = this.#at + count;
    if (end > this.#bytes.length) throw new OutOfBytes('the bytes end too early');
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }
}
