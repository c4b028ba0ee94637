import { sha256 } from '../lib/canonical.ts';
import { TemperError } from '../lib/errors.ts';
import { cronOccurrences } from './cron.ts';
import { intervalOccurrences, type Occurrences, shifted, singleOccurrence } from './occurrences.ts';
import { outsideQuietHours, type QuietHours } from './quiet-hours.ts';

/** When a schedule is due. `every`: milliseconds; `at`: epoch milliseconds. */
export type Timing =
  | { readonly kind: 'Interval'; readonly every: number }
  | { readonly kind: 'Cron'; readonly expression: string }
  | { readonly kind: 'Once'; readonly at: number }
  /** When the last run has ended. */
  | { readonly kind: 'Persistent' };

export interface ScheduleDefinition {
  /** Identifies the schedule; the same for as long as it exists. */
  readonly key: string;
  readonly timing: Timing;
  readonly timeZone: string;
  /** A cron schedule is later by a fixed part of this. */
  readonly jitterMs: number;
  readonly quietHours?: QuietHours | undefined;
  /** A run that did not start within this time of its due time is missed. */
  readonly startingDeadlineMs: number;
  /** A new schedule is due from this time on, when that has passed; absent: from the present. Epoch milliseconds. */
  readonly since?: number | undefined;
  /** No run starts. */
  readonly suspended: boolean;
  /** Changes whenever a user changes the schedule or its agent, which ends the failures. */
  readonly generation: number;
}

export const MIN_INTERVAL_MS = 60_000;
export const MAX_INTERVAL_MS = 86_400_000;
/** The times at which a run of a persistent schedule may be due. */
export const PERSISTENT_STEP_MS = 1_000;
const EVERY = /^every\s+([0-9]{1,5})\s*([smhd])$/;
const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const FRACTIONS = 2 ** 32;

/** A cron expression, or `every 5m`. Throws TEMPER_MANIFEST_INVALID. */
export function parseTiming(text: string, timeZone: string): Timing {
  const [, amount, unit = ''] = EVERY.exec(text.trim()) ?? [];
  if (amount === undefined) {
    cronOccurrences(text, timeZone);
    return { kind: 'Cron', expression: text.trim() };
  }
  const every = Number(amount) * (UNIT_MS[unit] ?? 0);
  if (every >= MIN_INTERVAL_MS && every <= MAX_INTERVAL_MS) return { kind: 'Interval', every };
  throw new TemperError('TEMPER_MANIFEST_INVALID', `"every ${amount}${unit}" is not an interval from 60s to 24h`);
}

/** All times at which the schedule is due. Throws TEMPER_MANIFEST_INVALID. */
export function occurrencesOf(definition: ScheduleDefinition): Occurrences {
  const { key, timing, timeZone, jitterMs, quietHours } = definition;
  const all = timingOccurrences(timing, timeZone, key);
  const allowed = quietHours === undefined ? all : outsideQuietHours(all, quietHours, timeZone);
  return timing.kind === 'Cron' && jitterMs > 0 ? shifted(allowed, fractionOf(key, jitterMs)) : allowed;
}

/** Changes when the schedule is due at other times. */
export function timingDigest({ key, timing, timeZone, jitterMs, quietHours }: ScheduleDefinition): string {
  return sha256(JSON.stringify([key, timing, timeZone, jitterMs, quietHours ?? null]));
}

function timingOccurrences(timing: Timing, timeZone: string, key: string): Occurrences {
  switch (timing.kind) {
    case 'Interval':
      return intervalOccurrences(timing.every, fractionOf(key, timing.every));
    case 'Cron':
      return cronOccurrences(timing.expression, timeZone);
    case 'Once':
      return singleOccurrence(timing.at);
    case 'Persistent':
      return intervalOccurrences(PERSISTENT_STEP_MS, 0);
  }
}

/** A part of `max` that only depends on the key: whole seconds from 0 up to `max`. */
function fractionOf(key: string, max: number): number {
  const fraction = Number.parseInt(sha256(key).slice('sha256:'.length, 'sha256:'.length + 8), 16) / FRACTIONS;
  return Math.floor((fraction * max) / 1_000) * 1_000;
}
