import { limitedCommand, type RunnerCommand } from '../../sandbox/runner-command.ts';

/** An agent that speaks the Agent Client Protocol, from the configuration of a user. */
export interface AgentProgram {
  name: string;
  /** Absolute path of the folder that the program may read. */
  folder: string;
  /** Absolute path of the program: JavaScript, in the folder. */
  program: string;
  arguments: readonly string[];
  environment: Readonly<Record<string, string>>;
  /** Heap limit in MiB; 512 when absent. */
  heapMebibytes?: number;
}

const HEAP_MIB = 512;
/** The largest file that the program may write, in blocks of 512 bytes: 64 MiB. */
const FILE_BLOCKS = 131_072;

/**
 * The command line of an agent. Node refuses it other processes, native code, the network, and every file outside of its folder and its
 * home; the kernel limits are those of a runner. `preloads` are the texts of modules.
 */
export function agentCommand(
  node: string,
  { folder, program, arguments: given, heapMebibytes = HEAP_MIB }: AgentProgram,
  { home, preloads }: { home: string; preloads: readonly string[] },
  exists?: (path: string) => boolean,
): RunnerCommand {
  const args = [
    '--permission',
    `--allow-fs-read=${folder}/*`,
    `--allow-fs-read=${home}/*`,
    `--allow-fs-write=${home}/*`,
    `--max-old-space-size=${heapMebibytes}`,
    '--no-warnings',
    ...preloads.flatMap((text) => ['--import', `data:text/javascript;base64,${Buffer.from(text).toString('base64')}`]),
    program,
    ...given,
  ];
  return limitedCommand(node, args, { fileBlocks: FILE_BLOCKS, writable: home }, exists);
}

/** The whole environment of an agent. The variables of two providers' clients lead to Temper, without a key. */
export function agentEnvironment({ environment }: AgentProgram, home: string, origin: string): Record<string, string> {
  return {
    OPENAI_BASE_URL: `${origin}/v1`,
    OPENAI_API_KEY: 'none',
    ANTHROPIC_BASE_URL: origin,
    ANTHROPIC_API_KEY: 'none',
    ...environment,
    HOME: home,
    TMPDIR: home,
  };
}
