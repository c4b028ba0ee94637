/** The source around a syntax error, in bounded excerpts. */
interface ErrorContext {
  /** Text from the error on. */
  after: string;
  /** Text before the error, from this line and the previous one. */
  before: string;
  /** Whether only blanks stand before the error in its line. */
  startsLine: boolean;
  message: string;
  atEnd: boolean;
}

/** The parsers of JavaScript and of TypeScript found something else than the grammar asks for. */
const UNEXPECTED = /^(?:Unexpected token|Expected|Expression expected)/;
const STATEMENT = /^(?:const|let|var|return|if|for|while|throw|try|export|import)\b/;

/** The most frequent mistakes of models, each with its remedy. */
const HINTS: readonly { fits: (context: ErrorContext) => boolean; hint: string }[] = [
  {
    fits: ({ message }) => /enum is not supported/.test(message),
    hint: 'write a constant object in place of the enum; only types are removed',
  },
  {
    fits: ({ message }) => /parameter property is not supported/.test(message),
    hint: 'declare the field in the class and assign it in the constructor; only types are removed',
  },
  {
    fits: ({ message }) => /namespace declaration is not supported/.test(message),
    hint: 'write a constant object in place of the namespace; only types are removed',
  },
  {
    fits: ({ message }) => /only appear at the top level/.test(message),
    hint: 'a closing brace is missing before this place, or the statement stands inside of a function',
  },
  {
    fits: ({ after, before }) => /^(?:const|let|var)\b/.test(after) && /[=(,?:&|+]\s{0,4}$|=>\s{0,4}$/.test(before),
    hint: 'a declaration cannot stand inside an expression; put const on a line of its own',
  },
  {
    fits: ({ atEnd, message }) => atEnd && (UNEXPECTED.test(message) || message.startsWith('Unterminated')),
    hint: 'a closing brace, bracket or quote is missing before the end',
  },
  {
    fits: ({ after, message, startsLine }) => startsLine && UNEXPECTED.test(message) && STATEMENT.test(after),
    hint: 'a closing bracket or parenthesis is missing before this place',
  },
  {
    fits: ({ after, before, message }) =>
      UNEXPECTED.test(message) && /^[\w$"'`[{]/.test(after) && /[\w$"'`\]})]\s{0,40}$/.test(before),
    hint: 'a comma or an operator is missing before this place',
  },
];

/** The remedy for a syntax error of a known kind; undefined for any other. `lines` are those of the source; columns count from 0. */
export function syntaxHint(
  lines: readonly string[],
  { line, column }: { line: number; column: number },
  message: string,
): string | undefined {
  const text = lines[line - 1] ?? '';
  const after = text.slice(column, column + 60);
  const start = text.slice(0, column);
  const context: ErrorContext = {
    after,
    before: `${lines[line - 2] ?? ''}\n${start}`.slice(-60),
    startsLine: start.trim() === '',
    message,
    atEnd: after.trim() === '' && lines.slice(line).every((later) => later.trim() === ''),
  };
  return HINTS.find(({ fits }) => fits(context))?.hint;
}
