import { MAX_RECIPIENTS } from '../../events/limits.ts';
import { SubjectTree } from '../../events/subject-tree.ts';
import { TemperError } from '../../lib/errors.ts';
import type { AcceptedEvent, AcceptedEvents, AnnouncedEvent, Recipient } from '../../nats/events/accepted-events.ts';
import type { EventHistory } from '../../nats/events/event-history.ts';
import { mapInBatches } from '../concurrency-limit.ts';
import type { EventDeliveries, EventPublisherPort, NewEvent } from './port.ts';
import { type FireDeps, fireTrigger } from './fire-trigger.ts';
import type { TriggerIndex } from './trigger-index.ts';

export interface NamespaceEventsDeps extends FireDeps {
  index: Pick<TriggerIndex, 'match'>;
  accepted: AcceptedEvents;
  history: Pick<EventHistory, 'add'>;
}

/**
 * Events of namespaces:
 *
 *   match triggers and subscriptions ─▶ store the event with its recipients ─▶ a message per recipient ─▶ history ─▶ forget the recipients
 *
 * From the second step on the event is accepted: when this process ends, another one continues it. Each message has an id that derives from
 * the event, so however often a step is repeated, each agent gets it once.
 */
export class NamespaceEvents implements EventPublisherPort {
  readonly #deps: NamespaceEventsDeps;

  constructor(deps: NamespaceEventsDeps) {
    this.#deps = deps;
  }

  async publish(added: NewEvent): Promise<EventDeliveries> {
    const { namespace, ownerUid, event } = added;
    const recipients = await this.#recipients(added);
    if (recipients.length === 0 && added.onlyMatched === true) return { messages: 0, refused: 0, full: 0 };
    if (recipients.length > MAX_RECIPIENTS) {
      throw new TemperError(
        'TEMPER_EVENT_REFUSED',
        `${recipients.length} triggers and subscriptions match "${event.subject}"; an event may reach ${MAX_RECIPIENTS}`,
      );
    }
    const accepted: AcceptedEvent = { event, namespace, ownerUid, recipients };
    // One message is stored at once, or not at all.
    const isShared = recipients.length > 1;
    if (isShared) await this.#deps.accepted.add(accepted);
    const receipt = await this.#deliver(accepted);
    if (isShared) await this.#deps.accepted.end(accepted);
    return receipt;
  }

  async resume(open: AcceptedEvent | AnnouncedEvent): Promise<void> {
    const accepted = 'recipients' in open ? open : await this.#accept(open);
    if (accepted === undefined) return;
    await this.#deliver(accepted);
    await this.#deps.accepted.end(accepted);
  }

  /** Undefined when nothing matches an announced event, or when another process took it. */
  async #accept(announced: AnnouncedEvent): Promise<AcceptedEvent | undefined> {
    const recipients = await this.#recipients(announced);
    const isBeyond = recipients.length > MAX_RECIPIENTS;
    if (isBeyond) {
      const { namespace, event } = announced;
      const fields = { namespace, subject: event.subject, recipients: recipients.length };
      this.#deps.log.warn(
        fields,
        'an event of the platform reaches too many triggers and subscriptions; no agent gets it',
      );
    }
    if (recipients.length === 0 || isBeyond) {
      await this.#deps.accepted.end(announced);
      return undefined;
    }
    const accepted: AcceptedEvent = { ...announced, recipients };
    return (await this.#deps.accepted.match(accepted)) ? accepted : undefined;
  }

  async #recipients({ namespace, ownerUid, event, to, trigger }: NewEvent): Promise<Recipient[]> {
    if (trigger !== undefined) return [{ agentUid: ownerUid, trigger }];
    const { directory } = this.#deps;
    const all = await this.#matching(namespace, event.subject);
    const only = to === undefined ? undefined : directory.agent(namespace, to)?.uid;
    return all.filter(({ agentUid }) => {
      // An agent that published does not get its own event.
      if (event.source === 'Agent' && agentUid === ownerUid) return false;
      return to === undefined || agentUid === only;
    });
  }

  async #matching(namespace: string, subject: string): Promise<Recipient[]> {
    const { index, subscriptions } = this.#deps;
    const tree = new SubjectTree<Recipient>();
    for (const { subject: pattern, agentUid, id } of await subscriptions.of(namespace))
      tree.add(pattern, { agentUid, trigger: id });
    return [...index.match(namespace, subject), ...tree.match(subject)];
  }

  async #deliver(accepted: AcceptedEvent): Promise<EventDeliveries> {
    const { history, metrics } = this.#deps;
    const { ownerUid: uid, namespace, event, recipients } = accepted;
    const outcomes = await mapInBatches(recipients, (recipient) => fireTrigger(accepted, recipient, this.#deps));
    const messages = outcomes.filter((outcome) => outcome === 'Sent').length;
    const full = outcomes.filter((outcome) => outcome === 'Full').length;
    const receipt = { messages, refused: outcomes.length - messages, full };
    const { chain: _chain, ...shown } = event;
    await history.add({ uid, namespace }, { ...shown, messages, refused: receipt.refused });
    metrics.count('temper_events_total', { source: event.source });
    return receipt;
  }
}
