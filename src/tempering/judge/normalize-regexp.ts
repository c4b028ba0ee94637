import type { Obfuscator } from './obfuscation.ts';

/** Syntax of a regular expression that uses letters: escapes, properties, ranges of letters and digits, and groups. */
const SYNTAX =
  /\\(?:[dDwWsSbBnrtfv0]|[pP]\{(?:L|Lu|Ll|N|Nd|P|S|Z)\}|[^A-Za-z])|(?<![A-Za-z])(?:a-zA-Z|A-Za-z|a-z|A-Z|a-f|A-F)(?![A-Za-z])/g;

/**
 * A regular expression as a judge reads it. Its syntax stays when every letter in it is syntax of the language. Letters
 * of an author could spell something, so any other expression becomes an entry in the table of texts.
 */
export function normalizeRegExp(pattern: string, flags: string, obfuscator: Obfuscator): string {
  const rest = pattern.replaceAll(SYNTAX, '');
  const letters = rest.replaceAll(/[^A-Za-z]/g, '').length;
  const isPlain = pattern.length <= 64 && /^[\x20-\x7e]*$/.test(pattern) && letters === 0;
  return `/${isPlain ? pattern : obfuscator.hidden(pattern)}/${flags}`;
}
