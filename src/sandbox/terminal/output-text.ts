import { printable } from '../../lib/printable.ts';
import type { ProgramOutput } from './port.ts';

/** Keeps the beginning and the end of a stream, and counts the rest. */
export class OutputText {
  readonly #half: number;
  readonly #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
  #tailBytes = 0;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#half = Math.floor(maxBytes / 2);
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(chunk: Buffer): void {
    this.#bytes += chunk.length;
    const missing = this.#half - this.#headBytes;
    if (missing > 0) this.#head.push(chunk.subarray(0, missing));
    this.#headBytes += Math.min(missing, chunk.length);
    const rest = chunk.subarray(missing);
    if (rest.length === 0) return;
    this.#tail.push(rest);
    this.#tailBytes += rest.length;
    // Compacts now and then, so that a stream of single bytes costs no copy for each.
    if (this.#tailBytes > 2 * this.#half || this.#tail.length > 1_000) this.#compact();
  }

  result(): ProgramOutput {
    this.#compact();
    const omitted = this.#bytes - this.#headBytes - this.#tailBytes;
    const head = shown(Buffer.concat(this.#head));
    const tail = shown(Buffer.concat(this.#tail));
    const text =
      omitted === 0
        ? shown(Buffer.concat([...this.#head, ...this.#tail]))
        : `${head}\n… ${omitted} bytes left out …\n${tail}`;
    return { text, bytes: this.#bytes, omitted };
  }

  #compact(): void {
    const tail = Buffer.concat(this.#tail);
    // A copy, because a part of a buffer keeps all of it.
    this.#tail = [Buffer.from(tail.subarray(Math.max(0, tail.length - this.#half)))];
    this.#tailBytes = Math.min(tail.length, this.#half);
  }
}

/** Control characters, such as those that move the cursor of a terminal, are escaped; lines and tabs stay. */
function shown(bytes: Buffer): string {
  const lines = bytes.toString('utf8').replaceAll('\r\n', '\n').split('\n');
  return lines
    .map((line) =>
      line
        .split('\t')
        .map((part) => printable(part, Infinity))
        .join('\t'),
    )
    .join('\n');
}
