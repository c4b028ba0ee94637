import { isWide } from './styled-text.ts';

/** A longer word is released in parts. */
const MAX_WORD = 8_192;

/**
 * Regroups text that arrives in arbitrary pieces into whole words, so that a line can be broken between them and a secret is never
 * split over two writes, which would hide it from redaction.
 */
export class WordStream {
  #rest = '';

  /** The whole words so far; the last word stays until its end has arrived. */
  push(text: string): string {
    this.#rest += text;
    const end = this.#rest.length > MAX_WORD ? this.#rest.length : endOfWords(this.#rest);
    const words = this.#rest.slice(0, end);
    this.#rest = this.#rest.slice(end);
    return words;
  }

  /** The rest, when no more text follows. */
  flush(): string {
    const rest = this.#rest;
    this.#rest = '';
    return rest;
  }
}

/** Index after the last character at which a word ends: white space or a wide character. */
function endOfWords(text: string): number {
  for (let index = text.length - 1; index >= 0; index -= 1) {
    const unit = text.charCodeAt(index);
    if (unit === 0x20 || (unit >= 0x09 && unit <= 0x0d)) return index + 1;
    if (unit >= 0x2e80 && unit < 0xd800 && isWide(text.charAt(index))) return index + 1;
  }
  return 0;
}
