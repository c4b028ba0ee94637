import { Option, type Command } from 'commander';
import { TemperError } from '../../lib/errors.ts';
import type { CliIo } from '../io.ts';

/** Options that select the cluster and namespace of a verb. */
export interface ClusterOptions {
  kubeconfig?: string;
  context?: string;
  namespace?: string;
  temperNamespace?: string;
}

/** Value of TEMPER_PROGRAM when the program runs as a kubectl plug-in; it then never acts on a state folder. */
const PLUGIN = 'kubectl-temper';

export function isPlugin(io: CliIo): boolean {
  const { TEMPER_PROGRAM } = io.environment;
  return TEMPER_PROGRAM === PLUGIN;
}

/** Throws TEMPER_USAGE when a verb that acts on a state folder runs as a kubectl plug-in. */
export function refusePlugin(verb: string, io: CliIo): void {
  if (!isPlugin(io)) return;
  const message = `${PLUGIN} ${verb} does not act on a cluster yet; \`temper ${verb}\` acts on a state folder`;
  throw new TemperError('TEMPER_USAGE', message);
}

/** Does the command act on a cluster? */
export function selectsCluster({ kubeconfig, context, namespace }: ClusterOptions, io: CliIo): boolean {
  return isPlugin(io) || kubeconfig !== undefined || context !== undefined || namespace !== undefined;
}

export function addClusterOptions(command: Command): Command {
  return command
    .option('--kubeconfig <file>', 'path of the kubeconfig file')
    .option('--context <name>', 'context of the kubeconfig')
    .option('-n, --namespace <name>', 'namespace; default: that of the context')
    .option(
      '--temper-namespace <name>',
      'namespace of the Temper installation; default: found by the labels of its gateway',
    );
}

export const outputOption = (): Option =>
  new Option('-o, --output <form>', 'output format').choices(['text', 'json']).default('text');

export const DEFAULT_STATE = '.temper';
export const stateOption = (): Option => new Option('--state <folder>', 'state folder').default(DEFAULT_STATE);
