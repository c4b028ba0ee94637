/** Command lines as `grants.shell` compares them: the program and its arguments as one text, in which no word can pass for two. */

/** Characters that could end a word or begin another one. */
const NEEDS_QUOTES = /[\s"'\\]|^$/;

/** `git commit -m "fix the parser"`. Two lists of words never have the same line. */
export function commandLine(words: readonly string[]): string {
  return words.map((word) => (NEEDS_QUOTES.test(word) ? JSON.stringify(word) : word)).join(' ');
}

/** The program that a pattern of `grants.shell` names; undefined when it has a star there, and so covers any program. */
export function programOf(pattern: string): string | undefined {
  const [program = ''] = pattern.split(' ', 1);
  return program.includes('*') ? undefined : program;
}
