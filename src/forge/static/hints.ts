/** The source around a syntax error, in bounded excerpts. */
interface ErrorContext {
  line: string;
  /** Text from the error on. */
  after: string;
  /** Text of the line before the error. */
  before: string;
  message: string;
  atEnd: boolean;
}

/** The five most frequent mistakes of models, each with its remedy. */
const HINTS: readonly { fits: (context: ErrorContext) => boolean; hint: string }[] = [
  {
    fits: ({ line }) => /^\s*(?:export\s+)?(?:interface|type|enum|namespace|declare|abstract)\s+[A-Za-z_$]/.test(line),
    hint: 'TypeScript declarations are not JavaScript; remove the interface, type or enum',
  },
  {
    fits: ({ line, after, before }) =>
      /\)\s{0,4}:\s{0,4}[A-Za-z{[]/.test(line) ||
      (after.startsWith(':') && /[\w$)\]]\s{0,4}$/.test(before)) ||
      /[(,]\s{0,4}[\w$]{1,60}\??\s{0,4}:\s{0,4}(?:string|number|boolean|any|unknown|object|[A-Z])/.test(line) ||
      /\b(?:const|let|var)\s{1,4}[\w$]{1,60}\s{0,4}:/.test(line) ||
      /\bas\s{1,4}(?:string|number|boolean|any|unknown|const|[A-Z])/.test(line),
    hint: 'type annotations are not JavaScript; remove the types',
  },
  {
    fits: ({ after, before }) => /^(?:const|let|var)\b/.test(after) && /[=(,?:&|+]\s{0,4}$|=>\s{0,4}$/.test(before),
    hint: 'a declaration cannot stand inside an expression; put const on a line of its own',
  },
  {
    fits: ({ atEnd, message }) => atEnd && /Unexpected token|Unterminated/.test(message),
    hint: 'a closing brace, bracket or quote is missing before the end',
  },
  {
    fits: ({ after, before }) =>
      /^[\w$"'`[{]/.test(after) && /[\w$"'`\]})]\s{0,40}$/.test(before.length === 0 ? 'x' : before),
    hint: 'a comma or an operator is missing before this place',
  },
];

/** The remedy for a syntax error of a known kind; undefined for any other. */
export function syntaxHint(source: string, position: number, message: string): string | undefined {
  const start = source.lastIndexOf('\n', Math.max(0, position - 1)) + 1;
  const end = source.indexOf('\n', position);
  const context: ErrorContext = {
    line: source.slice(start, end === -1 ? undefined : end).slice(0, 400),
    after: source.slice(position, position + 60),
    before: source.slice(Math.max(start, position - 60), position),
    message,
    atEnd: source.slice(position).trim() === '',
  };
  return HINTS.find(({ fits }) => fits(context))?.hint;
}
