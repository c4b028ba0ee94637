/** Makes untrusted text safe for one line of a terminal or a log: escapes control characters and bidirectional marks. */
export function printable(text: string, limit = 2_000): string {
  let out = '';
  for (const character of text.slice(0, limit)) {
    out += isUnprintable(character.codePointAt(0) ?? 0) ? escaped(character) : character;
  }
  return text.length > limit ? `${out}…` : out;
}

function escaped(character: string): string {
  if (character === '\n') return '\\n';
  if (character === '\t') return '\\t';
  if (character === '\r') return '\\r';
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/** C0 and C1 controls, zero-width and bidirectional controls, tags, lone surrogates, the byte order mark. */
const UNPRINTABLE: readonly (readonly [from: number, to: number])[] = [
  [0x00, 0x1f],
  [0x7f, 0x9f],
  [0x061c, 0x061c],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0xd800, 0xdfff],
  [0xfeff, 0xfeff],
  [0xe0000, 0xe007f],
];

export function isUnprintable(code: number): boolean {
  return UNPRINTABLE.some(([from, to]) => code >= from && code <= to);
}
