import { isUnprintable } from '../../lib/printable.ts';
import { isInvisible } from '../../lib/text/invisible.ts';

/** Marks on one letter beyond these could draw over the lines above and below. */
const MAX_MARKS = 3;
const MARK = /\p{M}/u;
const SPECIAL_BLANK = /[^\S ]/u;

/** A part of a text, either as it is or as the escape of one character. */
export interface VisiblePart {
  readonly text: string;
  readonly isEscape: boolean;
}

/**
 * One line of foreign text as parts that a reader sees as what they are. Characters that are not drawn, that change the direction of text,
 * blanks other than the space, and marks stacked on one letter become escapes.
 */
export function visibleParts(line: string): VisiblePart[] {
  const parts: VisiblePart[] = [];
  let plain = '';
  let marks = 0;
  for (const character of line) {
    marks = MARK.test(character) ? marks + 1 : 0;
    if (marks <= MAX_MARKS && isVisible(character)) {
      plain += character;
      continue;
    }
    if (plain !== '') parts.push({ text: plain, isEscape: false });
    plain = '';
    parts.push({ text: escapeOf(character), isEscape: true });
  }
  if (plain !== '') parts.push({ text: plain, isEscape: false });
  return parts;
}

/** One line, whose line breaks become escapes too; a longer text is cut with its length. */
export function visibleLine(text: string, limit: number): string {
  const cut = text.length > limit ? text.slice(0, limit) : text;
  const shown = visibleParts(cut)
    .map((part) => part.text)
    .join('');
  return text.length > limit ? `${shown}… (${text.length} characters)` : shown;
}

function isVisible(character: string): boolean {
  return !isUnprintable(character.codePointAt(0) ?? 0) && !isInvisible(character) && !SPECIAL_BLANK.test(character);
}

function escapeOf(character: string): string {
  if (character === '\n') return '\\n';
  if (character === '\t') return '\\t';
  if (character === '\r') return '\\r';
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
