import type { Clock } from '../../lib/clock.ts';
import { isTemperError, messageOf } from '../../lib/errors.ts';
import type { Ids } from '../../lib/ids.ts';
import type { Op } from '../../lib/operation.ts';
import type { RemoteBus, RemoteDelivery } from '../../remote/bus.ts';
import type { Claims } from '../../remote/claims.ts';
import type { Assignment } from '../../remote/wire.ts';
import type { Logger } from '../../telemetry/log.ts';
import { traceIdOf } from '../../telemetry/traceparent.ts';
import { createPodEngine, type PodEngine, type PodEngineParts } from './pod-engine.ts';
import { type Verdict, verdictOf, verdictOfFailure } from './verdict.ts';
import type { SpanReports } from './span-reports.ts';
import type { WorkInHand } from './work.ts';

export interface WorkerParts extends PodEngineParts {
  bus: RemoteBus;
  claims: Claims;
  spans: SpanReports;
  work: WorkInHand;
  clock: Clock;
  ids: Ids;
  log: Logger;
  /** Aborted when what is under way must be given back. */
  givingUp: AbortSignal;
}

/** No message is worked on for longer, whatever its deadline says. */
const LONGEST_MILLISECONDS = 24 * 3_600_000;
/** The end of a message is told for so long before it is left to the lease. */
const SETTLE_MILLISECONDS = 60_000;
/** The platform ends a pod that does not stop in time. */
const HURRY_MILLISECONDS = 4_000;

/** Works on one delivered message after another, with the assignment as it is then. */
export class Worker {
  readonly #parts: WorkerParts;
  /** Says of every line which message it is about. */
  #log: Logger;
  #engine: PodEngine | undefined;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
    this.#log = parts.log;
  }

  async handle(delivery: RemoteDelivery, assignment: Assignment): Promise<void> {
    const { log, spans } = this.#parts;
    this.#log = log.child(factsOf(delivery, assignment));
    await spans.during(delivery, () => this.#handle(delivery, assignment));
  }

  async #handle(delivery: RemoteDelivery, assignment: Assignment): Promise<void> {
    const { givingUp, work, clock } = this.#parts;
    const { session, root } = delivery.message;
    const started = clock.monotonic();
    const over = new AbortController();
    const signal = AbortSignal.any([givingUp, over.signal]);
    const extending = this.#keepLease(delivery, over);
    try {
      const verdict = await work.during({ lease: delivery.lease, session, rootMessage: root, signal }, () =>
        this.#verdict(delivery, assignment, signal),
      );
      if (over.signal.aborted || verdict.end === 'lost') this.#log.warn({}, 'the message went to another pod');
      else await this.#settle(delivery, verdict);
      const milliseconds = Math.round(clock.monotonic() - started);
      this.#log.info({ end: verdict.end, milliseconds }, 'the work on a message ended');
    } finally {
      extending.stop();
    }
  }

  async stop(): Promise<void> {
    await this.#engine?.engine.stop();
  }

  async #verdict(delivery: RemoteDelivery, assignment: Assignment, signal: AbortSignal): Promise<Verdict> {
    const { message } = delivery;
    const { claims } = this.#parts;
    try {
      const { engine, tools } = await this.#engineOf(assignment);
      const op: Op = { signal, deadline: this.#deadline(message.deadline), key: message.id };
      await tools.open(message.session, op);
      const { session, text, root } = message;
      const handled = await engine.handle({ session, text, rootMessage: root, message: message.id }, op);
      await claims.flush(op);
      return verdictOf(handled);
    } catch (error) {
      return this.#verdictOfFailure(error);
    }
  }

  async #verdictOfFailure(error: unknown): Promise<Verdict> {
    const { givingUp } = this.#parts;
    if (givingUp.aborted) return { end: 'retry', afterMilliseconds: 0, code: 'TEMPER_CANCELLED' };
    const verdict = verdictOfFailure(error);
    const fields = { error, end: verdict.end };
    this.#log[verdict.end === 'answer' ? 'info' : 'warn'](fields, 'a message could not be answered');
    if (verdict.end === 'answer') await this.#tellClaims();
    return verdict;
  }

  /** Before the end of a message that failed: what it did must be known, but the person waits. */
  async #tellClaims(): Promise<void> {
    const { claims } = this.#parts;
    try {
      await claims.flush(this.#op(SETTLE_MILLISECONDS));
    } catch (error) {
      this.#log.warn({ error }, 'claims were not taken');
    }
  }

  /** Made anew when the assignment changed since the last message. */
  async #engineOf(assignment: Assignment): Promise<PodEngine> {
    if (this.#engine?.version === assignment.version) return this.#engine;
    await this.#engine?.engine.stop();
    this.#engine = undefined;
    this.#engine = createPodEngine(this.#parts, assignment);
    return this.#engine;
  }

  /** Tells the end of a message. When that does not arrive, the lease runs out and the message is delivered again. */
  async #settle(delivery: RemoteDelivery, verdict: Exclude<Verdict, { end: 'lost' }>): Promise<void> {
    const { givingUp } = this.#parts;
    const op = this.#op(givingUp.aborted ? HURRY_MILLISECONDS : SETTLE_MILLISECONDS);
    try {
      if (verdict.end === 'answer') await delivery.answer(verdict.reply, verdict.ending, op);
      else if (verdict.end === 'retry') await delivery.giveBack(verdict.afterMilliseconds, op);
      else await delivery.refuse(verdict.code, verdict.message, op);
    } catch (error) {
      this.#log.warn({ error, end: verdict.end }, 'the end of a message was not taken');
    }
  }

  /** Extends the lease when half of it is over; withdraws the work when it is lost. */
  #keepLease(delivery: RemoteDelivery, over: AbortController): { stop(): void } {
    const log = this.#log;
    const half = Math.max(100, delivery.leaseMilliseconds / 2);
    const extend = async (): Promise<void> => {
      try {
        await delivery.extend(this.#op(half));
      } catch (error) {
        if (isTemperError(error, 'TEMPER_LEASE_LOST')) over.abort(error);
        else log.warn({ reason: messageOf(error, 300) }, 'the lease could not be extended');
      }
    };
    const timer = setInterval(() => void extend(), half);
    return { stop: () => clearInterval(timer) };
  }

  #deadline(time: string): number {
    const { clock } = this.#parts;
    const left = Date.parse(time) - clock.now().getTime();
    return clock.monotonic() + Math.min(LONGEST_MILLISECONDS, Number.isNaN(left) ? 0 : left);
  }

  #op(milliseconds: number): Op {
    const { clock, ids } = this.#parts;
    return {
      signal: new AbortController().signal,
      deadline: clock.monotonic() + milliseconds,
      key: ids.next('settle'),
    };
  }
}

/** What every line about a message says; nothing of what is in it. */
function factsOf({ message }: RemoteDelivery, { agent }: Assignment): object {
  const { id, session, root, traceparent } = message;
  const traceId = traceIdOf(traceparent);
  const traced = traceId === undefined ? {} : { traceId };
  return { agent: agent.name, messageId: id, session, rootMessage: root, ...traced };
}
