import { triggerOf, triggersOf } from '../../api/schedule/triggers.ts';
import type { FireRefusal } from '../../events/fires.ts';
import { triggerOfSubscription } from '../../events/subscription.ts';
import { triggerMessage } from '../../events/trigger-message.ts';
import type { Trigger } from '../../events/trigger.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { AcceptedEvent, Recipient } from '../../nats/events/accepted-events.ts';
import type { SubscriptionStore } from '../../nats/events/subscriptions.ts';
import type { TriggerFireStore } from '../../nats/events/trigger-fires.ts';
import type { NatsInbox } from '../../nats/inbox/inbox.ts';
import type { NatsSessionStore } from '../../nats/sessions/port.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { GatewayMetrics } from '../../telemetry/temper-metrics.ts';
import type { AgentState } from '../agent-state.ts';
import type { AgentDirectory } from '../deps.ts';

export interface FireDeps {
  directory: Pick<AgentDirectory, 'byUid' | 'agent' | 'decider'>;
  inbox: Pick<NatsInbox, 'publish'>;
  /** Requests a pod for an agent without one. */
  wake: (state: AgentState) => Promise<void>;
  sessionsOf: (agentUid: string) => Pick<NatsSessionStore, 'isClosed'>;
  subscriptions: Pick<SubscriptionStore, 'of'>;
  fires: Pick<TriggerFireStore, 'fire' | 'refuse'>;
  clock: Clock;
  metrics: Pick<GatewayMetrics, 'count'>;
  log: Pick<Logger, 'warn'>;
}

/** Why a matching event gave an agent no message. */
export type TriggerOutcome =
  | 'Sent'
  | FireRefusal
  | 'Ended'
  | 'Suspended'
  | 'Denied'
  | 'SessionClosed'
  | 'Full'
  | 'TooLarge';

const OUTCOMES = {
  TEMPER_BUS_FULL: 'Full',
  TEMPER_STORAGE_LIMIT_EXCEEDED: 'Full',
  TEMPER_EVENT_REFUSED: 'TooLarge',
  TEMPER_BUS_TOO_LARGE: 'TooLarge',
} as const satisfies Record<string, TriggerOutcome>;

/**
 * Gives one agent the message of one trigger for one event. A repeated call is the same message: the fire is counted once, and the id of the
 * message derives from event, agent and trigger. Throws TEMPER_BUS_UNAVAILABLE and unexpected errors; then call it again.
 */
export async function fireTrigger(
  accepted: AcceptedEvent,
  recipient: Recipient,
  deps: FireDeps,
): Promise<TriggerOutcome> {
  const outcome = await attempt(accepted, recipient, deps);
  deps.metrics.count('temper_trigger_messages_total', { outcome });
  if (outcome !== 'Sent' && outcome !== 'Ended') await countRefusal(recipient, outcome, deps);
  return outcome;
}

/** Of a trigger of the spec: a number for its status, which decides nothing. */
async function countRefusal({ agentUid, trigger }: Recipient, outcome: TriggerOutcome, deps: FireDeps): Promise<void> {
  const { spec } = deps.directory.byUid(agentUid)?.agent ?? {};
  if (spec === undefined || !triggersOf(spec).some(({ name }) => name === trigger)) return;
  try {
    await deps.fires.refuse(agentUid, trigger, outcome);
  } catch (error) {
    deps.log.warn({ error, trigger }, 'a refusal of a trigger was not counted');
  }
}

async function attempt(accepted: AcceptedEvent, recipient: Recipient, deps: FireDeps): Promise<TriggerOutcome> {
  const state = deps.directory.byUid(recipient.agentUid);
  if (state === undefined || state.agent.metadata.namespace !== accepted.namespace) return 'Ended';
  const trigger = await triggerWith(state, recipient.trigger, accepted, deps);
  if (typeof trigger === 'string') return trigger;
  if (state.suspended) return 'Suspended';
  try {
    return await send(accepted, state, trigger, deps);
  } catch (error) {
    const [, outcome] = Object.entries(OUTCOMES).find(([code]) => isTemperError(error) && error.code === code) ?? [];
    if (outcome === undefined) throw error;
    const agent = state.agent.metadata.name;
    const fields = { error, namespace: accepted.namespace, agent, trigger: trigger.key, event: accepted.event.id };
    deps.log.warn(fields, 'the message of a trigger was refused');
    return outcome;
  }
}

/** The trigger as the Agent has it now, or the subscription, whose grant is checked at each event. */
async function triggerWith(
  state: AgentState,
  key: string,
  { namespace, event }: AcceptedEvent,
  { directory, subscriptions }: FireDeps,
): Promise<Trigger | TriggerOutcome> {
  const found = triggersOf(state.agent.spec).find(({ name }) => name === key);
  if (found !== undefined) return triggerOf(found);
  const subscription = (await subscriptions.of(namespace)).find(
    ({ id, agentUid }) => id === key && agentUid === state.uid,
  );
  if (subscription === undefined) return 'Ended';
  if (state.policy === undefined) return 'Denied';
  const decision = directory.decider(state, false).decide({ kind: 'Subscribe', pattern: event.subject });
  return decision.effect === 'Allow' ? triggerOfSubscription(subscription) : 'Denied';
}

async function send(
  { event }: AcceptedEvent,
  state: AgentState,
  trigger: Trigger,
  deps: FireDeps,
): Promise<TriggerOutcome> {
  const { uid, agent } = state;
  if (trigger.session !== undefined && (await deps.sessionsOf(uid).isClosed(trigger.session))) return 'SessionClosed';
  const message = triggerMessage(event, trigger, deps.clock.now());
  const decision = await deps.fires.fire(uid, trigger.key, trigger.limits, event.id);
  if ('refused' in decision) return decision.refused;
  const sender = { uid: 'trigger', key: `${event.id}/${uid}/${trigger.key}` };
  await deps.inbox.publish(uid, sender, { to: agent.metadata.name, ...message });
  await deps.wake(state);
  return 'Sent';
}
