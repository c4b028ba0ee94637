/** Of one session of an audit. */
export const TASK_TIMEOUT_MS = 10 * 60_000;
