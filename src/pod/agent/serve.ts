import { rm } from 'node:fs/promises';
import { onAbort } from '../../lib/async/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import { RemoteBus } from '../../gateway-client/bus.ts';
import { EgressEndpoints } from '../../gateway-client/endpoints/egress-endpoints.ts';
import { GatewayConfigFiles } from '../../gateway-client/endpoints/gateway-config-files.ts';
import { GatewayClient } from '../../gateway-client/gateway-client.ts';
import type { Logger } from '../../telemetry/log.ts';
import { ErrorReporter } from '../error-reporter.ts';
import { markReady } from '../ready-file.ts';
import { prepareSocketFolder, socketPaths } from '../socket/socket-folder.ts';
import { PodPrograms, slotsOf } from './program/pod-programs.ts';
import { SandboxConnection } from './sandbox-connection.ts';
import { SpanReports } from './span-reports.ts';
import { AssignmentWatch, isFatal, RETRY_MS } from './assignment/assignment-watch.ts';
import { Readiness } from './assignment/readiness.ts';
import { WithheldSources } from '../../tempering/withheld/withheld-sources.ts';
import { openSlot } from './slots/slot.ts';
import { SlotPool } from './slots/slot-pool.ts';
import { podCloneLocation } from '../../toolbox/git/clone/clone-location.ts';
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
      // A warm pod keeps its sandbox: the agent that gets the pod has a message that waits.
      mayRest: () => state.assignment !== undefined,
    }),
  );
  const { endpoints: folder, tokenFile, egressTokenFile } = options;
  const configFiles = new GatewayConfigFiles({ folder, tokenFile, clock });
  const egress = new EgressEndpoints({ folder, tokenFile: egressTokenFile, clock });
  const client = open.use(new GatewayClient({ configFiles, clock, random }));
  const onSpanError = (error: unknown): void => log.warn({ error }, 'spans could not be exported');
  const spans = open.use(new SpanReports({ client, clock, ids, onError: onSpanError }));
  const shutdown = abortAfterGrace(signal, options.graceMs ?? DEFAULT_GRACE_MS);
  open.defer(() => shutdown.stop());
  const { workspace } = options;
  const toolCallLimiter = new ToolCallLimiter(clock);
  const sources = new WithheldSources();
  const programs = open.use(new PodPrograms({ sandbox, clock, ids }));
  const cloneLocation = podCloneLocation(sandbox);
  const shared = {
    client,
    egress,
    spans,
    sandbox,
    cloneLocation,
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
  const watch = new AssignmentWatch({ client, state, onTools: () => slots.refreshTools(), clock, ids, log });
  await runAllOrFail(signal, (inner) => [
    watch.run(inner),
    answerMessages({ ...options, signal: inner }, { client, slots, state, watch }),
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

interface MessageLoop {
  readonly client: GatewayClient;
  readonly slots: SlotPool;
  readonly state: Readiness;
  readonly watch: AssignmentWatch;
}

/**
 * Handles messages while the pod is assigned and its sandbox is connected, until the signal: as many at the same time as the agent
 * may work on. Requests the next one while a slot is free, so an idle pod has one request that waits.
 */
async function answerMessages(
  { signal, clock, ids, log }: AgentRoleOptions,
  { client, slots, state, watch }: MessageLoop,
): Promise<void> {
  const errors = new ErrorReporter(log, 'cannot get messages from the gateway');
  const bus = new RemoteBus({ client, clock, ids, deliveryToken: noDelivery });
  while (!signal.aborted) {
    const assignment = await state.whenReady(signal);
    if (assignment === undefined) break;
    await slots.whenFree(slotsOf(assignment.agent.spec), signal);
    if (signal.aborted) break;
    try {
      const interrupted = AbortSignal.any([signal, state.interruption]);
      const { version } = state.assignment ?? assignment;
      const delivery = await watch.duringPoll(() => bus.poll(version, interrupted));
      errors.clear();
      if (delivery !== undefined) slots.start(delivery, state.assignment ?? assignment);
    } catch (error) {
      if (isTemperError(error, 'TEMPER_CANCELLED')) continue;
      if (isFatal(error)) throw error;
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
