import type { Command } from 'commander';
import { type CliIo, EXIT } from '../io.ts';
import { ARGUMENTS, sourceOf } from './sources.ts';
import { type Candidates, candidatesOf, optionValues } from './values.ts';
import { nameOf, nameOfVerb, optionOf, type ParsedWords, parseWords, splitOption } from './words.ts';

/** Cobra's directives, which kubectl and the completion scripts read from the last line. */
const DIRECTIVES = { words: ':4', files: ':0', folders: ':16' } as const;

/** A shell inserts candidates into the command line, so a name from a cluster with any other character is not offered. */
const SAFE = /^[A-Za-z0-9._:@=/+-]+$/;

/** Prints the candidates for the last word, one per line, then a directive. Errors give no candidates. */
export async function complete(program: Command, words: readonly string[], io: CliIo): Promise<number> {
  const last = words.at(-1) ?? '';
  const parsed = parseWords(program, words.slice(0, -1));
  const found = await candidatesFor(parsed, last, io).catch(() => []);
  if (typeof found === 'string') {
    io.out(`${DIRECTIVES[found]}\n`);
    return EXIT.ok;
  }
  for (const candidate of found) if (candidate.startsWith(last) && SAFE.test(candidate)) io.out(`${candidate}\n`);
  io.out(`${DIRECTIVES.words}\n`);
  return EXIT.ok;
}

async function candidatesFor(words: ParsedWords, last: string, io: CliIo): Promise<Candidates> {
  const { command, pending } = words;
  const [flag, typed] = splitOption(last);
  if (typed !== undefined) {
    const option = optionOf(command, flag);
    if (option === undefined) return [];
    const found = await optionValues(nameOf(option), option.argChoices ?? [], words, io);
    return typeof found === 'string' ? found : found.map((value) => `${flag}=${value}`);
  }
  if (last.startsWith('-'))
    return command.options.flatMap(({ long }) => (long === undefined || long === null ? [] : [long]));
  if (pending !== undefined) return optionValues(nameOf(pending), pending.argChoices ?? [], words, io);
  const visible = command.createHelp().visibleCommands(command);
  const children = visible.map((child) => child.name()).filter((name) => name !== 'help');
  if (command.registeredArguments.length === 0) return children;
  const found = await argumentsOf(words, io);
  return typeof found === 'string' || words.rest.length > 0 ? found : [...children, ...found];
}

/** Candidates for the next argument of the verb. */
async function argumentsOf(words: ParsedWords, io: CliIo): Promise<Candidates> {
  const { command, rest } = words;
  const all = command.registeredArguments;
  const last = all.at(-1);
  const next = all[rest.length] ?? (last?.variadic === true ? last : undefined);
  if (next === undefined) return [];
  return candidatesOf(sourceOf(ARGUMENTS, nameOfVerb(command), next.name()), words, io);
}
