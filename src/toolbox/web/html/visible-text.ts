import { isInvisible } from '../../../lib/text/invisible.ts';

/** Text of a page without characters that a reader does not see. Line feeds and tabs stay; other line ends become line feeds. */
export function visibleText(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replaceAll('\r', '\n')
    .replaceAll(/[^\t\n\x20-\x7e]/gu, (character) => (isInvisible(character) ? '' : character));
}

/** One line: each run of white space is one space. */
export function oneLine(text: string): string {
  return visibleText(text).replaceAll(/\s+/g, ' ').trim();
}
