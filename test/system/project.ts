import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CommandResult, type RunningCommand, startTemper, temper, temporaryFolder } from './command.ts';

/** A temporary folder with the manifests of an agent, a replay script and `note.txt`. */
export interface Project extends AsyncDisposable {
  readonly path: string;
  /** The arguments of `temper` that run the agent with the script. */
  readonly runArguments: readonly string[];
  run(...rest: string[]): RunningCommand;
  /** Runs any other command in the folder. */
  temper(...args: string[]): Promise<CommandResult>;
}

export async function openProject(
  files: { manifests: string; script: string },
  output: 'json' | 'text',
): Promise<Project> {
  const folder = await temporaryFolder();
  const { path } = folder;
  await writeFile(join(path, 'agent.yaml'), files.manifests);
  await writeFile(join(path, 'script.yaml'), files.script);
  await writeFile(join(path, 'note.txt'), 'hello');
  const runArguments = ['run', '-f', 'agent.yaml', '--model-script', 'script.yaml', '--output', output];
  return {
    path,
    runArguments,
    run: (...rest) => startTemper([...runArguments, ...rest], { cwd: path }),
    temper: (...args) => temper(args, { cwd: path }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}
