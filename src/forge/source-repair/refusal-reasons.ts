import type { Program } from 'acorn';
import { parseSource, type SourceProblem } from '../static/parse.ts';
import { topLevelValues } from './entry.ts';
import { unfence } from './fences.ts';

/** Lines that are valid in another language and never in JavaScript. Every repetition is bounded, so a search is linear. */
const OTHER_LANGUAGES: readonly (readonly [pattern: RegExp, language: string])[] = [
  [/^\s{0,8}(?:async\s{1,4})?def\s{1,4}\w{1,80}\s{0,4}\([^\n]{0,400}:\s{0,4}(?:#[^\n]{0,200})?$/m, 'Python'],
  [
    /^(?:from\s{1,4}[\w.]{1,80}\s{1,4}import\s|import\s{1,4}[\w.]{1,80}(?:\s{1,4}as\s{1,4}\w{1,80})?[ \t]{0,4}$)/m,
    'Python',
  ],
  [/^\s{0,8}(?:\w{1,80}\s{0,4}=|return)\s{0,4}lambda\s/m, 'Python'],
  [/^\s{0,8}(?:func\s{1,4}\w{1,80}\(|package\s{1,4}main\b)/m, 'Go'],
  [/^\s{0,8}(?:pub\s{1,4})?fn\s{1,4}\w{1,80}\s{0,4}[(<]/m, 'Rust'],
  [/^\s{0,8}def\s{1,4}\w{1,80}(?:\([^)\n]{0,400}\))?[ \t]{0,4}$/m, 'Ruby'],
  [/^\s{0,8}public\s{1,4}(?:(?:static|final)\s{1,4}){0,2}(?:class|void|int|double|boolean|String)\s{1,4}\w/m, 'Java'],
  [/^\s{0,40}<\?php/, 'PHP'],
  [/^\s{0,40}(?:SELECT\s|INSERT\s{1,4}INTO\s|UPDATE\s{1,4}\w{1,80}\s{1,4}SET\s)/i, 'SQL'],
  [/^\s{0,40}(?:#!\/(?:usr\/)?bin\/(?:env\s{1,4})?(?:ba)?sh\b|(?:echo|curl|grep|awk|sed|jq)\s)/, 'a shell script'],
];

/** The other language that a source which does not parse seems to be in. */
export function otherLanguage(source: string): string | undefined {
  return OTHER_LANGUAGES.find(([pattern]) => pattern.test(source))?.[1];
}

/** The cause behind the syntax error of a source that could not be repaired; the error itself when it says it all. */
export function explainSyntaxError(source: string, error: SourceProblem): SourceProblem {
  const language = otherLanguage(source);
  if (language !== undefined) return { ...error, message: `the code looks like ${language}; write JavaScript` };
  if (hasFences(source)) return fenceProblem(source, error);
  if (SENTENCE.test(source)) return { ...error, message: PROSE };
  return RETURN_OUTSIDE.test(error.message) ? bodyProblem(source, error) : error;
}

/** A text that begins with three words of a sentence. */
const SENTENCE = /^\s{0,40}[A-Z][a-z'\u2019]{0,30},?(?: [A-Za-z'\u2019]{1,30},?){2}/;
const PROSE = 'the text begins with a sentence, not with code; send the program alone, without the text around it';
const RETURN_OUTSIDE = /^'return' outside of function/;

/** The error inside the only fenced block of code. */
function fenceProblem(source: string, error: SourceProblem): SourceProblem {
  const block = unfence(source);
  const parsed = block === undefined ? undefined : parseSource(block.code);
  const [inner] = parsed === undefined || parsed.program !== undefined ? [] : parsed.problems;
  if (block === undefined || inner === undefined) return { ...error, message: FENCES };
  const { message } = explainSyntaxError(block.code, inner);
  return { ...inner, message: `in the fenced block of code: ${message}` };
}

/** The error inside statements that were sent without their function. */
function bodyProblem(source: string, error: SourceProblem): SourceProblem {
  const parsed = parseSource(`async function execute(input) {\n${source}\n}`);
  const [inner] = parsed.program === undefined ? parsed.problems : [];
  if (inner === undefined)
    return { ...error, message: 'return stands outside of a function; define function execute(input)' };
  const lines = source.split('\n').length;
  return {
    ...inner,
    line: Math.min(Math.max(1, inner.line - 1), lines),
    message: `in the statements of the function: ${inner.message}`,
  };
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
