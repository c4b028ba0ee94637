import { triggerOf, triggersOf } from '../../api/schedule/triggers.ts';
import type { PublishedEvent } from '../../events/event.ts';
import { fire, type FireRefusal, NO_FIRES } from '../../events/fires.ts';
import { MAX_RECIPIENTS } from '../../events/limits.ts';
import { type EventCounts, eventSummary } from '../../events/past-event.ts';
import { SubjectTree } from '../../events/subject-tree.ts';
import { isLive, triggerOfSubscription } from '../../events/subscription.ts';
import { triggerMessage } from '../../events/trigger-message.ts';
import type { Trigger } from '../../events/trigger.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { Decider } from '../../policy/types.ts';
import { LocalInboxes } from '../messages/local-inbox.ts';
import { type Inboxes, inboxOf, type MessageEntry } from '../messages/message-entries.ts';
import { type Member, memberKey } from '../team/member.ts';

/** An event that an agent publishes, or that is about it. */
export interface NewLocalEvent {
  readonly event: PublishedEvent;
  readonly owner: Member;
  /** The name of the only agent that may get it. */
  readonly to?: string | undefined;
  /** The name of the only trigger that gets it, one of the owner. */
  readonly trigger?: string;
  /** Not stored when nothing matches. */
  readonly onlyMatched?: true;
}

export interface EventFacts {
  readonly inboxes: Pick<LocalInboxes, 'storing'>;
  readonly members: readonly Member[];
  readonly isSuspended: (key: string) => boolean;
  /** A user closed the session. */
  readonly isClosed: (member: Member, session: string) => boolean;
  /** The policy of an agent for a clean session. */
  readonly decider: (member: Member) => Pick<Decider, 'decide'>;
  readonly now: Date;
}

/** A trigger or subscription that matches an event. */
export interface LocalRecipient {
  readonly member: Member;
  readonly trigger: Trigger;
  readonly isSubscription: boolean;
}

/** What to store about an event, and what it causes. */
export interface PlannedEvent {
  readonly entries: readonly MessageEntry[];
  readonly counts: EventCounts;
  /** Messages that found a full inbox. */
  readonly full: number;
}

type Outcome = 'Sent' | FireRefusal | 'Suspended' | 'Denied' | 'SessionClosed' | 'Full' | 'TooLarge';

const OUTCOMES = { TEMPER_BUS_FULL: 'Full', TEMPER_EVENT_REFUSED: 'TooLarge' } as const;

/** The triggers and subscriptions of the namespace that match an event, each once. */
export function recipientsOf(
  all: Inboxes,
  { event, owner, to, trigger: only }: NewLocalEvent,
  { members, now }: Pick<EventFacts, 'members' | 'now'>,
): LocalRecipient[] {
  if (only !== undefined) {
    const named = triggersOf(owner.agent.spec).filter(({ name }) => name === only);
    return named.map((trigger) => ({ member: owner, trigger: triggerOf(trigger), isSubscription: false }));
  }
  const tree = new SubjectTree<LocalRecipient>();
  for (const member of members) {
    const isOwn = event.source === 'Agent' && member === owner;
    if (member.namespace !== owner.namespace || isOwn || (to !== undefined && member.name !== to)) continue;
    for (const trigger of triggersOf(member.agent.spec)) {
      if (trigger.subject !== undefined)
        tree.add(trigger.subject, { member, trigger: triggerOf(trigger), isSubscription: false });
    }
    for (const subscription of all.get(memberKey(member))?.events.subscriptions.values() ?? []) {
      if (isLive(subscription, now.getTime()))
        tree.add(subscription.subject, { member, trigger: triggerOfSubscription(subscription), isSubscription: true });
    }
  }
  return tree.match(event.subject);
}

/**
 * What to store about an event: the fires, the messages and the event itself are one change, so that a crash leaves all of it or nothing.
 * Throws TEMPER_EVENT_REFUSED when it reaches too many.
 */
export function plannedEvent(all: Inboxes, added: NewLocalEvent, facts: EventFacts): PlannedEvent {
  const { event, owner, onlyMatched } = added;
  const recipients = recipientsOf(all, added, facts);
  if (recipients.length > MAX_RECIPIENTS) {
    throw new TemperError(
      'TEMPER_EVENT_REFUSED',
      `${recipients.length} triggers and subscriptions match "${event.subject}"; an event may reach ${MAX_RECIPIENTS}`,
    );
  }
  if (recipients.length === 0 && onlyMatched === true)
    return { entries: [], counts: { messages: 0, refused: 0 }, full: 0 };
  const entries: MessageEntry[] = [];
  const outcomes = recipients.map((recipient) => plan(all, event, recipient, facts, entries));
  const messages = outcomes.filter((outcome) => outcome === 'Sent').length;
  const counts = { messages, refused: recipients.length - messages };
  entries.push({ op: 'event-published', agent: memberKey(owner), event: eventSummary(event, counts) });
  return { entries, counts, full: outcomes.filter((outcome) => outcome === 'Full').length };
}

/** Adds the fire and the message of one recipient to the entries. */
function plan(
  all: Inboxes,
  event: PublishedEvent,
  { member, trigger, isSubscription }: LocalRecipient,
  { inboxes, isSuspended, isClosed, decider, now }: EventFacts,
  entries: MessageEntry[],
): Outcome {
  const key = memberKey(member);
  if (isSuspended(key)) return 'Suspended';
  // Grants may have changed since the agent subscribed.
  const isAllowed =
    !isSubscription || decider(member).decide({ kind: 'Subscribe', pattern: event.subject }).effect === 'Allow';
  if (!isAllowed) return 'Denied';
  if (trigger.session !== undefined && isClosed(member, trigger.session)) return 'SessionClosed';
  const before = inboxOf(all, key).events.fires.get(trigger.key) ?? NO_FIRES;
  const decision = fire(before, trigger.limits, event.id, now.getTime());
  if ('refused' in decision) return decision.refused;
  try {
    const message = { to: member.name, ...triggerMessage(event, trigger, now) };
    const id = LocalInboxes.idOf('trigger', key, `${event.id}/${trigger.key}`);
    const stored = inboxes.storing(all, key, id, message, entries);
    const { fires } = decision;
    if (fires !== undefined) entries.push({ op: 'trigger-fired', agent: key, trigger: trigger.key, fires });
    entries.push(...stored);
    return 'Sent';
  } catch (error) {
    const [, outcome] = Object.entries(OUTCOMES).find(([code]) => isTemperError(error) && error.code === code) ?? [];
    if (outcome === undefined) throw error;
    return outcome;
  }
}
