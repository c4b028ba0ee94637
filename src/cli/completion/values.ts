import type { Command } from 'commander';
import { CLUSTER_KINDS } from '../cluster/cluster-kinds.ts';
import type { CliIo } from '../io.ts';
import { STATE_KINDS } from '../objects/kinds.ts';
import { actsOnCluster, objectNames, stateRecords } from './object-names.ts';
import { type ListedNames, OPTIONS, type Source, sourceOf } from './sources.ts';
import { nameOfVerb, type ParsedWords } from './words.ts';

/** What may come next: words, or files or folders that the shell completes. */
export type Candidates = readonly string[] | 'files' | 'folders';

/** Candidates for the value of an option. */
export async function optionValues(
  option: string,
  choices: readonly string[],
  words: ParsedWords,
  io: CliIo,
): Promise<Candidates> {
  if (choices.length > 0) return choices;
  return candidatesOf(sourceOf(OPTIONS, nameOfVerb(words.command), option), words, io);
}

/** The candidates of a source; none for what a user makes up. */
export async function candidatesOf(source: Source | undefined, words: ParsedWords, io: CliIo): Promise<Candidates> {
  if (source === undefined || source === 'files' || source === 'folders') return source ?? [];
  if ('values' in source) return source.values;
  if ('objects' in source) return objectNames(source.objects, words, io);
  return 'names' in source ? LISTED[source.names](words, io) : [];
}

const LISTED: Readonly<Record<ListedNames, (words: ParsedWords, io: CliIo) => Promise<readonly string[]>>> = {
  'built-in and forged tools': async (words, io) => {
    const { builtInDescriptors } = await import('../../engine/built-in.ts');
    const forged = await objectNames('tools', words, io).catch(() => []);
    return [...new Set([...builtInDescriptors().map(({ name }) => name), ...forged])];
  },
  servers: async (_, io) => {
    const { configuredServers } = await import('../mcp/servers/configured-servers.ts');
    return (await configuredServers(io)).map(({ name }) => name);
  },
  'accepted tools of a server': async ({ rest }, io) => {
    const { readAccepted } = await import('../mcp/servers/configured-servers.ts');
    return ((await readAccepted(io)).get(rest[0] ?? '') ?? []).map(({ name }) => name);
  },
  'capability kinds': async () => {
    const { CAPABILITY_KINDS } = await import('../../discovery/entry.ts');
    return CAPABILITY_KINDS;
  },
  'subjects of the audit': async (words, io) => [
    ...(await objectNames('tools', words, io)),
    ...(await objectNames('sessions', words, io)),
  ],
  suspensions: async (words, io) => {
    const { listStandings } = await import('../../tempering/canary/standings.ts');
    const standings = await listStandings(await stateRecords(words, io));
    return standings.flatMap(({ suspension }) => (suspension === undefined ? [] : [suspension.id]));
  },
  kinds: (words, io) => {
    const kinds = actsOnCluster(words, io) ? CLUSTER_KINDS : STATE_KINDS;
    return Promise.resolve(words.command.name() === 'get' ? [...kinds, 'all'] : kinds);
  },
  verbs: ({ command, rest }) => {
    const group = rest.reduce<Command | null | undefined>(
      (found, word) => found?.commands.find((child) => child.name() === word),
      command.parent,
    );
    const names =
      group
        ?.createHelp()
        .visibleCommands(group)
        .map((child) => child.name()) ?? [];
    return Promise.resolve(names.filter((name) => name !== command.name()));
  },
  'names of the kind': async (words, io) => objectNames(words.rest[0] ?? '', words, io),
};
