import { stripVTControlCharacters } from 'node:util';
import { displayWidth, SEGMENTER } from '../display-width.ts';

const PLAIN = /^[\u0020-\u007e]*$/;

/** The grapheme clusters of a text: what a terminal draws in one place. */
export function graphemes(text: string): string[] {
  if (PLAIN.test(text)) return text.split('');
  return Array.from(SEGMENTER.segment(text), ({ segment }) => segment);
}

/** The number of terminal columns of a text with colour sequences, which have none. */
export function styledWidth(text: string): number {
  return displayWidth(PLAIN.test(text) ? text : stripVTControlCharacters(text));
}

/** Is the cluster two columns wide? A line may break beside it, as CJK text has no spaces. */
export function isWide(cluster: string): boolean {
  return displayWidth(cluster) === 2;
}

/** The text itself if it fits into the columns, otherwise its start and `…`. The text must have no colour sequences. */
export function truncateToWidth(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  let kept = '';
  let width = 0;
  for (const cluster of graphemes(text)) {
    width += displayWidth(cluster);
    if (width > columns - 1) break;
    kept += cluster;
  }
  return `${kept.trimEnd()}…`;
}
