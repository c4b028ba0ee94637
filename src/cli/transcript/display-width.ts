import { stripVTControlCharacters } from 'node:util';

/** Ranges of East Asian Width W and F (Unicode Standard Annex 11), without those that `\p{Emoji_Presentation}` covers. */
const WIDE: readonly (readonly [from: number, to: number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18dff],
  [0x1aff0, 0x1b2ff],
  [0x1f200, 0x1f2ff],
  [0x20000, 0x3fffd],
];

const PLAIN = /^[\u0020-\u007e]*$/;
const WIDE_EMOJI = /^\p{Emoji_Presentation}|\ufe0f/u;
const ZERO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]/u;

/** The grapheme clusters of a text: what a terminal draws in one place. */
export function graphemes(text: string): string[] {
  if (PLAIN.test(text)) return text.split('');
  return Array.from(new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(text), ({ segment }) => segment);
}

/** The number of terminal columns of a text of one line. Colour sequences have none. */
export function displayWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  return graphemes(stripVTControlCharacters(text)).reduce((width, cluster) => width + clusterWidth(cluster), 0);
}

/** Is the text a single cluster of two columns? A line may break beside it, as CJK text has no spaces. */
export function isWide(cluster: string): boolean {
  return clusterWidth(cluster) === 2;
}

function clusterWidth(cluster: string): number {
  const code = cluster.codePointAt(0) ?? 0;
  if (code < 0x7f) return code < 0x20 ? 0 : cluster.includes('\ufe0f') ? 2 : 1;
  if (ZERO_WIDTH.test(cluster)) return 0;
  return WIDE_EMOJI.test(cluster) || WIDE.some(([from, to]) => code >= from && code <= to) ? 2 : 1;
}

/** The text itself if it fits into the columns, otherwise its start and `…`. The text must have no colour sequences. */
export function truncateToWidth(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  let kept = '';
  let width = 0;
  for (const cluster of graphemes(text)) {
    width += clusterWidth(cluster);
    if (width > columns - 1) break;
    kept += cluster;
  }
  return `${kept.trimEnd()}…`;
}

/** `padEnd` by columns instead of UTF-16 units. */
export function padToWidth(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - displayWidth(text)));
}
