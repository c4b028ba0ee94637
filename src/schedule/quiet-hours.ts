import { cronOccurrences } from './cron.ts';
import type { Occurrences } from './occurrences.ts';

/** A part of each day, as `HH:MM` of a time zone. `to` is excluded, and is on the next day when it is not after `from`. */
export interface QuietHours {
  readonly from: string;
  readonly to: string;
}

/** More days than a year has: a schedule that is quiet for so long has no occurrence. */
const MAX_DAYS = 400;

/** Leaves out what is within the quiet hours. */
export function outsideQuietHours(all: Occurrences, { from, to }: QuietHours, timeZone: string): Occurrences {
  const starts = cronOccurrences(daily(from), timeZone);
  const ends = cronOccurrences(daily(to), timeZone);
  const isQuiet = (at: number): boolean => (starts.latest(at) ?? 0) > (ends.latest(at) ?? 0);
  return {
    next: (after) => {
      let time = all.next(after);
      for (let day = 0; day < MAX_DAYS && time !== undefined; day += 1) {
        if (!isQuiet(time)) return time;
        time = all.next((ends.next(time) ?? time) - 1);
      }
      return undefined;
    },
    latest: (at) => {
      let time = all.latest(at);
      for (let day = 0; day < MAX_DAYS && time !== undefined; day += 1) {
        if (!isQuiet(time)) return time;
        time = all.latest((starts.latest(time) ?? time) - 1);
      }
      return undefined;
    },
  };
}

function daily(time: string): string {
  const [hour = '0', minute = '0'] = time.split(':');
  return `${Number(minute)} ${Number(hour)} * * *`;
}
