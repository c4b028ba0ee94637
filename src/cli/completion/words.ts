import type { Command, Option } from 'commander';

/** The words before the one to complete, understood as far as they go. */
export interface ParsedWords {
  readonly command: Command;
  /** Arguments of the command, without options and their values. */
  readonly rest: readonly string[];
  /** The option whose value comes next. */
  readonly pending: Option | undefined;
  /** Options that have a value, by long name without dashes; the last value counts. */
  readonly values: ReadonlyMap<string, string>;
}

/** Finds the command that the words select, and the option that waits for a value. */
export function parseWords(program: Command, words: readonly string[]): ParsedWords {
  let command = program;
  let pending: Option | undefined;
  const rest: string[] = [];
  const values = new Map<string, string>();
  for (const word of words) {
    if (word.startsWith('-') && word !== '-') {
      pending = startOption(command, word, values);
    } else if (pending !== undefined) {
      values.set(nameOf(pending), word);
      if (!pending.variadic) pending = undefined;
    } else {
      const child = rest.length === 0 ? command.commands.find((candidate) => candidate.name() === word) : undefined;
      if (child === undefined) rest.push(word);
      else command = child;
    }
  }
  return { command, rest, pending, values };
}

/** The option when its value is the next word; a value in the same word is stored. */
function startOption(command: Command, word: string, values: Map<string, string>): Option | undefined {
  const [flag, value] = splitOption(word);
  const option = optionOf(command, flag);
  if (option === undefined || !(option.required || option.optional)) return undefined;
  if (value === undefined) return option;
  values.set(nameOf(option), value);
  return undefined;
}

/** `--output=js` as flag and value; a flag alone has no value. */
export function splitOption(word: string): [flag: string, value?: string] {
  const at = word.startsWith('--') ? word.indexOf('=') : -1;
  return at < 0 ? [word] : [word.slice(0, at), word.slice(at + 1)];
}

export function optionOf(command: Command, flag: string): Option | undefined {
  return command.options.find(({ long, short }) => long === flag || short === flag);
}

export function nameOf(option: Option): string {
  return (option.long ?? option.short ?? '').replace(/^-+/, '');
}

/** `tool check`, without the name of the program. */
export function nameOfVerb(command: Command): string {
  const parent = command.parent === null || command.parent.parent === null ? '' : `${nameOfVerb(command.parent)} `;
  return `${parent}${command.name()}`;
}
