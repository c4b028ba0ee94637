import type { ListedCaller } from '../../a2a/callers.ts';
import type { HandledMessage } from '../../agent/loop/loop.ts';
import type { AskEnd } from '../../agent/messages/ask.ts';
import type { Envelope } from '../../bus/port.ts';
import type { EngineAgent, EngineModels } from '../../engine/ports.ts';
import type { PublishedEvent } from '../../events/event.ts';
import type { EventCounts } from '../../events/past-event.ts';
import { type CallOptions, remainingMs } from '../../lib/call-options.ts';
import type { TemperError } from '../../lib/errors.ts';
import { Dispatcher, isOfUser } from '../messages/dispatcher.ts';
import { LocalEvents } from '../events/local-events.ts';
import { LocalAsks } from '../messages/local-asks.ts';
import { LocalInboxes } from '../messages/local-inbox.ts';
import { type Inboxes, inboxOf, type MessageEntry, type QueuedMessage } from '../messages/message-entries.ts';
import { MessageLog } from '../messages/message-log.ts';
import { LocalPeerCalls, type PeerServer } from '../peers/local-peer-calls.ts';
import { peerEnding } from '../peers/peer-ends.ts';
import { type AgentScope, type Member, memberKey } from './member.ts';
import type { OpenedAgent } from './opened-agent.ts';
import { portsToOthers, type PortsToOthers, type PortsToOthersDeps } from './ports-to-others.ts';
import type { SharedState } from './shared-state.ts';
import type { TeamEvents } from './team-events.ts';

/** A message of a user to an agent. A resumed message keeps its id. */
export interface UserMessage {
  readonly id: string;
  readonly session: string;
  readonly text: string;
}

/** A message that waits for decisions. */
export interface WaitingMessage extends AgentScope {
  readonly session: string;
  readonly requests: readonly string[];
}

export interface PostDeps extends Pick<PortsToOthersDeps, 'workspace' | 'member' | 'onSchedule' | 'family'> {
  readonly shared: SharedState;
  readonly events: TeamEvents;
  members(): readonly Member[];
  /** A message of the agent has ended. */
  ended(member: Member): void;
  open(member: Member): Promise<OpenedAgent>;
  /** A suspended agent gets no messages of agents. */
  isSuspended(key: string): boolean;
}

/** The messages of a team: those of the user, those between its agents, and their answers. */
export class Post {
  readonly #deps: PostDeps;
  readonly #inboxes: LocalInboxes;
  readonly #asks: LocalAsks;
  readonly #events: LocalEvents;
  readonly #dispatcher: Dispatcher;

  private constructor(deps: PostDeps, log: MessageLog) {
    this.#deps = deps;
    const { clock, withheld } = deps.shared;
    const inboxes: LocalInboxes = new LocalInboxes({
      log,
      clock,
      mayDeliver: (key, message) =>
        isOfUser(message) ? this.#dispatcher.isAttended(message.id) : !deps.isSuspended(key),
      onUndelivered: (all, key, message, error) => {
        this.#undelivered(key, message, error);
        const end = { state: 'Failed', text: error.message, code: error.code, tainted: false } as const;
        const member = deps.members().find((one) => memberKey(one) === key);
        return [...this.#ending(all, key, member, message, end), ...this.#events.failed(all, key, message, error.code)];
      },
    });
    this.#inboxes = inboxes;
    this.#asks = new LocalAsks(inboxes, clock);
    this.#events = new LocalEvents({ ...deps, inboxes, clock });
    this.#dispatcher = new Dispatcher({
      inboxes,
      asks: this.#asks,
      clock,
      ending: (all, member, message, end) => this.#ending(all, memberKey(member), member, message, end),
      open: (member) => deps.open(member),
      ended: (member) => deps.ended(member),
      failed: (all, key, message, code) => this.#events.failed(all, key, message, code),
      withoutSources: (text) => withheld.text(text),
    });
  }

  /** Throws TEMPER_STATE_CORRUPT. */
  static async open(deps: PostDeps): Promise<Post> {
    const { records, clock } = deps.shared;
    return new Post(deps, await MessageLog.open(records, clock.now().getTime()));
  }

  /** The inboxes, for what else puts messages there. */
  get inboxes(): LocalInboxes {
    return this.#inboxes;
  }

  /** Delivers the messages of the agent from now on; of those that wait for decisions some may have been decided meanwhile. */
  async serve(member: Member): Promise<void> {
    await this.#inboxes.resume(memberKey(member), ({ message }) => !isOfUser(message));
    this.#dispatcher.serve(member);
  }

  /** Ends the work of an agent that is gone, and deletes its messages; agents that asked it get to know. The result resolves when its work has ended. */
  async remove(key: string, error: TemperError): Promise<{ ended: Promise<void> }> {
    const ended = this.#dispatcher.leave(key);
    await this.#inboxes.change((inboxes) => {
      const left = [...inboxOf(inboxes, key).messages.values()];
      const answers = left.flatMap(({ message }) =>
        this.#asks.ending(inboxes, message, { state: 'Failed', text: error.message, code: error.code, tainted: false }),
      );
      return { entries: [...answers, { op: 'removed', agent: key }], result: undefined };
    });
    return { ended };
  }

  /** Sends a message of the user, and resolves with its end. Throws what the engine throws, and TEMPER_CANCELLED. */
  async handle(member: Member, { id, session, text }: UserMessage, op: CallOptions): Promise<HandledMessage> {
    const key = memberKey(member);
    const { clock } = this.#deps.shared;
    const now = clock.now().getTime();
    await this.#inboxes.publish(key, id, {
      to: member.name,
      from: 'user',
      session,
      text,
      depth: 0,
      deadline: new Date(now + Math.min(remainingMs(op, clock), MAX_CHAIN_MS)).toISOString(),
      time: new Date(now).toISOString(),
      source: 'User',
    });
    await this.#inboxes.resume(key, ({ message }) => message.id === id);
    return this.#dispatcher.userMessage(id, op.signal);
  }

  /** Gives the trigger of the agent the event of a verified request. Throws TEMPER_BUS_FULL. */
  fromWebhook(member: Member, trigger: string, event: PublishedEvent): Promise<EventCounts> {
    return this.#events.fromWebhook(member, trigger, event);
  }

  /** The calls of a caller over A2A that the agent lists. */
  peerCalls(member: Member, caller: ListedCaller, server: PeerServer): LocalPeerCalls {
    return new LocalPeerCalls(member, caller, {
      ...server,
      inboxes: this.#inboxes,
      clock: this.#deps.shared.clock,
      cancel: (root) => this.#dispatcher.cancel(root),
      isInWork: (key, session, message) => this.#dispatcher.isInWork(key, session, message),
    });
  }

  /** The message of a user in a session of the agent that has not ended. */
  unended(member: Member, session: string): UserMessage | undefined {
    const { messages } = inboxOf(this.#inboxes.inboxes, memberKey(member));
    const found = [...messages.values()].find(({ message }) => message.session === session && isOfUser(message));
    return found === undefined ? undefined : { id: found.message.id, session, text: found.message.text };
  }

  /** The root of the message in work that a call with this key is for. */
  rootOf(member: Member, call: string): string | undefined {
    return this.#dispatcher.messageOfCall(memberKey(member), call)?.root;
  }

  /** Whether a message of the session has not ended. */
  hasUnended(member: Member, session: string): boolean {
    const { messages } = inboxOf(this.#inboxes.inboxes, memberKey(member));
    return [...messages.values()].some(({ message }) => message.session === session);
  }

  /** Delivers the messages that wait for this decision. */
  async decided(members: readonly Member[], request: string): Promise<void> {
    for (const member of members)
      await this.#inboxes.resume(memberKey(member), ({ parked }) => parked?.requests.includes(request) === true);
  }

  /** The messages between agents that wait for decisions. */
  waiting(members: readonly Member[]): WaitingMessage[] {
    const toWaiting = ({ name, namespace }: Member, { message, parked }: QueuedMessage): WaitingMessage[] =>
      isOfUser(message) ? [] : [{ name, namespace, session: message.session, requests: parked?.requests ?? [] }];
    return members.flatMap((member) =>
      this.#inboxes.parked(memberKey(member)).flatMap((queued) => toWaiting(member, queued)),
    );
  }

  isBusy(): boolean {
    return this.#dispatcher.isBusy();
  }

  idle(signal: AbortSignal): Promise<void> {
    return this.#dispatcher.idle(signal);
  }

  /** Resolves when the signal aborts. Throws what ended the work on messages. */
  untilFailed(signal: AbortSignal): Promise<void> {
    return this.#dispatcher.untilFailed(signal);
  }

  /** How many sessions of the agent have a message in work. */
  inWork(key: string): number {
    return this.#dispatcher.inWork(key);
  }

  stop(): Promise<void> {
    return this.#dispatcher.stop();
  }

  /** Looks again at messages that could not be delivered: agents came, or are not suspended any more. */
  wake(): void {
    this.#inboxes.wake();
  }

  /** The ports of an agent to the others. */
  ports(member: Member, agent: EngineAgent, models: EngineModels): PortsToOthers {
    return portsToOthers(member, agent, models, {
      ...this.#deps,
      inboxes: this.#inboxes,
      asks: this.#asks,
      events: this.#events,
      current: (key, session) => this.#dispatcher.current(key, session),
    });
  }

  /** The changes that tell who waits for a message how it ended. */
  #ending(all: Inboxes, key: string, member: Member | undefined, message: Envelope, end: AskEnd): MessageEntry[] {
    const { clock } = this.#deps.shared;
    const returns = member?.agent.spec.returns;
    return [...this.#asks.ending(all, message, end), ...peerEnding(key, message, { end, returns, clock })];
  }

  #undelivered(key: string, message: Envelope, error: TemperError): void {
    if (isOfUser(message)) return this.#dispatcher.undelivered(message, error);
    const [namespace = '', name = ''] = key.split('/');
    const { code, message: text } = error;
    this.#deps.events(
      { type: 'error', code, message: `a message of agent "${message.from}" was not handled: ${text}`, attempt: 1 },
      { name, namespace, session: message.session },
    );
  }
}

/** The deadline of a chain that a user starts, when the call has none. */
const MAX_CHAIN_MS = 24 * 3_600_000;
