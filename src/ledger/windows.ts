/** The windows of quotas: UTC clock minutes, hours, days and months. */
export const WINDOWS = ['minute', 'hour', 'day', 'month'] as const;
export type WindowKind = (typeof WINDOWS)[number];

const LENGTH_MS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;

/** Start of the window that contains `time`; both in milliseconds since the epoch. */
export function windowStart(kind: WindowKind, time: number): number {
  if (kind === 'month') {
    const date = new Date(time);
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
  }
  return Math.floor(time / LENGTH_MS[kind]) * LENGTH_MS[kind];
}

/** Start of the window after the one that contains `time`. */
export function nextWindow(kind: WindowKind, time: number): number {
  if (kind === 'month') {
    const date = new Date(time);
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
  }
  return windowStart(kind, time) + LENGTH_MS[kind];
}
