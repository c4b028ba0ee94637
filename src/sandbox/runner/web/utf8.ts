/** UTF-8 as the Encoding Standard has it. The text of these functions runs in the guest; see web-globals.ts. */

/** The bytes of a text; a lone surrogate becomes U+FFFD. */
export function encodeUtf8(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(utf8Length(text));
  let offset = 0;
  for (const character of text.toWellFormed()) {
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x80) bytes[offset++] = code;
    else {
      if (code < 0x800) bytes[offset++] = 0xc0 | (code >> 6);
      else {
        if (code < 0x10000) bytes[offset++] = 0xe0 | (code >> 12);
        else {
          bytes[offset++] = 0xf0 | (code >> 18);
          bytes[offset++] = 0x80 | ((code >> 12) & 0x3f);
        }
        bytes[offset++] = 0x80 | ((code >> 6) & 0x3f);
      }
      bytes[offset++] = 0x80 | (code & 0x3f);
    }
  }
  return bytes;
}

function utf8Length(text: string): number {
  let length = 0;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    const next = text.charCodeAt(index + 1);
    if (unit < 0x80) length += 1;
    else if (unit < 0x800) length += 2;
    else if (unit >= 0xd800 && unit < 0xdc00 && next >= 0xdc00 && next < 0xe000) {
      length += 4;
      index += 1;
    } else length += 3;
  }
  return length;
}

/** The text of bytes. Invalid bytes become U+FFFD, or a TypeError when `fatal`. */
export function decodeUtf8(bytes: Uint8Array, fatal: boolean): string {
  let text = '';
  let index = 0;
  while (index < bytes.length) {
    const [code, length] = decodeCodePoint(bytes, index);
    if (code === undefined && fatal) throw new TypeError('The encoded data was not valid for encoding utf-8');
    text += String.fromCodePoint(code ?? 0xfffd);
    index += length;
  }
  return text;
}

/** The code point at an offset and its length; without a code point, the length of the invalid bytes. */
function decodeCodePoint(bytes: Uint8Array, offset: number): [code: number | undefined, length: number] {
  const first = bytes[offset] ?? 0;
  if (first < 0x80) return [first, 1];
  if (first < 0xc2 || first > 0xf4) return [undefined, 1];
  const following = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  let code = first & (0x3f >> following);
  for (let count = 1; count <= following; count += 1) {
    const byte = bytes[offset + count] ?? 0;
    const [lowest, highest] = count > 1 ? [0x80, 0xbf] : secondByteRange(first);
    if (byte < lowest || byte > highest) return [undefined, count];
    code = (code << 6) | (byte & 0x3f);
  }
  return [code, following + 1];
}

/** The range of the byte after the first one, without overlong forms, surrogates and code points beyond U+10FFFF. */
function secondByteRange(first: number): [lowest: number, highest: number] {
  if (first === 0xe0) return [0xa0, 0xbf];
  if (first === 0xed) return [0x80, 0x9f];
  if (first === 0xf0) return [0x90, 0xbf];
  return first === 0xf4 ? [0x80, 0x8f] : [0x80, 0xbf];
}

/** The functions of this module, for the guest. */
export const UTF8_PARTS = [encodeUtf8, utf8Length, decodeUtf8, decodeCodePoint, secondByteRange];
