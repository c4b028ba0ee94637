import { resolve } from 'node:path';
import { systemClock } from '../../lib/clock.ts';
import { openModels } from '../../models/named-models.ts';
import { openStandalone, type Standalone } from '../../standalone/standalone.ts';
import { type AgentScope, scopeOf } from '../../standalone/team/member.ts';
import type { OpenedAgent } from '../../standalone/team/opened-agent.ts';
import type { TeamEvents } from '../../standalone/team/team-events.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import { type CliIo, EXIT, interruptExitCode } from '../io.ts';
import { configFolder } from '../state/config-folder.ts';
import { startCommandTracing } from '../tracing.ts';
import { userPrograms } from '../run/programs/user-programs.ts';
import { openModelSource } from '../run/model-source.ts';
import { environmentRedactor, redactingIo } from '../run/redact.ts';
import { existingFolder, governingFiles, readManifests } from '../run/run.ts';
import type { RunOptions } from '../run/run-options.ts';
import { clusterFieldsNote } from '../run/notes/cluster-fields-note.ts';
import { writeNote } from '../run/notes/write-note.ts';
import { selectTeam } from '../run/select-agent.ts';

/** The options of a command that serves an agent to another program. */
export type ServingOptions = Omit<RunOptions, 'message' | 'session' | 'continue' | 'output' | 'serve'>;

/** An agent that this process serves to another program. */
export interface ServingProcess {
  /** Streams without secrets of the environment. */
  io: CliIo;
  standalone: Standalone;
  scope: AgentScope;
  own: OpenedAgent;
  /** Absolute path. */
  workspace: string;
}

/** Opens the agent of the options with its team, and closes it when `serve` has ended. */
export async function withServedAgent(
  options: ServingOptions,
  outer: CliIo,
  { hasApprover, events }: { hasApprover: boolean; events: TeamEvents },
  serve: (serving: ServingProcess) => Promise<void>,
): Promise<number> {
  const redact = environmentRedactor(outer.environment);
  const io = redactingIo(outer, redact);
  const manifests = await readManifests(options, io);
  if (manifests === undefined) return EXIT.refused;
  const { agent, agents, note } = selectTeam(manifests, options);
  for (const text of [note, clusterFieldsNote(agents)]) if (text !== undefined) writeNote(text, io);
  const workspace = await existingFolder(resolve(io.cwd, options.workspace));
  const state = resolve(io.cwd, options.state);
  const programs = await userPrograms(manifests, agents, { workspace, state, skills: options.skills }, io);
  using _folders = programs.skills.folders;
  await using _tracing = await startCommandTracing(io);
  await using source = await openModelSource(options, io);
  const models = openModels(source.config, { clock: systemClock, environment: io.environment, random: Math.random });
  await using standalone = await openStandalone({
    state,
    keys: stateKeys(configFolder(io)),
    workspace,
    protectedPaths: governingFiles(options, manifests, io.cwd, programs),
    ...programs,
    redact,
    hasApprover,
    models,
    judges: source.config.judges,
    events,
  });
  const scope = scopeOf({ agent });
  await serve({ io, standalone, scope, own: await standalone.open(scope), workspace });
  return interruptExitCode(io.signal) ?? EXIT.ok;
}
