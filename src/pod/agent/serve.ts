import { rm, writeFile } from 'node:fs/promises';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { Ids } from '../../lib/ids.ts';
import type { Op } from '../../lib/operation.ts';
import { nextAssignment } from '../../remote/assignment.ts';
import { RemoteBus } from '../../remote/bus.ts';
import { Claims } from '../../remote/claims.ts';
import { DoorFiles } from '../../remote/door-files.ts';
import { GatewayClient } from '../../remote/gateway-client.ts';
import type { Assignment } from '../../remote/wire.ts';
import type { Logger } from '../../telemetry/log.ts';
import { ownFolder, socketPaths } from '../socket/folder.ts';
import { SandboxLink } from './sandbox-link.ts';
import { SpanReports } from './span-reports.ts';
import { State } from './state.ts';
import { WorkInHand } from './work.ts';
import { Worker } from './worker.ts';

export interface AgentRoleOptions {
  /** Folder with the gateway's address, name and authority. */
  doors: string;
  tokenFile: string;
  /** Volume that both containers mount. */
  run: string;
  /** Where the sandbox container has the agent's files. */
  workspace: string;
  /** The user this process runs as. */
  uid: number;
  /** How long a message may go on once the pod must stop, in milliseconds; 20 s when absent. */
  graceMilliseconds?: number;
  clock: Clock;
  ids: Ids;
  random: () => number;
  log: Logger;
  /** Ends the role. */
  signal: AbortSignal;
}

const GRACE_MILLISECONDS = 20_000;
const POLL_SECONDS = 25;
const MESSAGE_POLL_MILLISECONDS = 20_000;
/** Between tries when the gateway does not take this pod, or is not there. */
const PAUSE_MILLISECONDS = 1_000;

/**
 * The agent container: waits for its sandbox and its assignment, then answers one message after another until the signal. Throws
 * TEMPER_POD_INVALID when the pod is not made as it must be, and nothing else but defects: a gateway that is away is waited for.
 */
export async function serveAgent(options: AgentRoleOptions): Promise<void> {
  const { run, uid, clock, ids, random, log, signal } = options;
  await using open = new AsyncDisposableStack();
  await ownFolder(run, uid);
  const paths = socketPaths(run);
  const state = new State((ready) => markReady(paths.ready, ready, log));
  open.defer(() => rm(paths.ready, { force: true }));
  const sandbox = open.use(
    await SandboxLink.listen(paths.socket, {
      clock,
      onChange(connected, reason) {
        log.info({ connected, reason }, 'sandbox');
        state.sandbox(connected);
      },
    }),
  );
  const doors = new DoorFiles({ folder: options.doors, tokenFile: options.tokenFile, clock });
  const client = open.use(new GatewayClient({ doors, clock, random }));
  const onTrouble = (problem: string): void => log.warn({ problem }, 'claims');
  const claims = open.use(new Claims({ client, clock, ids, onTrouble }));
  const untold = (error: unknown): void => log.warn({ error }, 'spans were not taken');
  const spans = open.use(new SpanReports({ client, clock, ids, failed: untold }));
  const work = new WorkInHand();
  const bus = new RemoteBus({ client, clock, ids, lease: work.lease });
  const givingUp = giveUpAfter(signal, options.graceMilliseconds ?? GRACE_MILLISECONDS);
  open.defer(() => givingUp.stop());
  const { workspace } = options;
  const worker = new Worker({
    client,
    bus,
    claims,
    spans,
    work,
    sandbox,
    workspace,
    clock,
    ids,
    log,
    givingUp: givingUp.signal,
  });
  open.defer(() => worker.stop());
  await bothUntilOneFails(signal, (inner) => [
    watchAssignment({ ...options, signal: inner }, client, state),
    answerMessages({ ...options, signal: inner }, bus, worker, state),
  ]);
}

/** A failure of one ends the other too, before anything they use is closed. */
async function bothUntilOneFails(
  signal: AbortSignal,
  begin: (signal: AbortSignal) => readonly Promise<void>[],
): Promise<void> {
  const failed = new AbortController();
  const running = begin(AbortSignal.any([signal, failed.signal])).map((work) =>
    work.catch((error: unknown) => {
      failed.abort(error);
      throw error;
    }),
  );
  const ended = await Promise.allSettled(running);
  for (const end of ended) if (end.status === 'rejected') throw end.reason;
}

/** Asks who this pod is, again and again: a warm pod until it is bound, a bound one for what changes. */
async function watchAssignment(options: AgentRoleOptions, client: GatewayClient, state: State): Promise<void> {
  const { signal, ids, clock, log } = options;
  const trouble = new Trouble(log, 'the gateway gives no assignment');
  // The first answer comes at once, so that a pod which is nobody's yet can say that it is ready to be somebody's.
  let wait = 0;
  while (!signal.aborted) {
    try {
      const op: Op = { signal, deadline: clock.monotonic() + POLL_SECONDS * 2_000, key: ids.next('assignment') };
      const next = await nextAssignment(client, state.assignment?.version, wait, op);
      trouble.over();
      wait = POLL_SECONDS;
      if (next !== undefined) checkOwner(state, next, log);
      state.answered(next);
    } catch (error) {
      if (signal.aborted) return;
      if (isTemperError(error, 'TEMPER_POD_INVALID') && error.retry === 'never') throw error;
      trouble.tell(error);
      await clock.sleep(PAUSE_MILLISECONDS, signal).catch(() => undefined);
    }
  }
}

function checkOwner(state: State, next: Assignment, log: Logger): void {
  const { agent, version, suspended } = next;
  const before = state.assignment?.agent.uid;
  if (before !== undefined && before !== agent.uid) {
    throw new TemperError('TEMPER_POD_INVALID', 'a pod that belongs to one agent cannot become another');
  }
  log.info({ agent: agent.name, namespace: agent.namespace, version, suspended }, 'assignment');
}

/** One message at a time, while there is an assignment, a sandbox, and nobody wants this pod to stop. */
async function answerMessages(options: AgentRoleOptions, bus: RemoteBus, worker: Worker, state: State): Promise<void> {
  const { signal, clock, ids, log } = options;
  const trouble = new Trouble(log, 'the gateway gives no messages');
  while (!signal.aborted) {
    const assignment = await state.whenReady(signal);
    if (assignment === undefined) return;
    try {
      const deadline = clock.monotonic() + MESSAGE_POLL_MILLISECONDS;
      const op: Op = { signal: AbortSignal.any([signal, state.interruption]), deadline, key: ids.next('next') };
      const delivery = await bus.next(op);
      trouble.over();
      await worker.handle(delivery, state.assignment ?? assignment);
    } catch (error) {
      if (isTemperError(error, 'TEMPER_TIMEOUT') || isTemperError(error, 'TEMPER_CANCELLED')) continue;
      trouble.tell(error);
      await clock.sleep(PAUSE_MILLISECONDS, signal).catch(() => undefined);
    }
  }
}

/** The same trouble is told once, and when it is over. */
class Trouble {
  readonly #log: Logger;
  readonly #what: string;
  #told: string | undefined;

  constructor(log: Logger, what: string) {
    this.#log = log;
    this.#what = what;
  }

  tell(error: unknown): void {
    const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
    if (this.#told !== code) this.#log.warn({ error }, this.#what);
    this.#told = code;
  }

  over(): void {
    if (this.#told !== undefined) this.#log.info({ code: this.#told }, `over: ${this.#what}`);
    this.#told = undefined;
  }
}

function giveUpAfter(signal: AbortSignal, milliseconds: number): { signal: AbortSignal; stop(): void } {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const begin = (): void => {
    timer = setTimeout(() => controller.abort(new DOMException('the pod stops', 'AbortError')), milliseconds);
  };
  if (signal.aborted) begin();
  else signal.addEventListener('abort', begin, { once: true });
  return {
    signal: controller.signal,
    stop() {
      clearTimeout(timer);
      signal.removeEventListener('abort', begin);
    },
  };
}

/** What the readiness probe looks for. */
async function markReady(file: string, ready: boolean, log: Logger): Promise<void> {
  try {
    if (ready) await writeFile(file, '', { mode: 0o640 });
    else await rm(file, { force: true });
    log.info({ ready }, 'readiness');
  } catch (error) {
    log.error({ error }, 'readiness cannot be told');
  }
}
