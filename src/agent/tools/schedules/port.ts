import type { CallOptions } from '../../../lib/call-options.ts';
import type { Json, JsonObject } from '../../../lib/json.ts';

/** The session of a call. */
export interface ScheduleCaller {
  readonly session: string;
  /** The session has untrusted content. */
  readonly isTainted: boolean;
}

/** The schedules that one agent made for itself. The implementation decides about each request itself, whatever its caller checked. */
export interface OwnSchedules {
  /**
   * Makes a schedule from the arguments of `schedule_create`. Idempotent per `op.key`. Throws TEMPER_POLICY_DENIED when it is not allowed,
   * TEMPER_TOOL_INPUT_INVALID for invalid arguments or a name that is taken, TEMPER_QUOTA_EXCEEDED beyond the limits of the namespace.
   */
  create(input: Json, op: CallOptions): Promise<{ name: string; nextRun: string }>;
  /** Idempotent. Throws TEMPER_NOT_FOUND for a name that the agent has no schedule of. */
  delete(name: string, op: CallOptions): Promise<void>;
  list(op: CallOptions): Promise<JsonObject>;
}
