import { Option, type Command } from 'commander';
import type { CliIo } from '../io.ts';

/** Which cluster and namespace a verb acts on. */
export interface ClusterOptions {
  kubeconfig?: string;
  context?: string;
  namespace?: string;
  temperNamespace?: string;
}

/** Run as a plug-in of kubectl there is no state folder to act on. */
export const PLUGIN = 'kubectl-temper';

export function isPlugin(io: CliIo): boolean {
  const { TEMPER_PROGRAM } = io.environment;
  return TEMPER_PROGRAM === PLUGIN;
}

/** Does the command name a cluster, in one way or another? */
export function namesCluster({ kubeconfig, context, namespace }: ClusterOptions, io: CliIo): boolean {
  return isPlugin(io) || kubeconfig !== undefined || context !== undefined || namespace !== undefined;
}

export function addClusterOptions(command: Command): Command {
  return command
    .option('--kubeconfig <file>', 'which kubeconfig')
    .option('--context <name>', 'which context of it')
    .option('-n, --namespace <name>', 'which namespace; that of the context when absent')
    .option('--temper-namespace <name>', 'where Temper is installed; found by the labels of its gateway when absent');
}

export const outputOption = (): Option =>
  new Option('-o, --output <form>', 'how to print').choices(['text', 'json']).default('text');
