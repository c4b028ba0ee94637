import { Cron } from 'croner';
import { messageOf, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import type { Occurrences } from './occurrences.ts';

const MAX_EXPRESSION = 128;
const FIELD = /^[0-9A-Za-z*,/?#L-]+$/;
const SECOND = /^[0-5]?[0-9]$/;
/** A leap year begins here, so that an expression for 29 February has an occurrence soon. */
const REFERENCE = new Date('2028-01-01T00:00:00Z');

/**
 * The occurrences of a cron expression with five fields, or with six of which the first is the second of the minute. A fixed time that a
 * change of the clocks leaves out occurs right after the change; one that it repeats occurs once. Throws TEMPER_MANIFEST_INVALID.
 */
export function cronOccurrences(expression: string, timeZone: string): Occurrences {
  const cron = parse(expression, timeZone);
  return {
    next: (after) => cron.nextRun(new Date(after))?.getTime(),
    // The library looks before a whole second.
    latest: (at) => cron.previousRuns(1, new Date(Math.floor(at / 1_000) * 1_000 + 1_000))[0]?.getTime(),
  };
}

function parse(expression: string, timeZone: string): Cron {
  const fields = expression.trim().split(/\s+/);
  const isPlain = expression.length <= MAX_EXPRESSION && fields.every((field) => FIELD.test(field));
  if (!isPlain || fields.length < 5 || fields.length > 6) {
    throw invalid(expression, 'write five fields such as "0 9 * * 1-5", six with the second first, or "every 5m"');
  }
  if (fields.length === 6 && !SECOND.test(fields[0] ?? '')) {
    throw invalid(expression, 'its seconds must be one number from 0 to 59: runs are at least 60 seconds apart');
  }
  assertTimeZone(timeZone);
  let cron: Cron;
  try {
    cron = new Cron(expression.trim(), { timezone: timeZone, paused: true });
  } catch (error) {
    throw invalid(expression, printable(messageOf(error, 200)));
  }
  if (cron.nextRun(REFERENCE) === null) throw invalid(expression, 'no date matches it');
  return cron;
}

/** Throws TEMPER_MANIFEST_INVALID unless the runtime knows the time zone. */
export function assertTimeZone(timeZone: string): void {
  try {
    Intl.DateTimeFormat('en', { timeZone });
  } catch {
    const name = printable(timeZone, 64);
    throw new TemperError('TEMPER_MANIFEST_INVALID', `"${name}" is not a time zone; write an IANA name: Europe/Berlin`);
  }
}

function invalid(expression: string, fix: string): TemperError {
  return new TemperError('TEMPER_MANIFEST_INVALID', `"${printable(expression, 128)}" is not a valid schedule: ${fix}`);
}
