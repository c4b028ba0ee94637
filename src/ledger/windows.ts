/** The windows quotas are counted over: clock minutes, hours, days and months of UTC. */
export const WINDOWS = ['minute', 'hour', 'day', 'month'] as const;
export type WindowKind = (typeof WINDOWS)[number];

const LENGTHS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;

/** Start of the window a moment lies in; both in milliseconds since the epoch. */
export function windowStart(kind: WindowKind, time: number): number {
  if (kind === 'month') {
    const date = new Date(time);
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
  }
  return Math.floor(time / LENGTHS[kind]) * LENGTHS[kind];
}

/** Start of the window after the one a moment lies in. */
export function nextWindow(kind: WindowKind, time: number): number {
  if (kind === 'month') {
    const date = new Date(time);
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
  }
  return windowStart(kind, time) + LENGTHS[kind];
}
