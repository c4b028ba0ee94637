import type { Command } from 'commander';
import { openCluster } from '../cluster/cluster.ts';
import { AGENTS, CLUSTER_KINDS, clusterKind } from '../cluster/cluster-kinds.ts';
import type { ClusterOptions } from '../cluster/options.ts';
import { type CliIo, EXIT } from '../io.ts';

/** Files are no answer here: what `kubectl` is told by its last line. */
const NO_FILES = ':4';
/** A shell waits no longer than this. */
const PATIENCE_MILLISECONDS = 2_000;
const AGENT_VERBS: readonly string[] = ['send', 'logs', 'sessions', 'usage', 'suspend', 'resume'];

/** Prints what could stand in place of the last word, one a line, then a directive for `kubectl`. Says nothing when it does not know. */
export async function complete(program: Command, words: readonly string[], io: CliIo): Promise<number> {
  const last = words.at(-1) ?? '';
  const found = await candidates(program, words.slice(0, -1), last, io).catch(() => []);
  for (const candidate of found) if (candidate.startsWith(last)) io.out(`${candidate}\n`);
  io.out(`${NO_FILES}\n`);
  return EXIT.ok;
}

async function candidates(program: Command, before: readonly string[], last: string, io: CliIo): Promise<string[]> {
  const { command, rest } = reached(program, before);
  if (last.startsWith('-'))
    return command.options.flatMap(({ long }) => (long === undefined || long === null ? [] : [long]));
  const children = command.commands.map((child) => child.name()).filter((name) => name !== '__complete');
  if (children.length > 0) return children;
  return argumentsOf(command, rest, optionsIn(before), io);
}

/** What the next argument of the verb could be. */
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

/** The command the words lead to, and the words after it that are neither options nor their values. */
function reached(program: Command, words: readonly string[]): { command: Command; rest: string[] } {
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
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(PATIENCE_MILLISECONDS)]);
  const found = await cluster.kube.list(type, { namespace: cluster.namespace }, signal);
  return found.map(({ metadata }) => metadata.name);
}

/** To be read by the shell: `source <(temper completion)`. */
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
