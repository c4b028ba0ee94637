import { type Command, Option } from 'commander';
import { DEFAULT_STATE, outputOption } from '../cluster/options.ts';
import type { CliIo } from '../io.ts';

const collect = (value: string, previous: string[] = []): string[] => [...previous, value];

/** Adds the verbs about decisions of policies. */
export function addPolicy(policy: Command, io: CliIo, finish: (exitCode: number) => void): void {
  policy
    .command('explain')
    .description('print the decision about a request, and every rule that was evaluated')
    .addOption(new Option('-f, --filename <path...>', 'manifest files or folders').makeOptionMandatory())
    .option('--agent <name>', 'agent name, when the manifests contain several agents')
    .option('--namespace <name>', 'namespace of the agent, when several agents have its name')
    .option('--tool <name>', 'may the agent call this tool?')
    .option('--input <json>', 'the arguments of the tool')
    .option('--category <category>', 'category of a tool that is not known')
    .option('--action <action>', 'action type of a tool that is not known')
    .option('--forged', 'with --tool: a forged tool with the requirements of --api, --domain and --path')
    .option('--host <host>', 'may the agent connect to host or host:port?')
    .option('--file <path>', 'may the agent read this file?')
    .option('--memory <key>', 'may the agent read this key?')
    .option('--write', 'with --file or --memory: may the agent write it?')
    .option('--message <agent>', 'may the agent send a message to this agent?')
    .option(
      '--spawn <template>',
      'may the agent start a copy of this template, or with `own` a child whose manifest it writes?',
    )
    .option('--kill <agent>', 'may the agent end this child agent of another agent?')
    .option('--schedule <times>', 'may the agent make a schedule for itself at these times, such as "every 10m"?')
    .option('--publish <subject>', 'may the agent publish events with this subject?')
    .option('--subscribe <pattern>', 'may the agent subscribe to events of these subjects?')
    .option('--model <model>', 'may the agent use this provider/model?')
    .option('--forge <mode>', 'may the agent forge in mode Compose or Sandbox?')
    .option('--api <name>', 'a host function that the forged tool requires', collect)
    .option('--domain <host>', 'a host that the forged tool requires', collect)
    .option('--path <path>', 'a path that the forged tool requires', collect)
    .option('--promote <tool>', 'may this tool be promoted?')
    .option('--tier <tier>', 'target tier: Agent or Shared')
    .option('--level <level>', "access level instead of the policy's initial level")
    .option('--tainted', 'decide as for a session that contains untrusted content')
    .option('--private', 'decide as for a session that contains private data')
    .option('--workspace <folder>', 'decide as for temper run with this workspace; default: as for a pod')
    .option('--state <folder>', 'with --workspace: the state folder of the run, also for its forged tools')
    .option('--session <id>', 'with --workspace: the session whose forged tools are known')
    .option('--skills <folder...>', 'with --workspace: the folders with skills of the run')
    .option('--providers <file>', 'with --workspace: the providers file of the run')
    .option('--model-script <file>', 'with --workspace: the replay script of the run')
    .option('--values <file...>', 'for a pod: Helm values of the release, with gateway.connections')
    .option('--kubeconfig <file>', 'look up forged tools in the cluster of this kubeconfig file')
    .option('--context <name>', 'look up forged tools in the cluster of this context of the kubeconfig')
    .addOption(outputOption())
    .action(async ({ filename, ...question }) => {
      const { policyExplain } = await import('./policy-explain.ts');
      const { toolsOfServices } = await import('./explain/explained-run.ts');
      const { readingState } = await import('../state/state-folder.ts');
      const services = question.tool === undefined ? [] : await toolsOfServices(io);
      const explain = (): Promise<number> => policyExplain({ ...question, paths: filename }, services, io);
      finish(
        question.workspace === undefined
          ? await explain()
          : await readingState(question.state ?? DEFAULT_STATE, explain),
      );
    });
}
