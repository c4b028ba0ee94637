/** Makes untrusted text safe for one line of a terminal or a log: escapes control characters and bidirectional marks. */
export function printable(text: string, limit = 2_000): string {
  const characters = Array.from(text.length > limit ? withoutHalfPair(text.slice(0, limit)) : text);
  let out = '';
  for (const [index, character] of characters.entries()) {
    const isShown = !isUnprintable(character.codePointAt(0) ?? 0) || joinsEmoji(characters, index);
    out += isShown ? character : escaped(character);
  }
  return text.length > limit ? `${out}…` : out;
}

/** A limit may fall between the two units of a character. */
function withoutHalfPair(text: string): string {
  return /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text;
}

/** A zero-width joiner between two emoji makes them one; elsewhere it could hide text. */
export function joinsEmoji(characters: readonly string[], index: number): boolean {
  if (characters[index] !== '\u200d') return false;
  const [before = '', after = ''] = [characters[index - 1], characters[index + 1]];
  return (
    /^[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f]/u.test(before) && /^\p{Extended_Pictographic}/u.test(after)
  );
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

/**
 * Makes the text of a JSON or YAML document safe for a terminal: replaces unprintable characters, which stand only in double-quoted text,
 * by the escape that both formats share. Parsing gives the same value.
 */
export function printableDocument(text: string): string {
  let out = '';
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    out += character !== '\n' && isUnprintable(code) ? escapedUnits(character) : character;
  }
  return out;
}

function escapedUnits(character: string): string {
  const units = character.split('').map((unit) => unit.charCodeAt(0).toString(16).padStart(4, '0'));
  return units.map((unit) => `\\u${unit}`).join('');
}
