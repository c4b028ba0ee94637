import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../../api/quantities.ts';
import { dayOf, USAGE_GROUPS, type UsageGroup } from '../../ledger/usage/usage-groups.ts';
import type { BreakdownOutput } from './print-breakdown.ts';

/** The options of a command that adds usage up. */
export interface BreakdownOptions {
  by: UsageGroup;
  /** Milliseconds. */
  since: number;
  output: BreakdownOutput;
}

const DAY_MS = 86_400_000;
const MAX_DAYS = 180;

export function addBreakdownOptions(command: Command): Command {
  const names = USAGE_GROUPS.map((group) => group.toLowerCase());
  return command
    .addOption(
      new Option('--by <group>', `add up by ${names.join(', ')}`).argParser((text): UsageGroup => {
        const found = USAGE_GROUPS.find((group) => group.toLowerCase() === text.toLowerCase());
        if (found === undefined) throw new InvalidArgumentError(`one of ${names.join(', ')}`);
        return found;
      }),
    )
    .addOption(
      new Option('--since <duration>', 'with --by: from this long ago, in whole days (UTC)')
        .argParser(sinceMs)
        .default(DAY_MS * 7, '7d'),
    );
}

/** A duration, also in days. */
function sinceMs(text: string): number {
  const days = /^([1-9][0-9]{0,2})d$/.exec(text)?.[1];
  const milliseconds = days === undefined ? durationMs(text) : Number(days) * DAY_MS;
  if (milliseconds <= MAX_DAYS * DAY_MS) return milliseconds;
  throw new InvalidArgumentError(`usage is kept for at most ${MAX_DAYS} days`);
}

function durationMs(text: string): number {
  try {
    return parseDuration(text);
  } catch {
    throw new InvalidArgumentError('a duration such as 12h or 7d');
  }
}

/** The first day of the report. */
export function firstDay(since: number, now: Date): string {
  return dayOf(new Date(now.getTime() - since));
}
