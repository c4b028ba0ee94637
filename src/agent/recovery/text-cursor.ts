import { isJsonObject, type Json, parseUntrustedJson } from '../../lib/json.ts';
import { jsonSpanEnd } from './json-span.ts';

/** Reads a text from left to right. No method looks back, and none uses a regular expression on the rest of the text. */
export class TextCursor {
  readonly text: string;
  position: number;

  constructor(text: string, position: number) {
    this.text = text;
    this.position = position;
  }

  get isAtEnd(): boolean {
    return this.position >= this.text.length;
  }

  skipBlanks(): void {
    while (!this.isAtEnd && isBlank(this.text.charCodeAt(this.position))) this.position += 1;
  }

  /** Moves behind the token if it comes next. */
  take(token: string): boolean {
    if (!this.text.startsWith(token, this.position)) return false;
    this.position += token.length;
    return true;
  }

  /** As `take`, with blanks before the token. Moves behind the blanks in any case. */
  takeAfterBlanks(token: string): boolean {
    this.skipBlanks();
    return this.take(token);
  }

  /** The text up to the token, within this many characters; moves behind the token. */
  takeUntil(token: string, limit: number): string | undefined {
    const end = this.text.slice(this.position, this.position + limit + token.length).indexOf(token);
    if (end === -1) return undefined;
    const taken = this.text.slice(this.position, this.position + end);
    this.position += end + token.length;
    return taken;
  }

  /** The JSON object or list that comes next; undefined when there is none. */
  takeJson(): Json | undefined {
    const first = this.text[this.position];
    if (first !== '{' && first !== '[') return undefined;
    const end = jsonSpanEnd(this.text, this.position);
    if (end === undefined) return undefined;
    const value = parsedJson(this.text.slice(this.position, end));
    if (value !== undefined) this.position = end;
    return value;
  }
}

/** Undefined for text that is not JSON. */
export function parsedJson(text: string): Json | undefined {
  try {
    return parseUntrustedJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Undefined for text that is not a JSON object. */
export function parsedObject(text: string): Json | undefined {
  const value = parsedJson(text);
  return isJsonObject(value) ? value : undefined;
}

function isBlank(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d);
}
