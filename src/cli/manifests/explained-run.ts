import { resolve } from 'node:path';
import type { LoadedManifests } from '../../api/manifests.ts';
import { TemperError } from '../../lib/errors.ts';
import type { PolicySnapshot } from '../../policy/types.ts';
import type { HostToolDeps } from '../../standalone/team/host-tools.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import type { Repositories } from '../../toolbox/git/remote/port.ts';
import { DEFAULT_STATE } from '../cluster/options.ts';
import type { CliIo } from '../io.ts';
import { userPrograms } from '../run/programs/user-programs.ts';
import { existingFolder, governingFiles } from '../run/run.ts';
import type { RunOptions } from '../run/run-options.ts';
import { selectTeam } from '../run/select-agent.ts';
import { configFolder } from '../state/config-folder.ts';

/** The options of `temper run` that name folders and files. */
export type RunQuestion = Partial<Pick<RunOptions, 'workspace' | 'state' | 'skills' | 'providers' | 'modelScript'>>;

/** What an explanation needs of a run, or of a pod. The paths are absolute. */
export interface ExplainedRun {
  /** Where the agent works. */
  workspace: string;
  /** What none of its tools opens. */
  protectedFolders: readonly string[];
  /** Those that connections of the user name; absent without a run. */
  repositories?: Repositories | undefined;
}

/**
 * With a workspace those of `temper run` with the same options, otherwise those of a pod. Throws TEMPER_USAGE for a folder that the run
 * would refuse.
 */
export async function explainedRun(
  options: RunQuestion,
  loaded: LoadedManifests,
  { agent, workspace }: Pick<PolicySnapshot, 'agent' | 'workspace'>,
  io: CliIo,
): Promise<ExplainedRun> {
  if (options.workspace === undefined) {
    assertNoRun(options);
    return { workspace, protectedFolders: [] };
  }
  const folder = await existingFolder(resolve(io.cwd, options.workspace));
  const state = resolve(io.cwd, options.state ?? DEFAULT_STATE);
  const { agents } = selectTeam(loaded, { agent: agent.name, namespace: agent.namespace });
  const programs = await userPrograms(loaded, agents, { workspace: folder, state, skills: options.skills }, io);
  using _folders = programs.skills.folders;
  const keys = stateKeys(configFolder(io)).folder;
  return {
    workspace: folder,
    protectedFolders: [state, keys, ...governingFiles(options, loaded, io.cwd, programs)],
    repositories: programs.repositories?.({ fetchWith: sendsNothing }),
  };
}

const sendsNothing: HostToolDeps['fetchWith'] = () => () =>
  Promise.reject(new TemperError('TEMPER_INTERNAL', 'an explanation sent a request'));

function assertNoRun({ state, skills, providers, modelScript }: RunQuestion): void {
  const options = { '--state': state, '--skills': skills, '--providers': providers, '--model-script': modelScript };
  const named = Object.entries(options).find(([, value]) => value !== undefined);
  if (named !== undefined)
    throw new TemperError('TEMPER_USAGE', `${named[0]} works with --workspace only; add --workspace FOLDER`);
}
