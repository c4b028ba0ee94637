import { a2aPath } from '../../../a2a/card.ts';
import { hasRuns } from '../../../api/schedule/definition.ts';
import { triggersOf } from '../../../api/schedule/triggers.ts';
import { WEBHOOKS_PATH, type WebhookPath } from '../../../events/webhook/request.ts';
import { systemClock } from '../../../lib/clock.ts';
import { messageOf } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import type { Standalone } from '../../../standalone/standalone.ts';
import { type AgentDefinition } from '../../../standalone/team/member.ts';
import { type CliIo, EXIT } from '../../io.ts';
import type { RunOptions } from '../run-options.ts';
import { startA2aServer } from '../a2a/a2a-server.ts';
import { CALLERS_FILE, type LocalCallers, readLocalCallers } from '../a2a/callers-file.ts';
import { readWebhookKeys, WEBHOOK_KEYS_FILE, type LocalWebhookKeys, webhookName } from '../webhooks/webhook-keys.ts';
import { startWebhookServer } from '../webhooks/webhook-server.ts';

type Served = Pick<Standalone, 'serve' | 'receiveWebhook' | 'peerCalls'>;
type Ports = Pick<RunOptions, 'webhooks' | 'a2a'>;

/** What a run needs to serve, from files of the user. */
export interface ServedPorts {
  readonly webhooks?: { port: number; keys: LocalWebhookKeys };
  readonly a2a?: { port: number; callers: LocalCallers };
}

/** Read before anything is started. Throws TEMPER_MANIFEST_INVALID for a file that others can read or whose form is wrong. */
export async function readServedPorts({ webhooks, a2a }: Ports, io: CliIo): Promise<ServedPorts> {
  return {
    ...(webhooks === undefined ? {} : { webhooks: { port: webhooks, keys: await readWebhookKeys(io) } }),
    ...(a2a === undefined ? {} : { a2a: { port: a2a, callers: await readLocalCallers(io) } }),
  };
}

/**
 * Starts the runs of schedules, receives the requests of webhooks and answers callers over A2A, until an interrupt. Work that has not ended
 * then stays for the next run with this state folder.
 */
export async function serveTeam(
  standalone: Served,
  team: readonly AgentDefinition[],
  { webhooks, a2a }: ServedPorts,
  io: CliIo,
): Promise<number> {
  const names = team.map(({ agent }) => agent.metadata.name).join(', ');
  await using receiving = new AsyncDisposableStack();
  if (webhooks !== undefined) receiving.use(await receiveWebhooks(standalone, team, webhooks, io));
  if (a2a !== undefined) receiving.use(await answerCallers(standalone, team, a2a, io));
  io.error(`note: serving ${printable(names, 1_000)}; Ctrl-C ends the run\n`);
  await standalone.serve(io.signal);
  return EXIT.ok;
}

async function receiveWebhooks(
  standalone: Served,
  team: readonly AgentDefinition[],
  { port, keys }: NonNullable<ServedPorts['webhooks']>,
  io: CliIo,
) {
  const server = await startWebhookServer({
    port,
    clock: systemClock,
    receive: (path, request) => standalone.receiveWebhook(path, request, keys.get(webhookName(path)) ?? []),
    onError: (message) => io.error(`${message}\n`),
  });
  noteKeys(team, keys, io);
  io.error(`note: webhooks at ${server.url}${WEBHOOKS_PATH}/NAMESPACE/AGENT/TRIGGER\n`);
  return server;
}

async function answerCallers(
  standalone: Served,
  team: readonly AgentDefinition[],
  { port, callers }: NonNullable<ServedPorts['a2a']>,
  io: CliIo,
) {
  const onError = (message: string): void => io.error(`${message}\n`);
  const server = await startA2aServer({
    port,
    callers,
    calls: (path, account, url) => {
      const unexpected = (error: unknown): void =>
        onError(`a call over A2A failed: ${printable(messageOf(error, 500))}`);
      return standalone.peerCalls(path, account, { url, unexpected });
    },
    signal: io.signal,
    onError,
  });
  if (callers.size === 0) io.error(`note: ${CALLERS_FILE} has no caller, so every call over A2A is refused\n`);
  for (const path of servedOverA2a(team)) io.error(`note: A2A at ${server.url}${path}\n`);
  return server;
}

function servedOverA2a(team: readonly AgentDefinition[]): string[] {
  return team.flatMap(({ agent: { metadata, spec } }) =>
    spec.a2a?.enabled === true ? [a2aPath({ namespace: metadata.namespace ?? 'default', agent: metadata.name })] : [],
  );
}

/** Names what starts no work in this run. */
export function noteIdle(team: readonly AgentDefinition[], { serve, webhooks, a2a }: RunOptions, io: CliIo): void {
  if (a2a === undefined) noteCallers(team, io);
  if (webhooks === undefined) noteWebhooks(team, io);
  if (serve !== true) noteSchedules(team, io);
}

/** Without --webhooks no request arrives, which a user of a webhook has to know. */
function noteWebhooks(team: readonly AgentDefinition[], io: CliIo): void {
  const names = webhooksOf(team).map(({ agent, trigger }) => `${agent}.${trigger}`);
  if (names.length === 0) return;
  const shown = printable(names.join(', '), 1_000);
  io.error(`note: these triggers get events only with temper run --serve --webhooks PORT: ${shown}\n`);
}

/** Without --a2a no caller reaches an agent that lists some. */
function noteCallers(team: readonly AgentDefinition[], io: CliIo): void {
  const names = team.flatMap(({ agent: { metadata, spec } }) => (spec.a2a?.enabled === true ? [metadata.name] : []));
  if (names.length === 0) return;
  const shown = printable(names.join(', '), 1_000);
  io.error(`note: callers over A2A reach these agents only with temper run --serve --a2a PORT: ${shown}\n`);
}

/** A webhook without a key accepts nothing. */
function noteKeys(team: readonly AgentDefinition[], keys: LocalWebhookKeys, io: CliIo): void {
  const names = webhooksOf(team).map(webhookName);
  const without = names.filter((name) => !keys.has(name));
  if (without.length === 0) return;
  const shown = printable(without.join(', '), 1_000);
  io.error(`note: ${WEBHOOK_KEYS_FILE} has no key for ${shown}; temper webhook prints how to create one\n`);
}

function webhooksOf(team: readonly AgentDefinition[]): WebhookPath[] {
  return team.flatMap(({ agent: { metadata, spec } }) => {
    const { name: agent, namespace = 'default' } = metadata;
    return triggersOf(spec).flatMap(({ name, webhook }) =>
      webhook === undefined ? [] : [{ namespace, agent, trigger: name }],
    );
  });
}

/** Without --serve no run starts, which a user of a schedule has to know. */
function noteSchedules(team: readonly AgentDefinition[], io: CliIo): void {
  const names = team.flatMap(({ agent }) => {
    const { schedule } = agent.spec;
    return schedule !== undefined && hasRuns(schedule) ? [agent.metadata.name] : [];
  });
  if (names.length === 0) return;
  io.error(`note: the schedules of ${printable(names.join(', '), 1_000)} start runs only with temper run --serve\n`);
}
