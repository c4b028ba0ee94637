/** Subjects of events: the form of NATS subjects, within one namespace. This file imports nothing, so every module can use it without cost. */

const TOKEN = /^[A-Za-z0-9_-]+$/;
const MAX_LENGTH = 128;
const MAX_TOKENS = 8;

/** The first token of the subjects that only Temper itself publishes. */
export const PLATFORM_TOKEN = 'temper';

/** Why the text is no subject: of tokens without wildcards, joined by dots. Undefined for a subject. */
export function subjectError(text: string): string | undefined {
  return errorOf(text, (token) => (TOKEN.test(token) ? undefined : tokenError(token)));
}

/** Why the text is no pattern: a subject in which `*` stands for one token and `>`, at the end, for one or more. */
export function subjectPatternError(text: string): string | undefined {
  return errorOf(text, (token, isLast) => {
    if (token === '*' || TOKEN.test(token)) return undefined;
    if (token !== '>') return tokenError(token);
    return isLast ? undefined : '">" may only be the last token';
  });
}

function errorOf(text: string, check: (token: string, isLast: boolean) => string | undefined): string | undefined {
  if (text === '') return 'it is empty';
  if (text.length > MAX_LENGTH) return `it is longer than ${MAX_LENGTH} characters`;
  const tokens = text.split('.');
  if (tokens.length > MAX_TOKENS) return `it has more than ${MAX_TOKENS} tokens`;
  for (const [index, token] of tokens.entries()) {
    const error = check(token, index === tokens.length - 1);
    if (error !== undefined) return error;
  }
  return undefined;
}

function tokenError(token: string): string {
  if (token === '') return 'a token is empty; write one "." between two';
  if (token.includes('*') || token.includes('>')) return 'a wildcard is a whole token: "*", or ">" at the end';
  return 'a token has letters, digits, "_" and "-" only';
}

/** Whether a pattern matches a subject. For many patterns there is `SubjectTree`. */
export function subjectMatches(pattern: string, subject: string): boolean {
  const [wanted, tokens] = [pattern.split('.'), subject.split('.')];
  const rest = wanted.at(-1) === '>' ? wanted.length - 1 : undefined;
  if (rest === undefined ? wanted.length !== tokens.length : tokens.length <= rest) return false;
  return wanted.slice(0, rest).every((token, index) => token === '*' || token === tokens[index]);
}

export function isPlatformSubject(subject: string): boolean {
  return subject === PLATFORM_TOKEN || subject.startsWith(`${PLATFORM_TOKEN}.`);
}
