import type { CallOptions } from '../../../lib/call-options.ts';
import type { Json, JsonObject } from '../../../lib/json.ts';

/** The session of a call. */
export interface EventCaller {
  readonly session: string;
  /** The session has untrusted content. */
  readonly isTainted: boolean;
}

/** The events of the namespace of one agent. The implementation decides about each request itself, whatever its caller checked. */
export interface Events {
  /**
   * Publishes an event with the arguments of `event_publish`. Resolves when each agent with a matching trigger or subscription has its
   * message, also while it has no pod. Idempotent per `op.key`. Throws TEMPER_POLICY_DENIED, TEMPER_EVENT_REFUSED, TEMPER_MESSAGE_DEPTH
   * or TEMPER_RATE_LIMITED.
   */
  publish(input: Json, op: CallOptions): Promise<JsonObject>;
  /** Subscribes the session with the arguments of `event_subscribe`. Idempotent per `op.key`. Throws TEMPER_POLICY_DENIED or TEMPER_QUOTA_EXCEEDED. */
  subscribe(input: Json, op: CallOptions): Promise<JsonObject>;
  /** Ends a subscription of the agent. Idempotent. */
  unsubscribe(id: string, op: CallOptions): Promise<JsonObject>;
  /** The subscriptions of the agent. */
  list(op: CallOptions): Promise<JsonObject>;
}
