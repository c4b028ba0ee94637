import { TemperError } from '../lib/errors.ts';
import { MAX_AGENT_SUBSCRIPTIONS, MAX_NAMESPACE_SUBSCRIPTIONS } from './limits.ts';
import { templateError } from './template.ts';
import { DEFAULT_FIRES_PER_HOUR, type Trigger } from './trigger.ts';

/** Events that an agent asked for, until they end. */
export interface Subscription {
  /** Unique in the namespace. */
  readonly id: string;
  readonly agentUid: string;
  /** A pattern for subjects. */
  readonly subject: string;
  /** The template of the messages. */
  readonly message: string;
  readonly session: string;
  readonly maxFires?: number;
  /** RFC 3339. */
  readonly expiresAt: string;
}

export type NewSubscription = Omit<Subscription, 'id' | 'agentUid'>;

/** The arguments of `event_subscribe`. */
export interface SubscriptionDraft {
  readonly subject: string;
  readonly message?: string;
  readonly maxFires?: number;
  readonly ttlSeconds?: number;
}

const DEFAULT_MESSAGE = 'Event {{subject}}: {{event}}';
const DEFAULT_TTL_SECONDS = 86_400;

/** The subscription of a session from now on. Throws TEMPER_TOOL_INPUT_INVALID for a message that is no template. */
export function newSubscription(draft: SubscriptionDraft, session: string, now: number): NewSubscription {
  const { subject, message = DEFAULT_MESSAGE, maxFires, ttlSeconds = DEFAULT_TTL_SECONDS } = draft;
  const error = templateError(message);
  if (error !== undefined) throw new TemperError('TEMPER_TOOL_INPUT_INVALID', `message is not valid: ${error}`);
  const expiresAt = new Date(now + ttlSeconds * 1_000).toISOString();
  return { subject, message, session, ...(maxFires === undefined ? {} : { maxFires }), expiresAt };
}

/** `own` and `all`: the subscriptions that the agent and its namespace have. Throws TEMPER_QUOTA_EXCEEDED. */
export function assertSubscriptionLimits(own: number, all: number): void {
  if (own < MAX_AGENT_SUBSCRIPTIONS && all < MAX_NAMESPACE_SUBSCRIPTIONS) return;
  const limit =
    own >= MAX_AGENT_SUBSCRIPTIONS
      ? `an agent may have ${MAX_AGENT_SUBSCRIPTIONS}`
      : `a namespace may have ${MAX_NAMESPACE_SUBSCRIPTIONS}`;
  throw new TemperError('TEMPER_QUOTA_EXCEEDED', `${limit} subscriptions; end one with event_unsubscribe`);
}

export function isLive({ expiresAt }: Pick<Subscription, 'expiresAt'>, now: number): boolean {
  return Date.parse(expiresAt) > now;
}

export function triggerOfSubscription({ id, message, session, maxFires }: Subscription): Trigger {
  const limits = { maxFires, maxFiresPerHour: DEFAULT_FIRES_PER_HOUR, cooldownMs: 0 };
  return { key: id, template: message, session, limits };
}
