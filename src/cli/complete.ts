import type { Command } from 'commander';
import { openCluster } from './cluster/cluster.ts';
import { AGENTS, CLUSTER_KINDS, clusterKind } from './cluster/cluster-kinds.ts';
import type { ClusterOptions } from './cluster/options.ts';
import { type CliIo, EXIT } from './io.ts';

/** Cobra's directive "no file completion", which kubectl reads from the last line. */
const NO_FILES = ':4';
/** Limit for listing object names, so that the shell does not hang. */
const LIST_TIMEOUT_MS = 2_000;
const AGENT_VERBS: readonly string[] = ['send', 'logs', 'sessions', 'usage', 'suspend', 'resume'];

/** Prints the candidates for the last word, one per line, then a directive for `kubectl`. Errors give no candidates. */
export async function complete(program: Command, words: readonly string[], io: CliIo): Promise<number> {
  const last = words.at(-1) ?? '';
  const found = await candidates(program, words.slice(0, -1), last, io).catch(() => []);
  for (const candidate of found) if (candidate.startsWith(last)) io.out(`${candidate}\n`);
  io.out(`${NO_FILES}\n`);
  return EXIT.ok;
}

async function candidates(program: Command, previous: readonly string[], last: string, io: CliIo): Promise<string[]> {
  const { command, rest } = resolveCommand(program, previous);
  if (last.startsWith('-'))
    return command.options.flatMap(({ long }) => (long === undefined || long === null ? [] : [long]));
  const children = command.commands.map((child) => child.name()).filter((name) => name !== '__complete');
  if (children.length > 0) return children;
  return argumentsOf(command, rest, optionsIn(previous), io);
}

/** Candidates for the next argument of the verb. */
async function argumentsOf(command: Command, rest: string[], options: ClusterOptions, io: CliIo): Promise<string[]> {
  const name = command.name();
  if (name === 'get' || name === 'describe') {
    const [kind] = rest;
    if (kind === undefined) return [...CLUSTER_KINDS];
    return rest.length === 1 ? names(clusterKind(kind), options, io) : [];
  }
  if (rest.length > 0) return [];
  if (name === 'deadletters') return ['retry', 'drop'];
  const takesAgent = AGENT_VERBS.includes(name) || (name === 'tools' && command.parent?.name() === 'top');
  return takesAgent ? names(AGENTS, options, io) : [];
}

/** The command that the words select, and its arguments without options and their values. */
function resolveCommand(program: Command, words: readonly string[]): { command: Command; rest: string[] } {
  let command = program;
  const rest: string[] = [];
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? '';
    if (word.startsWith('-')) {
      const option = command.options.find(({ long, short }) => long === word || short === word);
      if (option !== undefined && (option.required || option.optional)) index += 1;
      continue;
    }
    const child = rest.length === 0 ? command.commands.find((candidate) => candidate.name() === word) : undefined;
    if (child === undefined) rest.push(word);
    else command = child;
  }
  return { command, rest };
}

function optionsIn(words: readonly string[]): ClusterOptions {
  const after = (...flags: string[]) => {
    const index = words.findIndex((word) => flags.includes(word));
    return index < 0 ? undefined : words[index + 1];
  };
  const [kubeconfig, context, namespace] = [after('--kubeconfig'), after('--context'), after('-n', '--namespace')];
  return {
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    ...(context === undefined ? {} : { context }),
    ...(namespace === undefined ? {} : { namespace }),
  };
}

async function names(type: ReturnType<typeof clusterKind>, options: ClusterOptions, io: CliIo): Promise<string[]> {
  await using cluster = await openCluster(options, io);
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(LIST_TIMEOUT_MS)]);
  const found = await cluster.kube.list(type, { namespace: cluster.namespace }, signal);
  return found.map(({ metadata }) => metadata.name);
}

/** Prints a completion script for the shell, for `source <(temper completion)`. */
export function completionScript(shell: 'bash' | 'zsh', io: CliIo): number {
  const compatible = shell === 'zsh' ? 'autoload -U +X bashcompinit && bashcompinit\n' : '';
  io.out(`${compatible}_temper() {
  local IFS=$'\\n'
  COMPREPLY=($(temper __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | grep -v '^:'))
}
complete -F _temper temper
`);
  return EXIT.ok;
}
