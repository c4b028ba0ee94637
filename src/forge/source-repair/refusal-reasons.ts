import type { Program } from 'acorn';
import { topLevelValues } from './entry.ts';

const PYTHON = /^\s{0,8}(?:async\s{1,4})?def\s{1,4}\w{1,80}\s{0,4}\([^\n]{0,400}:\s{0,4}(?:#[^\n]{0,200})?$/m;
const OTHER_LANGUAGES: readonly (readonly [pattern: RegExp, language: string])[] = [
  [PYTHON, 'Python'],
  [/^\s{0,8}(?:func\s{1,4}\w{1,80}\(|package\s{1,4}main\b)/m, 'Go'],
  [/^\s{0,8}(?:pub\s{1,4})?fn\s{1,4}\w{1,80}\s{0,4}[(<]/m, 'Rust'],
  [/^#!\/(?:usr\/)?bin\/(?:env\s{1,4})?(?:ba)?sh\b/, 'a shell script'],
];

/** The other language that a source which does not parse seems to be in. */
export function otherLanguage(source: string): string | undefined {
  return OTHER_LANGUAGES.find(([pattern]) => pattern.test(source))?.[1];
}

/** Why a source that does not parse could not be repaired; undefined when the syntax error says it all. */
export function unreadableReason(source: string): string | undefined {
  const language = otherLanguage(source);
  if (language !== undefined) return `the code looks like ${language}; write JavaScript`;
  return hasFences(source) ? FENCES : undefined;
}

/** Why no function of a source could be taken as its entry. */
export function missingEntryReason(program: Program, source: string): string {
  if (hasFences(source)) return FENCES;
  const names = topLevelValues(program).map(({ name }) => name);
  const advice =
    names.length < 2
      ? 'define function execute(input)'
      : `several may be meant (${names.slice(0, 8).join(', ')}); name one of them execute`;
  return `neither execute nor run is defined; ${advice}`;
}

const FENCES = 'the text holds several fenced blocks, or none of JavaScript; send one program without fences';

function hasFences(source: string): boolean {
  return /^ {0,3}(?:`{3}|~{3})/m.test(source);
}
