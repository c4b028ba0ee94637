import type { CallOptions } from '../../../lib/call-options.ts';
import type { Json, JsonObject } from '../../../lib/json.ts';

/** The children of one agent. The implementation decides about each request itself, whatever its caller checked. */
export interface Children {
  /**
   * Starts a child with the arguments of `agent_spawn`, and resolves when it exists. Idempotent per `op.key`. Throws
   * TEMPER_POLICY_DENIED or TEMPER_CHILD_REFUSED when it is not admitted, TEMPER_QUOTA_EXCEEDED for too many requests.
   */
  spawn(input: Json, op: CallOptions): Promise<{ name: string }>;
  /**
   * Starts a specialist with the arguments of `spawn_specialist` and gives it its task, from a session that is `tainted`; resolves with the ticket of the task. Throws what
   * `spawn` throws, and TEMPER_CHILD_REFUSED when the judge refuses. Idempotent per `op.key`, also after the specialist has ended.
   */
  specialist(input: Json, tainted: boolean, op: CallOptions): Promise<{ name: string; ticket: string }>;
  /** Ends a child. Idempotent. Throws TEMPER_NOT_FOUND for an unknown agent, TEMPER_POLICY_DENIED for one that it may not end. */
  kill(agent: string, op: CallOptions): Promise<void>;
  /** The agents that the agent may message, end or copy. */
  list(op: CallOptions): Promise<JsonObject>;
}
