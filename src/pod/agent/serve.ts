import { rm } from 'node:fs/promises';
import { onAbort } from '../../lib/async/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { fetchAssignment } from '../../gateway-client/assignment.ts';
import { RemoteBus } from '../../gateway-client/bus.ts';
import { GatewayConfigFiles } from '../../gateway-client/gateway-config-files.ts';
import { GatewayClient } from '../../gateway-client/gateway-client.ts';
import type { Assignment } from '../../gateway-api/pod-api.ts';
import type { Logger } from '../../telemetry/log.ts';
import { ErrorReporter } from '../error-reporter.ts';
import { markReady } from '../ready-file.ts';
import { prepareSocketFolder, socketPaths } from '../socket/socket-folder.ts';
import { PodPrograms, slotsOf } from './program/pod-programs.ts';
import { SandboxConnection } from './sandbox-connection.ts';
import { SpanReports } from './span-reports.ts';
import { Readiness } from './readiness.ts';
import { WithheldSources } from '../../tempering/withheld/withheld-sources.ts';
import { openSlot } from './slots/slot.ts';
import { SlotPool } from './slots/slot-pool.ts';
import { podClonePlace } from '../../toolbox/git/clone/clone-place.ts';
import { ToolCallLimiter } from './tool-call-limiter.ts';

export interface AgentRoleOptions {
  /** Folder with the address and TLS server name of the gateway and of the egress proxy, and their CA certificate. */
  endpoints: string;
  tokenFile: string;
  /** The token for the egress proxy. */
  egressTokenFile: string;
  /** Volume that both containers of the pod mount. */
  run: string;
  /** Folder of the agent's files, as a path in the sandbox container. */
  workspace: string;
  /** The user this process runs as. */
  uid: number;
  /** How long work on a message may continue after the pod is asked to stop, in milliseconds; 20 s when absent. */
  graceMs?: number;
  clock: Clock;
  ids: IdGenerator;
  random: () => number;
  log: Logger;
  /** Ends the role. */
  signal: AbortSignal;
}

const DEFAULT_GRACE_MS = 20_000;
const POLL_SECONDS = 25;
const MESSAGE_POLL_MS = 20_000;
/** Pause between attempts when the gateway is unavailable or rejects this pod. */
const RETRY_MS = 1_000;

/**
 * The agent container: waits for the sandbox container and its assignment, then handles messages until the signal.
 * Throws TEMPER_POD_INVALID when the pod is not set up correctly; any other error is a defect. While the gateway is unavailable,
 * it retries.
 */
export async function serveAgent(options: AgentRoleOptions): Promise<void> {
  const { run, uid, clock, ids, random, log, signal } = options;
  await using open = new AsyncDisposableStack();
  await prepareSocketFolder(run, uid);
  const paths = socketPaths(run);
  const state = new Readiness((ready) => markReady(paths.ready, ready, log));
  open.defer(() => rm(paths.ready, { force: true }));
  const sandbox = open.use(
    await SandboxConnection.listen(paths.socket, {
      clock,
      onChange(connected, reason) {
        log.info({ connected, reason }, 'sandbox');
        state.setSandboxConnected(connected);
      },
    }),
  );
  const { endpoints: folder, tokenFile, egressTokenFile } = options;
  const configFiles = new GatewayConfigFiles({ folder, tokenFile, clock });
  const egress = new GatewayConfigFiles({ folder, tokenFile: egressTokenFile, server: 'egress', clock });
  const client = open.use(new GatewayClient({ configFiles, clock, random }));
  const onSpanError = (error: unknown): void => log.warn({ error }, 'spans could not be exported');
  const spans = open.use(new SpanReports({ client, clock, ids, onError: onSpanError }));
  const shutdown = abortAfterGrace(signal, options.graceMs ?? DEFAULT_GRACE_MS);
  open.defer(() => shutdown.stop());
  const { workspace } = options;
  const toolCallLimiter = new ToolCallLimiter(clock);
  const sources = new WithheldSources();
  const programs = open.use(new PodPrograms({ sandbox, clock, ids }));
  const clonePlace = podClonePlace(sandbox);
  const shared = {
    client,
    egress,
    spans,
    sandbox,
    clonePlace,
    programs,
    workspace,
    toolCallLimiter,
    sources,
    clock,
    ids,
    log,
  };
  const onError = (error: unknown): void => log.error({ error }, 'the work on a message failed');
  const slots = open.use(new SlotPool(() => openSlot({ ...shared, shutdownSignal: shutdown.signal }), onError));
  await runAllOrFail(signal, (inner) => [
    watchAssignment({ ...options, signal: inner }, client, state, () => slots.refreshTools()),
    answerMessages({ ...options, signal: inner }, client, slots, state),
  ]);
}

/** Runs all loops. When one fails, aborts the others and waits for them, so that nothing they use is closed early. Rethrows the failure. */
async function runAllOrFail(
  signal: AbortSignal,
  start: (signal: AbortSignal) => readonly Promise<void>[],
): Promise<void> {
  const failed = new AbortController();
  const running = start(AbortSignal.any([signal, failed.signal])).map((loop) =>
    loop.catch((error: unknown) => {
      failed.abort(error);
      throw error;
    }),
  );
  const results = await Promise.allSettled(running);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/** Long-polls the assignment of this pod: a warm pod until it is bound, a bound pod for changes. */
async function watchAssignment(
  options: AgentRoleOptions,
  client: GatewayClient,
  state: Readiness,
  onTools: () => void,
): Promise<void> {
  const { signal, ids, clock, log } = options;
  const errors = new ErrorReporter(log, 'cannot get the assignment from the gateway');
  // The first request does not wait: the gateway's response makes an unbound warm pod ready.
  let waitSeconds = 0;
  while (!signal.aborted) {
    try {
      const op: CallOptions = {
        signal,
        deadline: clock.monotonic() + POLL_SECONDS * 2_000,
        key: ids.next('assignment'),
      };
      const next = await fetchAssignment(client, state.assignment?.version, waitSeconds, op);
      errors.clear();
      waitSeconds = POLL_SECONDS;
      if (next !== undefined) checkOwner(state, next, log);
      const hasOtherTools = next !== undefined && next.tools !== state.assignment?.tools;
      state.setAssignment(next);
      if (hasOtherTools) onTools();
    } catch (error) {
      if (signal.aborted) return;
      if (isTemperError(error, 'TEMPER_POD_INVALID') && error.retry === 'never') throw error;
      errors.report(error);
      await clock.sleep(RETRY_MS, signal).catch(() => undefined);
    }
  }
}

function checkOwner(state: Readiness, next: Assignment, log: Logger): void {
  const { agent, version, suspended } = next;
  const boundUid = state.assignment?.agent.uid;
  if (boundUid !== undefined && boundUid !== agent.uid) {
    throw new TemperError('TEMPER_POD_INVALID', 'a pod that is bound to one agent cannot be bound to another');
  }
  log.info({ agent: agent.name, namespace: agent.namespace, version, suspended }, 'assignment');
}

/**
 * Handles messages while the pod is assigned and its sandbox is connected, until the signal: as many at the same time as the agent
 * may work on. Requests the next one while a slot is free, so an idle pod has one request that waits.
 */
async function answerMessages(
  options: AgentRoleOptions,
  client: GatewayClient,
  slots: SlotPool,
  state: Readiness,
): Promise<void> {
  const { signal, clock, ids, log } = options;
  const errors = new ErrorReporter(log, 'cannot get messages from the gateway');
  const bus = new RemoteBus({ client, clock, ids, deliveryToken: noDelivery });
  while (!signal.aborted) {
    const assignment = await state.whenReady(signal);
    if (assignment === undefined) break;
    await slots.whenFree(slotsOf(assignment.agent.spec), signal);
    if (signal.aborted) break;
    try {
      const deadline = clock.monotonic() + MESSAGE_POLL_MS;
      const op: CallOptions = {
        signal: AbortSignal.any([signal, state.interruption]),
        deadline,
        key: ids.next('next'),
      };
      const delivery = await bus.next(op);
      errors.clear();
      slots.start(delivery, state.assignment ?? assignment);
    } catch (error) {
      if (isTemperError(error, 'TEMPER_TIMEOUT') || isTemperError(error, 'TEMPER_CANCELLED')) continue;
      errors.report(error);
      await clock.sleep(RETRY_MS, signal).catch(() => undefined);
    }
  }
  await slots.idle();
}

/** The receiver of messages sends none. */
function noDelivery(): never {
  throw new TemperError('TEMPER_DELIVERY_LOST', 'no message is being processed');
}

/** A signal that aborts `milliseconds` after `signal`. */
function abortAfterGrace(signal: AbortSignal, milliseconds: number): { signal: AbortSignal; stop(): void } {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const listener = onAbort(signal, () => {
    timer = setTimeout(
      () => controller.abort(new DOMException('the pod is shutting down', 'AbortError')),
      milliseconds,
    );
  });
  return {
    signal: controller.signal,
    stop() {
      clearTimeout(timer);
      listener[Symbol.dispose]();
    },
  };
}
