/** Percent-encoding of the URL Standard. The text of these functions runs in the guest; see web-globals.ts. */
import { decodeUtf8, encodeUtf8 } from './utf8.ts';

export type UrlPart = 'control' | 'fragment' | 'query' | 'special-query' | 'path' | 'userinfo';

/** The printable ASCII characters that a part of a URL encodes, besides everything that is not printable ASCII. */
function encodedCharacters(part: UrlPart): string {
  switch (part) {
    case 'control':
      return '';
    case 'fragment':
      return ' "<>`';
    case 'query':
      return ' "#<>';
    case 'special-query':
      return ' "#<>\'';
    case 'path':
      return ' "#<>?^`{}';
    default:
      return ' "#<>?^`{}/:;=@[\\]|';
  }
}

export function percentByte(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

export function percentEncode(text: string, part: UrlPart): string {
  const encoded = encodedCharacters(part);
  let result = '';
  for (const character of text) {
    const isPlain = character >= ' ' && character <= '~' && !encoded.includes(character);
    if (isPlain) result += character;
    else for (const byte of encodeUtf8(character)) result += percentByte(byte);
  }
  return result;
}

/** Decodes %XX; `plusIsSpace` as in forms. */
export function percentDecode(text: string, plusIsSpace: boolean): string {
  if (!text.includes('%')) return (plusIsSpace ? text.replaceAll('+', ' ') : text).toWellFormed();
  const source = encodeUtf8(plusIsSpace ? text.replaceAll('+', ' ') : text);
  const bytes = new Uint8Array(source.length);
  let length = 0;
  for (let index = 0; index < source.length; index += 1) {
    const digits = String.fromCharCode(source[index + 1] ?? 0, source[index + 2] ?? 0);
    const isEscape = source[index] === 0x25 && /^[\da-fA-F]{2}$/.test(digits);
    bytes[length] = isEscape ? Number.parseInt(digits, 16) : (source[index] ?? 0);
    length += 1;
    if (isEscape) index += 2;
  }
  return decodeUtf8(bytes.subarray(0, length), false);
}

/** The functions of this module, for the guest. */
export const PERCENT_ENCODING_PARTS = [encodedCharacters, percentByte, percentEncode, percentDecode];
