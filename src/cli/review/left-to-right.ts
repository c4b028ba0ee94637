/** The ranges of Unicode whose characters are written from right to left. */
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/gu;

/**
 * Escapes letters that are written from right to left. Some terminals reorder a line with such letters, the signs of a program beside them
 * included, so that code reads as something else; a page in a browser isolates them.
 */
export function leftToRight(text: string): string {
  return text.replaceAll(RIGHT_TO_LEFT, (letter) => `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`);
}
