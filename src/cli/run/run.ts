import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { assertSessionId } from '../../agent/session/session-id.ts';
import { type LoadedManifests, loadManifests } from '../../api/manifests.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { ulids } from '../../lib/ids.ts';
import { printable } from '../../lib/printable.ts';
import { type NamedModelsConfig, openModels } from '../../models/named-models.ts';
import { PATTERN_RULES } from '../../policy/patterns/pattern-rules.ts';
import { openStandalone } from '../../standalone/standalone.ts';
import { assertPlainFiles } from '../../standalone/trust/private-folder.ts';
import { scopeOf } from '../../standalone/team/member.ts';
import type { TeamEvents } from '../../standalone/team/team-events.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import { type CliIo, EXIT, interruptExitCode } from '../io.ts';
import { DEFAULT_STATE } from '../cluster/options.ts';
import { judgeNote } from '../manifests/judge-note.ts';
import { knownTools } from '../manifests/known-tools.ts';
import { problemBlock } from '../manifests/validate.ts';
import { serverFolders } from '../mcp/servers/configured-servers.ts';
import { configFolder } from '../state/config-folder.ts';
import { listSessions } from '../state/sessions.ts';
import { startCommandTracing } from '../tracing.ts';
import { type UserPrograms, userPrograms } from './programs/user-programs.ts';
import { converse, type Conversation } from './converse.ts';
import { openModelSource } from './model-source.ts';
import { countUsage } from './model-usage.ts';
import { assertMessages } from '../input/message-text.ts';
import { createPrinter } from './printer.ts';
import { clusterFieldsNote } from './notes/cluster-fields-note.ts';
import { proxyNote } from './notes/proxy-note.ts';
import { ignoredFilesNote, writeNote } from './notes/write-note.ts';
import { environmentRedactor, redactingIo } from './redact.ts';
import type { RunOptions } from './run-options.ts';
import { noteIdle, readServedPorts, serveTeam } from './schedules/serve-team.ts';
import { type SelectedTeam, selectServed, selectTeam, unusedObjectsNote } from './select-agent.ts';

/**
 * Runs an agent in this process, with the messages of the options or those that the user types. Exit 1 when a message could not be
 * answered; after an interrupt, the code of the signal.
 */
export async function run(options: RunOptions, outer: CliIo): Promise<number> {
  const redact = environmentRedactor(outer.environment);
  const io = redactingIo(outer, redact);
  assertOptions(options);
  const manifests = await readManifests(options, io);
  if (manifests === undefined) return EXIT.refused;
  const isServing = options.serve === true;
  const { agent, agents, note } = isServing ? selectServed(manifests, options) : selectTeam(manifests, options);
  for (const text of [
    note,
    proxyNote(
      io.environment,
      agents.map((one) => one.agent),
    ),
    clusterFieldsNote(agents),
  ])
    if (text !== undefined) writeNote(text, io);
  const ports = await readServedPorts(options, io);
  const workspace = await existingFolder(resolve(io.cwd, options.workspace));
  const state = resolve(io.cwd, options.state);
  const programs = await userPrograms(manifests, agents, { workspace, state, skills: options.skills }, io);
  using _folders = programs.skills.folders;
  await using _tracing = await startCommandTracing(io);
  await using source = await openModelSource(options, io);
  const session = isServing ? '' : await sessionOf(options, agent, state);
  const { models, usage } = countedModels(source.config, agents, io);
  const form = options.output ?? (io.terminal ? 'text' : 'json');
  const isTyped = options.message === undefined && io.openPrompt !== undefined && form === 'text';
  const shown = { agent: agent.metadata.name, session, form, usage, redact };
  const isReplayed = options.modelScript !== undefined;
  const printer = createPrinter({ ...shown, isReplayed, hidesMessages: isTyped }, io);
  const observers: TeamEvents[] = [(event, source) => printer.show(event, source)];
  let code: number;
  {
    await using standalone = await openStandalone({
      state,
      keys: stateKeys(configFolder(io)),
      workspace,
      protectedPaths: governingFiles(options, manifests, io.cwd, programs),
      ...programs,
      redact,
      hasApprover: !isServing && form === 'text' && io.openPrompt !== undefined,
      models,
      judges: source.config.judges,
      events: (event, source) => observers.forEach((observe) => observe(event, source)),
    });
    noteIdle(programs.agents, options, io);
    if (isServing) code = await serveTeam(standalone, programs.agents, ports, io);
    else {
      const own = await standalone.open(scopeOf({ agent }));
      const conversation: Conversation = { standalone, own, agent, session, printer, options, form, state, observers };
      code = await converse(conversation, io);
    }
  }
  // Only now: while the engine stops, events may still arrive, and the summary is the last line.
  printer.end();
  return interruptExitCode(io.signal) ?? code;
}

/** The models with a counter of their use, after a warning about agents whose judge is one of their models. */
function countedModels(config: NamedModelsConfig, agents: SelectedTeam['agents'], io: CliIo) {
  const models = openModels(config, { clock: systemClock, environment: io.environment, random: Math.random });
  const note = judgeNote(agents, (name) => models.resolve(name).id);
  if (note !== undefined) io.error(`warning: ${note}\n`);
  return countUsage(models, config);
}

/** Throws TEMPER_USAGE or TEMPER_SESSION_INVALID. */
function assertOptions({ session, message, serve, webhooks, a2a }: RunOptions): void {
  const port = webhooks === undefined ? a2a : webhooks;
  const option = webhooks === undefined ? '--a2a' : '--webhooks';
  if (port !== undefined && serve !== true)
    throw new TemperError('TEMPER_USAGE', `${option} works with --serve only; add --serve`);
  if (session !== undefined) assertSessionId(session);
  assertMessages(message);
}

/** The manifests; undefined after their problems were printed. */
export async function readManifests(
  { filename, state = DEFAULT_STATE }: Pick<RunOptions, 'filename'> & { state?: string },
  io: CliIo,
): Promise<LoadedManifests | undefined> {
  const paths = filename.map((path) => resolve(io.cwd, path));
  const manifests = await loadManifests(paths, { patterns: PATTERN_RULES, tools: () => knownTools(state, io) });
  const skipped = ignoredFilesNote(manifests.ignoredFiles, io.cwd);
  if (skipped !== undefined) writeNote(skipped, io);
  for (const problem of manifests.problems) io.error(problemBlock(problem));
  for (const warning of manifests.warnings)
    if (warning.rule === 'unknown-tool') io.error(problemBlock(warning, 'warning: '));
  const note = unusedObjectsNote(manifests);
  if (note !== undefined) writeNote(note, io);
  return manifests.problems.length > 0 ? undefined : manifests;
}

export async function existingFolder(folder: string): Promise<string> {
  const info = await stat(folder).catch(() => undefined);
  if (info?.isDirectory() === true) return folder;
  const problem = info === undefined ? 'does not exist' : 'is not a folder';
  throw new TemperError('TEMPER_USAGE', `--workspace ${printable(folder)} ${problem}; name an existing folder`);
}

/** The session to continue, or a new one. Throws TEMPER_NOT_FOUND when `--continue` finds none. */
async function sessionOf(options: RunOptions, { metadata }: Agent, state: string): Promise<string> {
  if (options.session !== undefined) return options.session;
  if (options.continue !== true) return ulids.next('session');
  const { name, namespace = 'default' } = metadata;
  assertPlainFiles(state);
  const all = await listSessions(fileRecordStore(state));
  const last = all.find((summary) => summary.agent === name && summary.namespace === namespace);
  if (last !== undefined) return last.session;
  throw new TemperError(
    'TEMPER_NOT_FOUND',
    `--continue: agent "${name}" has no session in ${printable(options.state)}; leave --continue out to start one`,
  );
}

/** Files that agents must not open: manifests, providers, script, programs and skills. An agent must not be able to change its own policy. */
export function governingFiles(
  { providers, modelScript }: Pick<RunOptions, 'providers' | 'modelScript'>,
  { objects }: LoadedManifests,
  cwd: string,
  programs?: Pick<UserPrograms, 'agents' | 'mcp' | 'skills'>,
): string[] {
  const folders = programs === undefined ? [] : foldersOf(programs);
  const named = [providers, modelScript, ...folders];
  const configFiles = named.filter((file) => file !== undefined).map((file) => resolve(cwd, file));
  return [...new Set(objects.map(({ file }) => resolve(cwd, file))), ...configFiles];
}

function foldersOf({ agents, mcp, skills }: Pick<UserPrograms, 'agents' | 'mcp' | 'skills'>) {
  return [...agents.map(({ program }) => program?.folder), ...serverFolders(mcp), ...skills.roots];
}
