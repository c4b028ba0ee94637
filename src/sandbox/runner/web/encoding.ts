/** TextEncoder, TextDecoder, btoa and atob. The text of these functions and classes runs in the guest; see web-globals.ts. */
import { decodeUtf8, encodeUtf8, UTF8_PARTS } from './utf8.ts';

export class GuestTextEncoder {
  get encoding(): string {
    return 'utf-8';
  }

  encode(text: unknown = ''): Uint8Array {
    return encodeUtf8(String(text));
  }

  encodeInto(text: unknown, target: Uint8Array): { read: number; written: number } {
    let read = 0;
    let written = 0;
    for (const character of String(text)) {
      const bytes = encodeUtf8(character);
      if (written + bytes.length > target.length) break;
      target.set(bytes, written);
      written += bytes.length;
      read += character.length;
    }
    return { read, written };
  }
}

export class GuestTextDecoder {
  readonly #fatal: boolean;
  readonly #ignoreBOM: boolean;

  constructor(label: unknown = 'utf-8', options: { fatal?: unknown; ignoreBOM?: unknown } = {}) {
    const name = String(label).trim().toLowerCase();
    if (!['utf-8', 'utf8', 'unicode-1-1-utf-8', 'unicode11utf8', 'unicode20utf8', 'x-unicode20utf8'].includes(name)) {
      throw new RangeError(`The encoding "${name.slice(0, 40)}" is not available in a tool; only utf-8 is`);
    }
    this.#fatal = Boolean(options.fatal);
    this.#ignoreBOM = Boolean(options.ignoreBOM);
  }

  get encoding(): string {
    return 'utf-8';
  }

  get fatal(): boolean {
    return this.#fatal;
  }

  get ignoreBOM(): boolean {
    return this.#ignoreBOM;
  }

  decode(data?: ArrayBuffer | ArrayBufferView, options: { stream?: unknown } = {}): string {
    if (options.stream) throw new TypeError('TextDecoder in a tool decodes no streams; decode all bytes at once');
    if (data === undefined) return '';
    const text = decodeUtf8(bytesOfData(data), this.#fatal);
    return !this.#ignoreBOM && text.startsWith('\ufeff') ? text.slice(1) : text;
  }
}

function bytesOfData(data: ArrayBuffer | ArrayBufferView): Uint8Array {
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  throw new TypeError('The data must be an ArrayBuffer or a typed array');
}

function invalidCharacter(message: string): Error {
  const error = new Error(message);
  error.name = 'InvalidCharacterError';
  return error;
}

function base64Alphabet(): string {
  return 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
}

export function encodeBase64(data: unknown): string {
  const text = String(data);
  const alphabet = base64Alphabet();
  let result = '';
  for (let index = 0; index < text.length; index += 3) {
    const group = [0, 1, 2].map((offset) => text.charCodeAt(index + offset));
    if (group.some((unit) => unit > 0xff)) {
      throw invalidCharacter('btoa: the text has a character beyond U+00FF; encode it with TextEncoder first');
    }
    const [first = 0, second = Number.NaN, third = Number.NaN] = group;
    const bits = (first << 16) | (second << 8) | third;
    const characters = [18, 12, 6, 0].map((shift) => alphabet.charAt((bits >> shift) & 0x3f));
    const count = Number.isNaN(second) ? 2 : Number.isNaN(third) ? 3 : 4;
    result += characters.slice(0, count).join('').padEnd(4, '=');
  }
  return result;
}

export function decodeBase64(data: unknown): string {
  const alphabet = base64Alphabet();
  let text = String(data).replaceAll(/[\t\n\f\r ]/g, '');
  if (text.length % 4 === 0)
    text = text.endsWith('==') ? text.slice(0, -2) : text.endsWith('=') ? text.slice(0, -1) : text;
  if (text.length % 4 === 1) throw invalidCharacter('atob: the text is not base64');
  let result = '';
  let bits = 0;
  let count = 0;
  for (let index = 0; index < text.length; index += 1) {
    const value = alphabet.indexOf(text.charAt(index));
    if (value === -1) throw invalidCharacter('atob: the text is not base64');
    bits = ((bits << 6) | value) & 0xffff;
    count += 6;
    if (count >= 8) {
      count -= 8;
      result += String.fromCharCode((bits >> count) & 0xff);
    }
  }
  return result;
}

export function exportEncoding(): Record<string, unknown> {
  const btoa = (data: unknown): string => encodeBase64(data);
  const atob = (data: unknown): string => decodeBase64(data);
  return { TextEncoder: GuestTextEncoder, TextDecoder: GuestTextDecoder, btoa, atob };
}

/** Everything of this module, for the guest. */
export const ENCODING_PARTS = [
  ...UTF8_PARTS,
  bytesOfData,
  invalidCharacter,
  base64Alphabet,
  encodeBase64,
  decodeBase64,
  GuestTextEncoder,
  GuestTextDecoder,
  exportEncoding,
];
