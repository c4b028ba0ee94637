/** What runs a script of a skill: nothing but a tool of the agent, which has its own permissions. */
export interface SkillScript {
  path: string;
  /** The tool that runs programs of this language. */
  tool: string;
  /** Whether the agent has it. */
  available: boolean;
}

/** Tools that run programs in the sandbox, by the ending of a file. Programs of other languages need a shell. */
const JAVASCRIPT = ['.js', '.mjs'];
const OTHERS = ['.py', '.sh', '.bash', '.rb', '.pl', '.ts', '.php', '.lua'];
const CODE_TOOL = 'code_run';
const SHELL_TOOL = 'shell_exec';

/** The scripts among the resources of a skill. */
export function scriptsOf(paths: readonly string[], hasTool: (name: string) => boolean): SkillScript[] {
  return paths.flatMap((path) => {
    const tool = toolFor(path.toLowerCase());
    return tool === undefined ? [] : [{ path, tool, available: hasTool(tool) }];
  });
}

function toolFor(path: string): string | undefined {
  if (JAVASCRIPT.some((ending) => path.endsWith(ending))) return CODE_TOOL;
  return OTHERS.some((ending) => path.endsWith(ending)) ? SHELL_TOOL : undefined;
}
