import type { HandledMessage } from '../../agent/loop/loop.ts';
import { type AskEnd, answerText } from '../../agent/messages/ask.ts';
import { sessionOfKey } from '../../agent/session/resume.ts';
import { concurrencyOf } from '../../api/limits/concurrency.ts';
import type { Envelope } from '../../bus/port.ts';
import { errorOutcome, type MessageOutcome, replyOutcome } from '../../agent/messages/message-outcome.ts';
import { onAbort } from '../../lib/async/abort.ts';
import { Notifier } from '../../lib/async/notifier.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { outcomeOf } from '../../policy/trust/task-outcome.ts';
import type { ScheduledRunOutcome } from '../../schedule/advance.ts';
import { type Member, memberKey, withholdsSources } from '../team/member.ts';
import type { OpenedAgent } from '../team/opened-agent.ts';
import type { DeliveredMessage, LocalAsks } from './local-asks.ts';
import type { LocalDelivery, LocalInboxes } from './local-inbox.ts';
import type { Inboxes, MessageEntry } from './message-entries.ts';

export interface DispatcherDeps {
  readonly inboxes: LocalInboxes;
  readonly asks: LocalAsks;
  readonly clock: Clock;
  open(member: Member): Promise<OpenedAgent>;
  /** The work on a message of the agent has ended. */
  ended(member: Member): void;
  /** What to store with the end of a message of this agent, for who waits for it. */
  ending(inboxes: Inboxes, member: Member, message: Envelope, end: AskEnd): readonly MessageEntry[];
  /** What else to store when a message of this agent failed. */
  failed(inboxes: Inboxes, agent: string, message: Envelope, code: ErrorCode): readonly MessageEntry[];
  /** Removes withheld sources from an answer. */
  withoutSources(text: string): string;
}

/** How the message of a user ended; a message that is parked has not. */
type UserEnd = { handled: HandledMessage } | { error: unknown };

/** The agent of one inbox, and its messages in work by session. */
interface Serving {
  readonly member: Member;
  readonly stop: AbortController;
  readonly current: Map<string, DeliveredMessage>;
}

/**
 * Works on the messages of all agents of a process, as the pods of a cluster do: of each agent the messages of up to
 * `limits.concurrency` sessions at a time. A failure that is no failure of a message ends the process: `failed` rejects.
 */
export class Dispatcher {
  readonly #deps: DispatcherDeps;
  readonly #serving = new Map<string, Serving>();
  readonly #work = new Set<Promise<void>>();
  readonly #changes = new Notifier();
  readonly #stopping = new AbortController();
  readonly #cancelled = new Map<string, AbortController>();
  readonly #userEnds = new Map<string, PromiseWithResolvers<UserEnd>>();
  #failure: { error: unknown } | undefined;

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
  }

  /** Works on the messages of the agent from now on. */
  serve(member: Member): void {
    const key = memberKey(member);
    if (this.#serving.has(key)) return;
    const serving: Serving = { member, stop: new AbortController(), current: new Map() };
    this.#serving.set(key, serving);
    this.#run(() => this.#receive(key, serving));
  }

  /** Ends the work of an agent that is gone; resolves when it has ended. */
  async leave(key: string): Promise<void> {
    const serving = this.#serving.get(key);
    this.#serving.delete(key);
    serving?.stop.abort(new DOMException('the agent was ended', 'AbortError'));
    if (serving === undefined) return;
    while (serving.current.size > 0) await this.#changes.wait(new AbortController().signal);
  }

  /** The message in work in a session of the agent. Throws TEMPER_NOT_FOUND. */
  current(key: string, session: string): DeliveredMessage {
    const found = this.#serving.get(key)?.current.get(session);
    if (found !== undefined) return found;
    throw new TemperError('TEMPER_NOT_FOUND', 'an agent sends messages only while it works on one');
  }

  /** The message in work of an agent that a call with this key is for: turns of a message have its id, and other calls a key of its session. */
  messageOfCall(key: string, call: string): Envelope | undefined {
    const current = this.#serving.get(key)?.current;
    const all = [...(current?.values() ?? [])];
    return all.find(({ message }) => message.id === call)?.message ?? current?.get(sessionOfKey(call))?.message;
  }

  /** The end of a message of the user that is or will be in an inbox. An aborted signal cancels its whole chain. */
  async userMessage(id: string, signal: AbortSignal): Promise<HandledMessage> {
    const end = Promise.withResolvers<UserEnd>();
    this.#userEnds.set(id, end);
    this.#deps.inboxes.wake();
    const over = new AbortController();
    const { promise: notCancelled, reject } = Promise.withResolvers<never>();
    using _cancelling = onAbort(signal, () => void this.cancel(id).catch(reject));
    try {
      const ended = await Promise.race([end.promise, notCancelled, this.#failed(over.signal)]);
      if ('error' in ended) throw ended.error;
      return ended.handled;
    } finally {
      over.abort();
      this.#userEnds.delete(id);
    }
  }

  /** Whether this process waits for the message of a user. */
  isAttended(id: string): boolean {
    return this.#userEnds.has(id);
  }

  /** Ends all messages of a chain that a user has cancelled. */
  async cancel(root: string): Promise<void> {
    const controller = this.#cancelOf(root);
    controller.abort(new DOMException('the user cancelled the message', 'AbortError'));
    const time = this.#deps.clock.now().getTime();
    await this.#deps.inboxes.change((inboxes) => {
      const waiting = [...inboxes].flatMap(([agent, { messages }]) =>
        [...messages.values()]
          .filter(({ message }) => message.root === root && !this.isInWork(agent, message.session, message.id))
          .map(({ message }) => ({ op: 'ended' as const, agent, id: message.id, time })),
      );
      return { entries: waiting, result: undefined };
    });
    const error = new TemperError('TEMPER_CANCELLED', 'the message was cancelled');
    const isWaiting = ![...this.#serving.values()].some(({ current }) =>
      [...current.values()].some(({ message }) => message.id === root),
    );
    if (isWaiting) this.#userEnds.get(root)?.resolve({ error });
  }

  /** A message of a user that no delivery ends. */
  undelivered({ id }: Envelope, error: TemperError): void {
    this.#userEnds.get(id)?.resolve({ error });
  }

  /** Resolves when no message is in work and none will be delivered without a decision; rejects when the process failed. */
  async idle(signal: AbortSignal): Promise<void> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure.error;
      if (signal.aborted || !this.isBusy()) return;
      const woken = new AbortController();
      const ended = AbortSignal.any([signal, woken.signal]);
      await Promise.race([this.#changes.wait(ended), this.#deps.inboxes.changes.wait(ended)]);
      woken.abort();
    }
  }

  /** Stops the work on all messages, which stay in their inboxes. */
  async stop(): Promise<void> {
    this.#stopping.abort(new DOMException('the process ends', 'AbortError'));
    await Promise.all(this.#work);
  }

  /** Resolves when the signal aborts; rejects when the process failed. */
  async untilFailed(signal: AbortSignal): Promise<void> {
    await this.#failed(signal).catch((error: unknown) => {
      if (this.#failure !== undefined) throw error;
    });
  }

  /** Whether this message of a session is in work. */
  isInWork(key: string, session: string, id: string): boolean {
    return this.#serving.get(key)?.current.get(session)?.message.id === id;
  }

  /** How many sessions of the agent have a message in work. */
  inWork(key: string): number {
    return this.#serving.get(key)?.current.size ?? 0;
  }

  /** Whether a message is in work or will be delivered without a decision. */
  isBusy(): boolean {
    return [...this.#serving].some(([key, { current }]) => current.size > 0 || this.#deps.inboxes.hasWork(key));
  }

  /** Rejects when the process has failed, or when the signal aborts. */
  async #failed(signal: AbortSignal): Promise<never> {
    while (this.#failure === undefined && !signal.aborted) await this.#changes.wait(signal);
    throw this.#failure === undefined ? signal.reason : this.#failure.error;
  }

  #run(work: () => Promise<void>): void {
    const running = work()
      .catch((error: unknown) => {
        if (!this.#stopping.signal.aborted) this.#failure ??= { error };
      })
      .finally(() => {
        this.#work.delete(running);
        this.#changes.notifyAll();
      });
    this.#work.add(running);
  }

  async #receive(key: string, serving: Serving): Promise<void> {
    const { member, current, stop } = serving;
    const signal = AbortSignal.any([this.#stopping.signal, stop.signal]);
    const limit = concurrencyOf(member.agent.spec.limits?.concurrency);
    const receiver = this.#deps.inboxes.receiver(key);
    while (!signal.aborted) {
      while (current.size >= limit && !signal.aborted) await this.#changes.wait(signal);
      const delivery = await receiver
        .next({ signal, deadline: Number.POSITIVE_INFINITY, key })
        .catch((error: unknown) => {
          if (signal.aborted) return undefined;
          throw error;
        });
      if (delivery !== undefined) this.#start(key, serving, delivery, signal);
    }
  }

  #start(key: string, serving: Serving, delivery: LocalDelivery, stopped: AbortSignal): void {
    const { message } = delivery;
    const signal = AbortSignal.any([stopped, this.#cancelOf(message.root).signal]);
    serving.current.set(message.session, { message, signal });
    this.#run(async () => {
      try {
        await this.#handle(key, serving.member, delivery, signal);
      } finally {
        serving.current.delete(message.session);
        this.#forgetChain(message.root);
        this.#changes.notifyAll();
      }
    });
  }

  #forgetChain(root: string): void {
    const inWork = [...this.#serving.values()].flatMap(({ current }) => [...current.values()]);
    if (!inWork.some(({ message }) => message.root === root)) this.#cancelled.delete(root);
  }

  async #handle(key: string, member: Member, delivery: LocalDelivery, signal: AbortSignal): Promise<void> {
    const { message, parkedMs } = delivery;
    const { asks, clock } = this.#deps;
    if (!(await asks.mayHandle(key, message))) return delivery.ack();
    const leftMs = Date.parse(message.deadline) + parkedMs - clock.now().getTime();
    const op = { signal, deadline: clock.monotonic() + leftMs, key: message.id };
    let outcome: MessageOutcome;
    let userEnd: UserEnd;
    try {
      const { engine } = await this.#deps.open(member);
      const handled = await engine.handle(incoming(message), op);
      outcome = replyOutcome(handled);
      userEnd = { handled };
    } catch (error) {
      outcome = errorOutcome(error);
      userEnd = { error };
    }
    await this.#settle(member, delivery, outcome, userEnd, op);
    this.#userEnds.get(message.id)?.resolve(userEnd);
    this.#deps.ended(member);
  }

  async #settle(
    member: Member,
    delivery: LocalDelivery,
    outcome: MessageOutcome,
    userEnd: UserEnd,
    { signal }: CallOptions,
  ): Promise<void> {
    const { message } = delivery;
    const run = runOutcome(userEnd);
    // The process ends: the message is delivered again by the next one.
    if (this.#stopping.signal.aborted && !this.#cancelOf(message.root).signal.aborted) return;
    if (signal.aborted) return delivery.ack();
    if (outcome.end === 'park') return delivery.park(outcome.requests);
    if (outcome.end === 'answer') {
      const { reply, finishReason } = outcome;
      const text = withholdsSources(member) ? this.#deps.withoutSources(reply) : reply;
      const end = { state: 'Answered', text, finishReason, tainted: await isTainted(member, message) } as const;
      return delivery.endWith(run, (inboxes) => this.#deps.ending(inboxes, member, message, end));
    }
    // A user sees the error, and can send the message again.
    if (isOfUser(message)) return delivery.ack();
    if (outcome.end === 'retry') return delivery.retry(outcome.delayMs, run === 'excused');
    const error = 'error' in userEnd && isTemperError(userEnd.error) ? userEnd.error : undefined;
    const { code, message: text } = error ?? new TemperError('TEMPER_INTERNAL', 'the message could not be processed');
    const end = { state: 'Failed', text, code, tainted: await isTainted(member, message) } as const;
    return delivery.endWith(run, (inboxes) => [
      ...this.#deps.ending(inboxes, member, message, end),
      ...this.#deps.failed(inboxes, memberKey(member), message, code),
    ]);
  }

  #cancelOf(root: string): AbortController {
    const found = this.#cancelled.get(root) ?? new AbortController();
    this.#cancelled.set(root, found);
    return found;
  }
}

/** How the run of a schedule ended, by the rules of tasks. */
function runOutcome(end: UserEnd): ScheduledRunOutcome {
  if ('handled' in end) return end.handled.finishReason === 'complete' ? 'completed' : 'failed';
  return isTemperError(end.error) ? outcomeOf(end.error.code) : 'failed';
}

/** A history that cannot be read may have anything. */
async function isTainted({ sessions }: Member, { asker, session }: Envelope): Promise<boolean> {
  if (asker === undefined) return false;
  return sessions.load(session).then(
    ({ tainted }) => tainted,
    () => true,
  );
}

export function isOfUser({ source = 'User' }: Envelope): boolean {
  return source === 'User';
}

function incoming(message: Envelope) {
  const { session, text, root, id, source = 'User', from, tainted = false } = message;
  const own = { session, rootMessage: root, message: id, source, tainted };
  if (isOfUser(message)) return { ...own, text };
  return { ...own, from, text: source === 'Reply' ? answerText(message) : text };
}
