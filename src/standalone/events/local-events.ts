import { eventChain } from '../../agent/messages/event-chain.ts';
import type { EventCaller, Events } from '../../agent/tools/events/port.ts';
import type { Envelope } from '../../bus/port.ts';
import type { PublishedEvent } from '../../events/event.ts';
import { assertEventSize, callDigest, eventId } from '../../events/event-draft.ts';
import { MAX_RECIPIENTS } from '../../events/limits.ts';
import type { EventCounts } from '../../events/past-event.ts';
import { assertSubscriptionLimits, isLive, newSubscription, type Subscription } from '../../events/subscription.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import type { Decider, PolicyRequest } from '../../policy/types.ts';
import { policyDenied } from '../../tools/authorize.ts';
import type { DeliveredMessage } from '../messages/local-asks.ts';
import type { LocalInboxes } from '../messages/local-inbox.ts';
import { type Inboxes, inboxOf, type MessageEntry } from '../messages/message-entries.ts';
import { ownDecider } from '../schedules/member-schedules.ts';
import { type Member, memberKey } from '../team/member.ts';
import { eventDraft, subscriptionDraft } from './event-arguments.ts';
import { EventRates } from './event-rates.ts';
import { type EventFacts, type NewLocalEvent, plannedEvent, recipientsOf } from './planned-event.ts';

export interface LocalEventsDeps {
  readonly inboxes: LocalInboxes;
  readonly clock: Clock;
  readonly workspace: string;
  /** The agents of now: they may start and end others. */
  readonly members: () => readonly Member[];
  readonly isSuspended: (key: string) => boolean;
}

/** The agent whose events these are. */
export interface EventAgent {
  readonly member: Member;
  /** Its policy for clean and for tainted sessions. */
  readonly decider: (isTainted: boolean) => Decider;
  /** The message in work in a session. Throws TEMPER_NOT_FOUND without one. */
  readonly current: (session: string) => DeliveredMessage;
  /** Removes what must not be stored from the arguments of a call. */
  readonly clean: (input: Json) => Json;
}

/**
 * The events of a namespace in one process, by the rules and limits of clusters. An event, the fires and the messages that it causes are one
 * change of the log, so after a crash at any moment each agent has its message once, and a repeated call finds the event.
 */
export class LocalEvents {
  readonly #deps: LocalEventsDeps;
  readonly #rates: EventRates;

  constructor(deps: LocalEventsDeps) {
    this.#deps = deps;
    this.#rates = new EventRates(deps.clock);
  }

  /** The events of one session of an agent. */
  of(agent: EventAgent, caller: EventCaller): Events {
    return {
      publish: (input, op) => this.#publish(agent, caller, input, op.key),
      subscribe: (input, op) => this.#subscribe(agent, caller, input, op.key),
      unsubscribe: (id) => this.#unsubscribe(agent, id),
      list: async () => this.#list(agent),
    };
  }

  /**
   * What to store about the event of a message that failed, in the change that ends it. Its data has names and codes, and no text. The failed
   * message of a trigger is no event: it could fire its own trigger. Users see the failure of their messages.
   */
  failed(all: Inboxes, agent: string, { id, session, source }: Envelope, code: ErrorCode): readonly MessageEntry[] {
    const owner = this.#deps.members().find((member) => memberKey(member) === agent);
    if (owner === undefined || source === 'Trigger' || source === 'User' || source === undefined) return [];
    const event: PublishedEvent = {
      id: `evt-failed-${id}`,
      subject: 'temper.message.failed',
      data: { agent: owner.name, session, message: id, code },
      source: 'Platform',
      agent: owner.name,
      time: this.#deps.clock.now().toISOString(),
      tainted: false,
    };
    const added: NewLocalEvent = { event, owner, onlyMatched: true };
    const facts = this.#facts(new Set());
    // No caller gets to know of too many recipients, and the message has to end.
    return recipientsOf(all, added, facts).length > MAX_RECIPIENTS ? [] : plannedEvent(all, added, facts).entries;
  }

  /** A verified request to a webhook of the agent. Throws TEMPER_BUS_FULL, and stores nothing then: its sender repeats it. */
  async fromWebhook(owner: Member, trigger: string, event: PublishedEvent): Promise<EventCounts> {
    const { inboxes } = this.#deps;
    const before = inboxOf(inboxes.inboxes, memberKey(owner)).events.published.get(event.id);
    if (before !== undefined) return countsOf(before);
    const added: NewLocalEvent = { event, owner, trigger };
    const closed = await this.#closedSessions(added);
    return inboxes.change((all) => {
      const { entries, counts, full } = plannedEvent(all, added, this.#facts(closed));
      if (full === 0) return { entries, result: counts };
      throw new TemperError('TEMPER_BUS_FULL', 'the inbox of the agent is full; send the request again later');
    });
  }

  async #publish(
    agent: EventAgent,
    { session, isTainted }: EventCaller,
    input: Json,
    key: string,
  ): Promise<JsonObject> {
    const { member, clean, current, decider } = agent;
    const { inboxes, clock } = this.#deps;
    const { subject, data, to, ttlSeconds } = eventDraft(clean(input));
    const message = inWork(current(session));
    const uid = memberKey(member);
    const id = eventId(uid, key);
    const before = inboxOf(inboxes.inboxes, uid).events.published.get(id);
    if (before !== undefined) return { id, ...countsOf(before) };
    assertAllowed(decider(isTainted), { kind: 'Publish', subject });
    const now = clock.now();
    const chain = eventChain(message, { name: member.name, uid }, ttlSeconds, now.getTime());
    assertEventSize(data);
    this.#rates.take(member);
    const source = { source: 'Agent' as const, agent: member.name, time: now.toISOString() };
    const event: PublishedEvent = { id, subject, data, ...source, tainted: isTainted, chain };
    const added: NewLocalEvent = { event, owner: member, to };
    const closed = await this.#closedSessions(added);
    const counts = await inboxes.change((all) => {
      const planned = plannedEvent(all, added, this.#facts(closed));
      return { entries: planned.entries, result: planned.counts };
    });
    return { id, ...countsOf(counts) };
  }

  async #subscribe(
    { member, clean, current, decider }: EventAgent,
    { session, isTainted }: EventCaller,
    input: Json,
    key: string,
  ): Promise<JsonObject> {
    const { inboxes, clock } = this.#deps;
    const draft = subscriptionDraft(clean(input));
    inWork(current(session));
    const agent = memberKey(member);
    assertAllowed(decider(isTainted), { kind: 'Subscribe', pattern: draft.subject });
    const now = clock.now().getTime();
    const id = `sub-${callDigest(agent, key, SUBSCRIPTION_DIGITS)}`;
    const wanted: Subscription = { ...newSubscription(draft, session, now), id, agentUid: agent };
    const stored = await inboxes.change((all) => {
      const own = [...inboxOf(all, agent).events.subscriptions.values()];
      const before = own.find((one) => one.id === id);
      if (before !== undefined) return { entries: [], result: before };
      const expired = own.filter((one) => !isLive(one, now));
      assertSubscriptionLimits(own.length - expired.length, this.#liveSubscriptions(all, member.namespace, now));
      const entries: MessageEntry[] = [
        ...expired.map((one) => ({ op: 'event-unsubscribed' as const, agent, id: one.id })),
        { op: 'event-subscribed', agent, subscription: wanted },
      ];
      return { entries, result: wanted };
    });
    return { id: stored.id, expiresAt: stored.expiresAt };
  }

  async #unsubscribe({ member }: EventAgent, id: string): Promise<JsonObject> {
    const agent = memberKey(member);
    const ended = await this.#deps.inboxes.change((all) => {
      const isKnown = inboxOf(all, agent).events.subscriptions.has(id);
      return { entries: isKnown ? [{ op: 'event-unsubscribed', agent, id }] : [], result: isKnown };
    });
    return { ended };
  }

  #list({ member }: EventAgent): JsonObject {
    const { subscriptions, fires } = inboxOf(this.#deps.inboxes.inboxes, memberKey(member)).events;
    const now = this.#deps.clock.now().getTime();
    const live = [...subscriptions.values()].filter((one) => isLive(one, now));
    return {
      subscriptions: live.map(({ id, subject, session, expiresAt }) => {
        return { id, subject, session, expiresAt, fires: fires.get(id)?.fires ?? 0 };
      }),
    };
  }

  #liveSubscriptions(all: Inboxes, namespace: string, now: number): number {
    return [...all]
      .filter(([key]) => key.startsWith(`${namespace}/`))
      .flatMap(([, { events }]) => [...events.subscriptions.values()])
      .filter((one) => isLive(one, now)).length;
  }

  /** The sessions of recipients that a user closed, as `AGENT SESSION`. */
  async #closedSessions(added: NewLocalEvent): Promise<ReadonlySet<string>> {
    const closed = new Set<string>();
    const { inboxes } = this.#deps.inboxes;
    for (const { member, trigger } of recipientsOf(inboxes, added, this.#facts(closed)).slice(0, MAX_RECIPIENTS)) {
      if (trigger.session !== undefined && (await member.sessions.isClosed(trigger.session)))
        closed.add(sessionKey(member, trigger.session));
    }
    return closed;
  }

  #facts(closed: ReadonlySet<string>): EventFacts {
    const { inboxes, members, isSuspended, workspace, clock } = this.#deps;
    return {
      inboxes,
      members: members(),
      isSuspended,
      isClosed: (member, session) => closed.has(sessionKey(member, session)),
      decider: (member) => ownDecider(member, workspace),
      now: clock.now(),
    };
  }
}

const SUBSCRIPTION_DIGITS = 12;

/** Throws TEMPER_CANCELLED. */
function inWork({ message, signal }: DeliveredMessage): Envelope {
  if (!signal.aborted) return message;
  throw new TemperError('TEMPER_CANCELLED', 'the message that the agent works on was cancelled');
}

function assertAllowed(decider: Decider, request: PolicyRequest): void {
  const decision = decider.decide(request);
  if (decision.effect !== 'Allow') throw policyDenied(decision);
}

function countsOf({ messages, refused }: EventCounts): { messages: number; refused: number } {
  return { messages, refused };
}

function sessionKey(member: Member, session: string): string {
  return `${memberKey(member)} ${session}`;
}
