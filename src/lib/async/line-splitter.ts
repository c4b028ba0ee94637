const NEWLINE = 0x0a;

/** Splits a byte stream into lines and never holds more than the longest permitted line. */
export class LineSplitter {
  readonly #maxLineBytes: number;
  readonly #tooLong: (() => Error) | undefined;
  #pending: Uint8Array[] = [];
  #size = 0;

  /** A longer line throws `tooLong()`; without that function the line is truncated. */
  constructor(maxLineBytes: number, tooLong?: () => Error) {
    this.#maxLineBytes = maxLineBytes;
    this.#tooLong = tooLong;
  }

  /** The lines that the chunk completes, without their line ends. */
  *push(chunk: Uint8Array): Generator<string> {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#add(chunk.subarray(start, end));
      start = end + 1;
      yield this.rest();
    }
    this.#add(chunk.subarray(start));
  }

  /** Takes the bytes after the last line end. */
  rest(): string {
    const line = Buffer.concat(this.#pending).toString('utf8');
    this.#pending = [];
    this.#size = 0;
    return line;
  }

  #add(bytes: Uint8Array): void {
    const free = this.#maxLineBytes - this.#size;
    if (bytes.length > free && this.#tooLong !== undefined) throw this.#tooLong();
    const kept = bytes.subarray(0, free);
    this.#size += kept.length;
    if (kept.length > 0) this.#pending.push(kept);
  }
}
