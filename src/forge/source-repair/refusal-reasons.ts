import type { Program } from 'acorn';
import { parseSource, type SourceProblem, syntaxProblem } from '../static/parse.ts';
import { topLevelValues } from './entry.ts';
import { startsWithFence, unfence } from './fences.ts';
import type { StrippedSource } from './strip-types.ts';

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

/** Removes the types of a source; see `stripTypes`. */
export type TypeStripper = (source: string) => StrippedSource;

/**
 * The cause behind the syntax error of a source that could not be repaired; the error itself when it says it all. Without `strip`, the
 * first type of a TypeScript source is its error.
 */
export function explainSyntaxError(source: string, error: SourceProblem, strip?: TypeStripper): SourceProblem {
  const language = otherLanguage(source);
  if (language !== undefined) return { ...error, message: `the code looks like ${language}; write JavaScript` };
  if (hasFences(source)) return fenceProblem(source, error, strip);
  if (SENTENCE.test(source)) return { ...error, message: PROSE };
  if (RETURN_OUTSIDE.test(error.message)) return bodyProblem(source, error, strip);
  return behindTypes(source, error, strip) ?? error;
}

/** The error of a source whose types are valid; undefined when the error is not behind a type. */
function behindTypes(source: string, error: SourceProblem, strip?: TypeStripper): SourceProblem | undefined {
  const { code, error: typed } = strip?.(source) ?? {};
  if (typed !== undefined) {
    if (TYPED_RETURN_OUTSIDE.test(typed.message)) return bodyProblem(source, error, strip);
    return typed.unsupported || isLater(typed, error) ? syntaxProblem(source, typed, typed.message) : undefined;
  }
  if (code === undefined || code === source) return undefined;
  const parsed = parseSource(code);
  const [plain] = parsed.program === undefined && parsed.syntax ? parsed.problems : [];
  return plain === undefined ? undefined : explainSyntaxError(code, plain);
}

function isLater(a: { line: number; column: number }, b: { line: number; column: number }): boolean {
  return a.line > b.line || (a.line === b.line && a.column > b.column);
}

/** The syntax error in the only fenced block of a text that begins with a fence, which JavaScript may read as templates. */
export function fencedSyntaxError(source: string, strip?: TypeStripper): SourceProblem | undefined {
  const block = startsWithFence(source) ? unfence(source) : undefined;
  const parsed = block === undefined ? undefined : parseSource(block.code);
  if (parsed === undefined || parsed.program !== undefined || !parsed.syntax) return undefined;
  return fenceProblem(source, { line: 1, column: 0, message: FENCES }, strip);
}

/** A text that begins with three words of a sentence. */
const SENTENCE = /^\s{0,40}[A-Z][a-z'\u2019]{0,30},?(?: [A-Za-z'\u2019]{1,30},?){2}/;
const PROSE = 'the text begins with a sentence, not with code; send the program alone, without the text around it';
const RETURN_OUTSIDE = /^'return' outside of function/;
const TYPED_RETURN_OUTSIDE = /^Return statement is not allowed here/;

/** The error inside the only fenced block of code. */
function fenceProblem(source: string, error: SourceProblem, strip: TypeStripper | undefined): SourceProblem {
  const block = unfence(source);
  const parsed = block === undefined ? undefined : parseSource(block.code);
  const [inner] = parsed === undefined || parsed.program !== undefined ? [] : parsed.problems;
  if (block === undefined || inner === undefined) return { ...error, message: FENCES };
  const explained = explainSyntaxError(block.code, inner, strip);
  return { ...explained, message: `in the fenced block of code: ${explained.message}` };
}

/** The error inside statements that were sent without their function. */
function bodyProblem(source: string, error: SourceProblem, strip?: TypeStripper): SourceProblem {
  const whole = `async function execute(input) {\n${source}\n}`;
  const parsed = parseSource(whole);
  const [plain] = parsed.program === undefined ? parsed.problems : [];
  const typed = plain === undefined ? undefined : strip?.(whole).error;
  const inner =
    plain !== undefined && typed !== undefined && isLater(typed, plain)
      ? syntaxProblem(whole, typed, typed.message)
      : plain;
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
