import type { CallOptions } from '../../../lib/call-options.ts';
import type { Clock } from '../../../lib/clock.ts';
import { isTemperError, TemperError } from '../../../lib/errors.ts';
import type { IdGenerator } from '../../../lib/ids.ts';
import { Notifier } from '../../../lib/async/notifier.ts';
import { fetchAssignment, POLL_SECONDS } from '../../../gateway-client/assignment.ts';
import type { PollResult, RemoteDelivery } from '../../../gateway-client/bus.ts';
import type { GatewayClient } from '../../../gateway-client/gateway-client.ts';
import type { Assignment } from '../../../gateway-api/pod-api.ts';
import type { Logger } from '../../../telemetry/log.ts';
import { ErrorReporter } from '../../error-reporter.ts';
import type { Readiness } from './readiness.ts';

export interface AssignmentWatchOptions {
  readonly client: Pick<GatewayClient, 'call'>;
  readonly state: Readiness;
  /** The tools of the agent changed. */
  readonly onTools: () => void;
  readonly clock: Clock;
  readonly ids: IdGenerator;
  readonly log: Logger;
}

/** Pause between attempts when the gateway is unavailable or rejects this pod. */
export const RETRY_MS = 1_000;
/** How long the pod may be without a poll for messages before the assignment gets a poll of its own. */
const GAP_MS = 1_000;

/**
 * Follows the assignment of this pod: a warm pod until it is bound, a bound pod for changes.
 *
 *   poll for messages waits, and the gateway watches the assignment with it ──► no request of its own
 *   warm pod · suspended · all slots at work · gateway of an older release ───► a long poll for the assignment
 *
 * So an idle pod has one request that waits, and one connection.
 */
export class AssignmentWatch {
  readonly #options: AssignmentWatchOptions;
  readonly #changes = new Notifier();
  /** A poll for messages is in progress. */
  #isPolling = false;
  /** The last poll for messages watched the assignment. The first one counts as one that does. */
  #isWatched = true;

  constructor(options: AssignmentWatchOptions) {
    this.#options = options;
  }

  /** Requests the assignment until the signal. Throws TEMPER_POD_INVALID when the pod cannot serve its agent. */
  async run(signal: AbortSignal): Promise<void> {
    const { state, clock, log } = this.#options;
    const errors = new ErrorReporter(log, 'cannot get the assignment from the gateway');
    // The first request does not wait: the gateway's response makes an unbound warm pod ready.
    let waitSeconds = 0;
    while (!signal.aborted) {
      try {
        await this.#whenUnwatched(signal);
        if (signal.aborted) return;
        const next = await this.#request(waitSeconds, signal);
        errors.clear();
        waitSeconds = POLL_SECONDS;
        if (next === undefined) state.setAssignment(undefined);
        else this.#receive(next);
      } catch (error) {
        if (signal.aborted) return;
        if (isFatal(error)) throw error;
        errors.report(error);
        await clock.sleep(RETRY_MS, signal).catch(() => undefined);
      }
    }
  }

  /** Makes a poll for messages. Throws what it throws, and TEMPER_POD_INVALID when the pod cannot serve its agent. */
  async duringPoll(poll: () => Promise<PollResult>): Promise<RemoteDelivery | undefined> {
    this.#isPolling = true;
    try {
      const { delivery, assignment, watchesAssignment = this.#isWatched } = await poll();
      this.#isWatched = watchesAssignment;
      if (assignment !== undefined) this.#receive(assignment);
      return delivery;
    } catch (error) {
      this.#isWatched = false;
      throw error;
    } finally {
      this.#isPolling = false;
      this.#changes.notifyAll();
    }
  }

  /** The next poll for messages follows within milliseconds while a slot is free. */
  async #whenUnwatched(signal: AbortSignal): Promise<void> {
    const { state } = this.#options;
    while (state.assignment !== undefined && this.#isWatched && !signal.aborted) {
      if (this.#isPolling) await this.#changes.wait(signal);
      else if (await this.#staysWithoutPoll(signal)) return;
    }
  }

  async #staysWithoutPoll(signal: AbortSignal): Promise<boolean> {
    await this.#options.clock.sleep(GAP_MS, signal).catch(() => undefined);
    return !this.#isPolling;
  }

  async #request(waitSeconds: number, signal: AbortSignal): Promise<Assignment | undefined> {
    const { client, state, clock, ids } = this.#options;
    const deadline = clock.monotonic() + POLL_SECONDS * 2_000;
    const op: CallOptions = { signal, deadline, key: ids.next('assignment') };
    return fetchAssignment(client, state.assignment?.version, waitSeconds, op);
  }

  #receive(next: Assignment): void {
    const { state, onTools, log } = this.#options;
    const { agent, version, suspended, tools } = next;
    const before = state.assignment;
    if (before !== undefined && before.agent.uid !== agent.uid) {
      throw new TemperError('TEMPER_POD_INVALID', 'a pod that is bound to one agent cannot be bound to another');
    }
    log.info({ agent: agent.name, namespace: agent.namespace, version, suspended }, 'assignment');
    state.setAssignment(next);
    if (tools !== before?.tools) onTools();
  }
}

/** The pod is not set up correctly, and no repetition changes that. */
export function isFatal(error: unknown): boolean {
  return isTemperError(error, 'TEMPER_POD_INVALID') && error.retry === 'never';
}
