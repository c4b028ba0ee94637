import type { ErrorCode } from '../../lib/error-codes.ts';
import type { TaskOutcome } from './evidence.ts';

/** Codes of causes outside the agent. A pod that names one gains nothing: such a message is no task, and an answer would be one. */
const EXCUSED: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'TEMPER_QUOTA_EXCEEDED',
  'TEMPER_AGENT_SUSPENDED',
  'TEMPER_SESSION_CLOSED',
  'TEMPER_MODEL_RATE_LIMITED',
  'TEMPER_MODEL_OVERLOADED',
  'TEMPER_MODEL_UNREACHABLE',
  'TEMPER_MODEL_TIMEOUT',
  'TEMPER_MODEL_UNAUTHORIZED',
  'TEMPER_MODEL_BILLING',
  'TEMPER_MODEL_NOT_FOUND',
  'TEMPER_MODEL_UNAVAILABLE',
]);

/** The outcome of a message that no answer ended. */
export function outcomeOf(code: ErrorCode): TaskOutcome {
  return EXCUSED.has(code) ? 'excused' : 'failed';
}
