import type { Envelope } from '../../bus/port.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, messageOf } from '../../lib/errors.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { RemoteBus, RemoteDelivery } from '../../gateway-client/bus.ts';
import type { LastReports, ReportSender } from '../../gateway-client/report-sender.ts';
import type { Assignment, OutcomeContent, SessionAppend } from '../../gateway-api/pod-api.ts';
import { storeAppend } from '../../gateway-client/stores.ts';
import type { Logger } from '../../telemetry/log.ts';
import { traceIdOf } from '../../telemetry/traceparent.ts';
import { createPodEngine, engineVersion, type PodEngine, type PodEngineDeps } from './pod-engine.ts';
import {
  callErrorOutcome,
  loggedError,
  type MessageOutcome,
  replyOutcome,
  errorOutcome,
} from '../../agent/messages/message-outcome.ts';
import { withheldOutcome } from './withheld-engine.ts';
import type { SpanReports } from './span-reports.ts';
import type { CurrentMessage } from './current-message.ts';

export interface WorkerDeps extends PodEngineDeps {
  bus: RemoteBus;
  reports: ReportSender;
  spans: SpanReports;
  currentMessage: CurrentMessage;
  clock: Clock;
  ids: IdGenerator;
  log: Logger;
  /** Aborted at the end of the grace period: work in progress stops and its message is returned for redelivery. */
  shutdownSignal: AbortSignal;
}

/** Upper bound for the work on one message, even when its deadline is later. */
const MAX_MESSAGE_MS = 24 * 3_600_000;
/** How long to retry the ack or nak of a delivery. Afterwards the delivery token expires and the message is redelivered. */
const SETTLE_TIMEOUT_MS = 60_000;
/** The same during shutdown: the kubelet kills a pod that does not stop in time. */
const SHUTDOWN_SETTLE_TIMEOUT_MS = 4_000;

/** A revoked tool has to leave the session within five seconds. */
const REFRESH_TIMEOUT_MS = 4_000;
const REFRESH_RETRY_MS = 500;
const MAX_REFRESH_ATTEMPTS = 5;

const REFUSED_STATUSES: ReadonlySet<unknown> = new Set([400, 413, 422]);

type MessageEnd = Exclude<MessageOutcome, { end: 'lost' }>;

/**
 * Handles delivered messages, one after another, each with the assignment that is current when its work starts. A pod has a worker for
 * each message that it works on at the same time; they share nothing that belongs to a message. `handle` wraps the engine:
 *
 *   handle (log fields, spans) → #handle (extends the delivery token, current message, ack/nak) → #run (engine, errors to outcomes)
 */
export class Worker {
  readonly #deps: WorkerDeps;
  /** Adds the fields of the current message to every line. */
  #log: Logger;
  #engine: PodEngine | undefined;

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
    this.#log = deps.log;
  }

  async handle(delivery: RemoteDelivery, assignment: Assignment): Promise<void> {
    const { log, spans } = this.#deps;
    this.#log = log.child(logFieldsOf(delivery, assignment));
    await spans.during(delivery, () => this.#handle(delivery, assignment));
  }

  async #handle(delivery: RemoteDelivery, assignment: Assignment): Promise<void> {
    const { shutdownSignal, currentMessage, staged, toolCalls, clock } = this.#deps;
    const { session, root } = delivery.message;
    const started = clock.monotonic();
    const tokenLost = new AbortController();
    const signal = AbortSignal.any([shutdownSignal, tokenLost.signal]);
    const extending = this.#extendDelivery(delivery, tokenLost);
    try {
      const { history } = delivery.session;
      const delivered = history === undefined ? {} : { history };
      const context = { deliveryToken: delivery.token, session, rootMessage: root, signal, ...delivered };
      const outcome = await currentMessage.during(context, async () => {
        const result = withheldOutcome(await this.#run(delivery, assignment, signal), this.#engine?.withheld);
        if (tokenLost.signal.aborted || result.end === 'lost')
          this.#log.warn({}, 'the message was redelivered to another pod');
        else await this.#settle(delivery, result);
        return result;
      });
      const milliseconds = Math.round(clock.monotonic() - started);
      this.#log.info({ end: outcome.end, milliseconds }, 'finished work on a message');
    } finally {
      extending.stop();
      staged.clear();
      toolCalls.clear();
    }
  }

  async stop(): Promise<void> {
    await this.#engine?.engine.stop();
  }

  /** Applies a change of the tools of tiers Agent and Shared, or a revocation, to the message in progress. Never throws. */
  async refreshTools(): Promise<void> {
    const { clock, ids, shutdownSignal } = this.#deps;
    for (let attempt = 1; attempt <= MAX_REFRESH_ATTEMPTS && !shutdownSignal.aborted; attempt += 1) {
      try {
        const deadline = clock.monotonic() + REFRESH_TIMEOUT_MS;
        await this.#engine?.tools.refresh({ signal: shutdownSignal, deadline, key: ids.next('tools') });
        return;
      } catch (error) {
        this.#log.warn({ error, attempt }, 'the tools of the session could not be updated');
        await clock.sleep(REFRESH_RETRY_MS, shutdownSignal).catch(() => undefined);
      }
    }
  }

  async #run(delivery: RemoteDelivery, assignment: Assignment, signal: AbortSignal): Promise<MessageOutcome> {
    const { message } = delivery;
    const { reports } = this.#deps;
    try {
      const { engine, tools } = await this.#engineOf(assignment);
      const op: CallOptions = { signal, deadline: this.#deadline(message.deadline), key: message.id };
      await tools.open(message.session, op, delivery.session.tools);
      const { session, text, root, call, source = 'User', tainted = false } = message;
      const called = call === undefined ? {} : { call };
      const incoming = { session, text, rootMessage: root, message: message.id, source, tainted, ...called };
      const handled = await engine.handle(incoming, op);
      // Those that precede the last ones are sent before the reply; the end of the message carries the last ones.
      await reports.last(op);
      return replyOutcome(handled);
    } catch (error) {
      return this.#onError(error, message);
    }
  }

  async #onError(error: unknown, { call }: Envelope): Promise<MessageOutcome> {
    const { shutdownSignal } = this.#deps;
    if (shutdownSignal.aborted) return { end: 'retry', delayMs: 0, code: 'TEMPER_CANCELLED' };
    const outcome = call === undefined ? errorOutcome(error) : callErrorOutcome(error);
    const fields = loggedError(error, outcome);
    this.#log[outcome.end === 'answer' ? 'info' : 'warn'](fields, 'the engine failed to handle a message');
    return outcome;
  }

  /** The reports for the end of the message. A failure is only logged, so that the user still gets the reply. */
  async #lastReports(): Promise<LastReports | undefined> {
    try {
      return await this.#deps.reports.last(this.#op(SETTLE_TIMEOUT_MS));
    } catch (error) {
      this.#log.warn({ error }, 'reports could not be sent');
      return undefined;
    }
  }

  async #flushReports(): Promise<void> {
    try {
      await this.#deps.reports.flush(this.#op(SETTLE_TIMEOUT_MS));
    } catch (error) {
      this.#log.warn({ error }, 'reports could not be sent');
    }
  }

  /** Creates a new engine when the assignment changed since the previous message. */
  async #engineOf(assignment: Assignment): Promise<PodEngine> {
    if (this.#engine?.version === engineVersion(assignment)) return this.#engine;
    await this.#engine?.engine.stop();
    this.#engine = undefined;
    const provider = await this.#deps.programs.portOf(assignment.agent.spec);
    this.#engine = createPodEngine(this.#deps, assignment, provider);
    return this.#engine;
  }

  /**
   * Acks or naks the delivery, with what the gateway does not have yet. When the gateway does not receive this, the delivery token expires
   * and the message is redelivered.
   */
  async #settle(delivery: RemoteDelivery, outcome: MessageEnd): Promise<void> {
    const { shutdownSignal, staged } = this.#deps;
    const op = this.#op(shutdownSignal.aborted ? SHUTDOWN_SETTLE_TIMEOUT_MS : SETTLE_TIMEOUT_MS);
    try {
      const append = await staged.forEnd(this.#storeAppend(delivery));
      const last = reportsAtEnd(outcome) ? await this.#lastReports() : undefined;
      await endDelivery(delivery, outcome, op, {
        ...(append === undefined ? {} : { append }),
        ...(last === undefined ? {} : { reports: { key: last.key, batch: last.batch } }),
        ...this.#toolCalls(),
      });
      last?.accepted();
    } catch (error) {
      if (isRefused(error)) await this.#settleInSteps(delivery, outcome, op);
      else this.#log.warn({ error, end: outcome.end }, 'could not ack or nak a message');
    }
  }

  /** The gateway refused the end with what it carried: a part of that can fail without the others, and decides the outcome. */
  async #settleInSteps(delivery: RemoteDelivery, outcome: MessageEnd, op: CallOptions): Promise<void> {
    const { staged } = this.#deps;
    let end: MessageOutcome = outcome;
    try {
      await staged.flush(this.#storeAppend(delivery));
    } catch (error) {
      staged.clear();
      end = errorOutcome(error);
      this.#log.warn({ error, end: end.end }, 'the items of a message could not be stored');
    }
    try {
      if (reportsAtEnd(end)) await this.#flushReports();
      if (end.end !== 'lost') await endDelivery(delivery, end, op, this.#toolCalls());
    } catch (error) {
      this.#log.warn({ error, end: end.end }, 'could not ack or nak a message');
    }
  }

  #toolCalls(): Pick<OutcomeContent, 'toolCalls'> {
    const counts = this.#deps.toolCalls.counts();
    return counts.length === 0 ? {} : { toolCalls: counts };
  }

  #storeAppend({ message }: RemoteDelivery): (append: SessionAppend) => Promise<void> {
    const { client, clock, ids, currentMessage } = this.#deps;
    const { deliveryToken, signal } = currentMessage;
    return storeAppend(message.session, { client, clock, ids, deliveryToken, signal });
  }

  /** Extends the delivery token after each half of its lifetime; aborts the work when the token is lost. */
  #extendDelivery(delivery: RemoteDelivery, tokenLost: AbortController): { stop(): void } {
    const log = this.#log;
    const half = Math.max(100, delivery.ackTimeoutMs / 2);
    const extend = async (): Promise<void> => {
      try {
        await delivery.extend(this.#op(half));
      } catch (error) {
        if (isTemperError(error, 'TEMPER_DELIVERY_LOST')) tokenLost.abort(error);
        else log.warn({ reason: messageOf(error, 300) }, 'could not extend the delivery token');
      }
    };
    const timer = setInterval(() => void extend(), half);
    return { stop: () => clearInterval(timer) };
  }

  #deadline(time: string): number {
    const { clock } = this.#deps;
    const remaining = Date.parse(time) - clock.now().getTime();
    return clock.monotonic() + Math.min(MAX_MESSAGE_MS, Number.isNaN(remaining) ? 0 : remaining);
  }

  #op(milliseconds: number): CallOptions {
    const { clock, ids } = this.#deps;
    return {
      signal: new AbortController().signal,
      deadline: clock.monotonic() + milliseconds,
      key: ids.next('settle'),
    };
  }
}

/** Followers of the session see what happened before the reply, or before the turn was parked. */
function reportsAtEnd({ end }: MessageOutcome): boolean {
  return end === 'answer' || end === 'park';
}

async function endDelivery(
  delivery: RemoteDelivery,
  outcome: MessageEnd,
  op: CallOptions,
  content: OutcomeContent,
): Promise<void> {
  if (outcome.end === 'answer') await delivery.ackWithReply(outcome.reply, outcome.finishReason, op, content);
  else if (outcome.end === 'park') await delivery.park(outcome.requests, op, content);
  else if (outcome.end === 'retry') await delivery.redeliver(outcome.delayMs, op, content);
  else await delivery.deadLetter(outcome.code, outcome.message, op, content);
}

/** A repeated request would be refused again: it is invalid or too large, or another writer appended to the session. */
function isRefused(error: unknown): boolean {
  return (
    isTemperError(error, 'TEMPER_STATE_CORRUPT') ||
    (isTemperError(error) && REFUSED_STATUSES.has(error.details['status']))
  );
}

/** Log fields that identify a message; never its content. */
function logFieldsOf({ message }: RemoteDelivery, { agent }: Assignment): object {
  const { id, session, root, traceparent } = message;
  const traceId = traceIdOf(traceparent);
  const traced = traceId === undefined ? {} : { traceId };
  return { agent: agent.name, messageId: id, session, rootMessage: root, ...traced };
}
