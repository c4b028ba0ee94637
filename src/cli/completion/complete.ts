import type { Command } from 'commander';
import { CLUSTER_KINDS } from '../cluster/cluster-kinds.ts';
import { type CliIo, EXIT } from '../io.ts';
import { STATE_KINDS } from '../objects/kinds.ts';
import { actsOnCluster, objectNames } from './object-names.ts';
import { type Candidates, optionValues } from './values.ts';
import { nameOf, optionOf, type ParsedWords, parseWords, splitOption } from './words.ts';

/** Cobra's directives, which kubectl and the completion scripts read from the last line. */
const DIRECTIVES = { words: ':4', files: ':0', folders: ':16' } as const;

/** A shell inserts candidates into the command line, so a name from a cluster with any other character is not offered. */
const SAFE = /^[A-Za-z0-9._:@=/+-]+$/;

/** Arguments that are files, by the full name of the command. */
const FILE_ARGUMENTS: readonly string[] = ['tool check', 'tool call', 'tool import'];
const FOLDER_ARGUMENTS: readonly string[] = ['init', 'skill push'];
/** Any number of folders. */
const FOLDERS_ARGUMENTS: readonly string[] = ['skill check', 'skill export'];
/** The kind of the object that the first argument names. */
const NAME_ARGUMENTS: Readonly<Record<string, string>> = {
  send: 'agents',
  logs: 'agents',
  sessions: 'agents',
  usage: 'agents',
  suspend: 'agents',
  resume: 'agents',
  'top tools': 'agents',
  'schedule list': 'agents',
  'schedule trigger': 'agents',
  'schedule pause': 'agents',
  'schedule resume': 'agents',
  approve: 'approvalrequests',
  deny: 'approvalrequests',
  demote: 'tools',
  reactivate: 'tools',
  'tool audit': 'tools',
  'tool export': 'tools',
  trace: 'sessions',
};

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
  return children.length > 0 ? children : argumentsOf(words, io);
}

/** Candidates for the next argument of the verb. */
async function argumentsOf(words: ParsedWords, io: CliIo): Promise<Candidates> {
  const { command, rest } = words;
  const name = fullName(command);
  if (name === 'get' || name === 'describe') {
    const [kind] = rest;
    if (kind !== undefined) return name === 'get' || rest.length === 1 ? objectNames(kind, words, io) : [];
    const kinds = actsOnCluster(words, io) ? CLUSTER_KINDS : STATE_KINDS;
    return name === 'get' ? [...kinds, 'all'] : kinds;
  }
  if (FILE_ARGUMENTS.includes(name)) return 'files';
  if (FOLDERS_ARGUMENTS.includes(name)) return 'folders';
  if (rest.length > 0) return [];
  if (FOLDER_ARGUMENTS.includes(name)) return 'folders';
  if (name === 'deadletters') return ['retry', 'drop'];
  const kind = NAME_ARGUMENTS[name];
  return kind === undefined ? [] : objectNames(kind, words, io);
}

/** `tool check`, without the name of the program. */
function fullName(command: Command): string {
  const parent = command.parent === null || command.parent.parent === null ? '' : `${fullName(command.parent)} `;
  return `${parent}${command.name()}`;
}
