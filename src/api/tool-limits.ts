/** Bounds of the limits of one tool, for requests, artifacts and EmergentTool objects alike. */
export const TOOL_LIMIT_BOUNDS = {
  durationMs: { minimum: 1, maximum: 30_000, allowed: 'a duration from 1ms to 30s' },
  /** A composed tool as a whole; its steps have limits of their own. */
  composedDurationMs: { minimum: 1, maximum: 60_000, allowed: 'a duration from 1ms to 60s' },
  memoryBytes: { minimum: 8 * 1024 ** 2, maximum: 1024 ** 3, allowed: 'bytes from 8Mi to 1Gi' },
} as const;
