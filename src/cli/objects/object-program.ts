import { type Command, Option } from 'commander';
import { addClusterOptions, selectsCluster, stateOption as state } from '../cluster/options.ts';
import type { CliIo } from '../io.ts';
import { LIST_FORMATS, OBJECT_FORMATS } from './output-formats.ts';

/** Adds `get` and `describe`, which act on a state folder, or on a cluster when the options name one. */
export function addObjectVerbs(program: Command, io: CliIo, finish: (exitCode: number) => void): void {
  addClusterOptions(program.command('get <kinds> [names...]'))
    .summary('list objects of the state folder, or of a cluster')
    .description(
      'list agents, policies, tools, capabilities, requests or approvals of the state folder (there also sessions and rejected), or of a cluster when a context, namespace or kubeconfig is given; KINDS may be a list such as agents,tools, or all',
    )
    .addOption(state())
    .addOption(new Option('-o, --output <form>', 'output format').choices(LIST_FORMATS).default('text'))
    .option('-l, --selector <labels>', 'only objects with these labels, such as team=sales,env!=test')
    .option('-A, --all-namespaces', 'objects of all namespaces of a cluster')
    .option('-w, --watch', 'on a cluster: after the list, print each change until interrupted')
    .action(async (kinds: string, names: string[], options) => {
      const targets = [kinds, ...names];
      if (options.allNamespaces === true || selectsCluster(options, io)) {
        const { clusterGet } = await import('../cluster/verbs/get.ts');
        return finish(await clusterGet({ ...options, targets }, io));
      }
      const { get } = await import('../state/get.ts');
      const { readingState } = await import('../state/state-folder.ts');
      finish(await readingState(options.state, () => get({ ...options, targets }, io)));
    });
  addClusterOptions(program.command('describe <kind> [name]'))
    .description('print one object with all its fields, conditions and events')
    .addOption(state())
    .addOption(new Option('-o, --output <form>', 'output format').choices(OBJECT_FORMATS).default('text'))
    .action(async (kind: string, name: string | undefined, options) => {
      const targets = name === undefined ? [kind] : [kind, name];
      if (selectsCluster(options, io)) {
        const { clusterDescribe } = await import('../cluster/verbs/describe.ts');
        return finish(await clusterDescribe({ ...options, targets }, io));
      }
      const { describe } = await import('../state/describe.ts');
      const { readingState } = await import('../state/state-folder.ts');
      finish(await readingState(options.state, () => describe({ ...options, targets }, io)));
    });
}
