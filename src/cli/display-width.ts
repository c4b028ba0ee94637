/** Ranges of code points that a terminal shows two columns wide: East Asian Wide and Fullwidth. */
const WIDE: readonly (readonly [from: number, to: number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa000, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1b000, 0x1b2ff],
  [0x1f200, 0x1f265],
  [0x20000, 0x3fffd],
];

/** Building one takes longer than splitting a line. */
export const SEGMENTER = new Intl.Segmenter('en', { granularity: 'grapheme' });
const EMOJI_SELECTOR = '\u{fe0f}';

/** The number of terminal columns of a text without control characters. */
export function displayWidth(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of SEGMENTER.segment(text)) {
    width += graphemeWidth(segment);
  }
  return width;
}

/** Pads a text with spaces to a number of terminal columns; `padEnd` would count UTF-16 units. */
export function padToWidth(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - displayWidth(text)));
}

/** A grapheme is as wide as its base character; combining marks add nothing. */
function graphemeWidth(grapheme: string): number {
  const code = grapheme.codePointAt(0) ?? 0;
  if (/^[\p{Mark}\p{Cf}]/u.test(grapheme)) return 0;
  if (/^\p{Emoji_Presentation}/u.test(grapheme)) return 2;
  if (grapheme.includes(EMOJI_SELECTOR) && /^\p{Extended_Pictographic}/u.test(grapheme)) return 2;
  return WIDE.some(([from, to]) => code >= from && code <= to) ? 2 : 1;
}
