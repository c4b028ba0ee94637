import { type Options, parse, type Program, type Token, tokTypes } from 'acorn';
import { isUnprintable, printable } from '../../lib/printable.ts';
import { nestingOf } from './ast.ts';
import { syntaxHint } from './hints.ts';

/** Limits of a tool's source. */
const LIMITS = { characters: 32_768, tokens: 10_000, nesting: 100, brackets: 200 };

/** A problem in a source, with its location. */
export interface SourceProblem {
  line: number;
  column: number;
  message: string;
}

export type ParseResult =
  | { program: Program; problems: SourceProblem[] }
  | { program?: undefined; syntax: boolean; problems: SourceProblem[] };

/** Thrown by the token counter to stop the parser. */
class TooLargeError extends Error {}

/** A syntax error at an offset of the source, and the problems before it. */
interface SyntaxFailure {
  failure: SourceProblem;
  offset: number;
  others: SourceProblem[];
}

/**
 * Parses untrusted source within limits. Only scripts run; what is no script is parsed as a module, so that the rules can report its
 * imports, exports and top-level await, which a tool may not use. What is neither fails with the later of the two errors, because the
 * earlier one comes from the kind of program.
 */
export function parseSource(source: string): ParseResult {
  if (source.length > LIMITS.characters) {
    return rejected(`the source has ${source.length} characters, ${LIMITS.characters} are allowed; shorten it`);
  }
  const script = parseAs('script', source);
  if (!('failure' in script)) return script;
  const module = parseAs('module', source);
  if (!('failure' in module)) return module;
  const { failure, others } = module.offset > script.offset ? module : script;
  return { syntax: true, problems: [failure, ...others] };
}

function parseAs(sourceType: 'script' | 'module', source: string): ParseResult | SyntaxFailure {
  const problems = characterProblems(source);
  try {
    const program = parseWithin(source, sourceType, problems);
    if (nestingOf(program, LIMITS.nesting) > LIMITS.nesting) {
      return rejected(`the code is nested more than ${LIMITS.nesting} levels deep; flatten it`);
    }
    return { program, problems };
  } catch (error) {
    if (error instanceof TooLargeError) return rejected(error.message);
    if (error instanceof RangeError) return rejected('the code is nested too deeply to be parsed; flatten it');
    if (!(error instanceof SyntaxError)) throw error;
    const { loc, pos = 0 } = error as { loc?: { line: number; column: number }; pos?: number };
    const message = error.message.replace(/ \(\d{1,9}:\d{1,9}\)$/, '');
    return { failure: syntaxProblem(source, loc ?? { line: 1, column: 0 }, message), offset: pos, others: problems };
  }
}

function parseWithin(source: string, sourceType: 'script' | 'module', problems: SourceProblem[]): Program {
  let tokens = 0;
  let brackets = 0;
  const onToken = (token: Token): void => {
    tokens += 1;
    if (tokens > LIMITS.tokens) throw new TooLargeError(`the source has more than ${LIMITS.tokens} tokens; shorten it`);
    if (OPENING.has(token.type)) brackets += 1;
    if (CLOSING.has(token.type)) brackets -= 1;
    if (brackets > LIMITS.brackets) throw new TooLargeError('the brackets are nested too deeply; flatten the code');
    if (token.type === tokTypes.name || token.type === tokTypes.privateId) checkName(source, token, problems);
  };
  const options: Options = {
    ecmaVersion: 'latest',
    sourceType,
    locations: true,
    onToken,
    allowAwaitOutsideFunction: sourceType === 'module',
    allowHashBang: false,
  };
  return parse(source, options);
}

const OPENING = new Set([tokTypes.parenL, tokTypes.braceL, tokTypes.bracketL, tokTypes.dollarBraceL]);
const CLOSING = new Set([tokTypes.parenR, tokTypes.braceR, tokTypes.bracketR]);

function checkName(source: string, token: Token, problems: SourceProblem[]): void {
  const raw = source.slice(token.start, token.end);
  const { line = 1, column = 0 } = token.loc?.start ?? {};
  if (raw.includes('\\')) {
    problems.push({ line, column, message: `the name ${shown(raw)} is written with escapes; write it without them` });
  } else if (!isAscii(raw)) {
    problems.push({ line, column, message: `the name ${shown(raw)} is not ASCII; names may look alike, use a-z` });
  }
}

function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) if (text.charCodeAt(index) > 0x7f) return false;
  return true;
}

/** Finds invisible characters, which make code look different from what runs. */
function characterProblems(source: string): SourceProblem[] {
  const problems: SourceProblem[] = [];
  let line = 1;
  let column = 0;
  for (const character of source) {
    const code = character.codePointAt(0) ?? 0;
    if (character === '\n') {
      line += 1;
      column = 0;
      continue;
    }
    if (character !== '\t' && character !== '\r' && isUnprintable(code) && problems.length < 5) {
      const message = `the invisible character U+${code.toString(16).toUpperCase().padStart(4, '0')} is not allowed; write it as an escape or remove it`;
      problems.push({ line, column, message });
    }
    column += character.length;
  }
  return problems;
}

/** A syntax error with the text of its line and, for a frequent mistake, the remedy. Columns count from 0. */
export function syntaxProblem(
  source: string,
  { line, column }: { line: number; column: number },
  error: string,
): SourceProblem {
  const lines = source.split('\n');
  const hint = syntaxHint(lines, { line, column }, error);
  const text = (lines[line - 1] ?? '').trim();
  const message = printable(
    `${error}${text === '' ? '' : ` in: ${text.slice(0, 120)}`}${hint === undefined ? '' : ` (${hint})`}`,
    400,
  );
  return { line, column, message };
}

function rejected(message: string): ParseResult {
  return { syntax: false, problems: [{ line: 1, column: 0, message }] };
}

function shown(text: string): string {
  return printable(JSON.stringify(text.slice(0, 60)));
}
