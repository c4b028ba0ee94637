import type { HandledMessage } from '../../agent/loop/loop.ts';
import type { Children } from '../../agent/tools/children/port.ts';
import type { Envelope } from '../../bus/port.ts';
import { createDeciders } from '../../engine/deciders.ts';
import type { EngineAgent, EnginePorts } from '../../engine/ports.ts';
import { type CallOptions, remainingMs } from '../../lib/call-options.ts';
import type { TemperError } from '../../lib/errors.ts';
import type { Decider } from '../../policy/types.ts';
import { policyDenied } from '../../tools/authorize.ts';
import { Dispatcher, isOfUser } from '../messages/dispatcher.ts';
import { LocalAsks } from '../messages/local-asks.ts';
import { localBus, unknownAgent } from '../messages/local-bus.ts';
import { LocalInboxes } from '../messages/local-inbox.ts';
import type { OwnSchedule } from '../../schedule/agent-schedule.ts';
import { madeSchedules, type MadeSchedulesDeps } from '../schedules/made-schedules.ts';
import type { QueuedMessage } from '../messages/message-entries.ts';
import { inboxOf } from '../messages/message-entries.ts';
import { MessageLog } from '../messages/message-log.ts';
import { type AgentScope, type Member, memberKey, withholdsSources } from './member.ts';
import type { OpenedAgent } from './opened-agent.ts';
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

export interface PostDeps {
  readonly shared: SharedState;
  readonly workspace: string;
  readonly events: TeamEvents;
  member(scope: AgentScope): Member | undefined;
  open(member: Member): Promise<OpenedAgent>;
  /** A suspended agent gets no messages of agents. */
  isSuspended(key: string): boolean;
  /** An agent made a schedule, or deleted one. */
  readonly onSchedule: (member: Member, schedule: OwnSchedule, change: 'created' | 'deleted') => void;
  /** The children of an agent. */
  readonly children: (member: Member, decider: Decider) => Children;
}

/** The messages of a team: those of the user, those between its agents, and their answers. */
export class Post {
  readonly #deps: PostDeps;
  readonly #inboxes: LocalInboxes;
  readonly #asks: LocalAsks;
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
        return this.#asks.ending(all, message, {
          state: 'Failed',
          text: error.message,
          code: error.code,
          tainted: false,
        });
      },
    });
    this.#inboxes = inboxes;
    this.#asks = new LocalAsks(inboxes, clock);
    this.#dispatcher = new Dispatcher({
      inboxes,
      asks: this.#asks,
      clock,
      open: (member) => deps.open(member),
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

  /** The message of a user in a session of the agent that has not ended. */
  unended(member: Member, session: string): UserMessage | undefined {
    const { messages } = inboxOf(this.#inboxes.inboxes, memberKey(member));
    const found = [...messages.values()].find(({ message }) => message.session === session && isOfUser(message));
    return found === undefined ? undefined : { id: found.message.id, session, text: found.message.text };
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

  /** The ports of an agent for its messages. */
  ports(member: Member, agent: EngineAgent): Required<Pick<EnginePorts, 'bus' | 'tasks' | 'children' | 'schedules'>> {
    const { workspace, shared, children, onSchedule } = this.#deps;
    const key = memberKey(member);
    const deciders = createDeciders(agent, workspace);
    const decider = deciders(false);
    const sender = {
      key,
      name: member.name,
      current: (session: string) => this.#dispatcher.current(key, session),
      receiver: (name: string): string => {
        const receiver = this.#deps.member({ name, namespace: member.namespace });
        const child = receiver?.parent === key;
        const decision = decider.decide({ kind: 'Message', agent: name, ...(child ? { child } : {}) });
        if (decision.effect !== 'Allow') throw policyDenied(decision);
        if (receiver === undefined) throw unknownAgent(name);
        return memberKey(receiver);
      },
      clean: (text: string) => (withholdsSources(member) ? shared.withheld.text(text) : text),
    };
    const deps = { inboxes: this.#inboxes, asks: this.#asks, clock: shared.clock };
    const of = (session: string) => localBus(deps, sender, session);
    const own = children(member, decider);
    const made: MadeSchedulesDeps = {
      inboxes: this.#inboxes,
      clock: shared.clock,
      audit: shared.audit,
      decider: deciders,
      current: (session) => this.#dispatcher.current(key, session).message,
      clean: (input) => (withholdsSources(member) ? shared.withheld.json(input) : input),
      onChange: (schedule, change) => onSchedule(member, schedule, change),
    };
    return { bus: of, tasks: of, children: () => own, schedules: (caller) => madeSchedules(member, made, caller) };
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
