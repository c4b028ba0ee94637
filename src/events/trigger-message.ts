import type { PublishedEvent } from './event.ts';
import { renderTemplate } from './template.ts';
import { sessionOf, type Trigger } from './trigger.ts';

/** How long the message of a trigger may take, as that of a user, when the event continues no chain. */
const CHAIN_TIMEOUT_MS = 3_600_000;

/** The message that an event causes, without what its inbox adds. */
export interface TriggerMessage {
  readonly from: 'trigger';
  readonly source: 'Trigger';
  readonly session: string;
  readonly text: string;
  readonly root?: string;
  readonly depth: number;
  /** RFC 3339. */
  readonly deadline: string;
  readonly ancestors?: readonly string[];
  readonly tainted?: true;
  /** RFC 3339. */
  readonly time: string;
}

/** Throws TEMPER_EVENT_REFUSED for a text that is too long. */
export function triggerMessage(event: PublishedEvent, trigger: Trigger, now: Date): TriggerMessage {
  const { root, depth = 0, ancestors, deadline = deadlineFrom(now) } = event.chain ?? {};
  return {
    from: 'trigger',
    source: 'Trigger',
    session: sessionOf(trigger, event.id),
    text: renderTemplate(trigger.template, event),
    ...(root === undefined ? {} : { root }),
    depth,
    deadline,
    ...(ancestors === undefined ? {} : { ancestors }),
    // What a tainted session writes is tainted, and so is what a model named, whatever sources the policy trusts; it decides about webhooks itself.
    ...(event.tainted && event.source !== 'Webhook' ? { tainted: true } : {}),
    time: now.toISOString(),
  };
}

function deadlineFrom(now: Date): string {
  return new Date(now.getTime() + CHAIN_TIMEOUT_MS).toISOString();
}
