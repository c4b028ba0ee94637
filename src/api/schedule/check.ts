import { isTemperError, TemperError } from '../../lib/errors.ts';
import { assertTimeZone } from '../../schedule/cron.ts';
import { MAX_INTERVAL_MS, MIN_INTERVAL_MS, occurrencesOf, parseTiming } from '../../schedule/definition.ts';
import { checkMeasures } from '../checks/shared.ts';
import type { FieldPath, Finding, ValidPart } from '../findings.ts';
import { parseDuration } from '../quantities.ts';
import { hasRuns } from './definition.ts';
import { triggersAreSound } from './triggers.ts';
import type { AgentSpec } from '../v1alpha1/agent.ts';

type Schedule = ValidPart<NonNullable<AgentSpec['schedule']>>;

const PATH: FieldPath = ['spec', 'schedule'];
const MAX_JITTER_MS = 3_600_000;
/** Any time: whether a schedule has an occurrence at all does not depend on it. */
const REFERENCE = Date.parse('2028-01-01T00:00:00Z');

/** Cross-field rules of the schedule of an Agent, and what only the scheduler can read. */
export function scheduleIsDue({ schedule, returns }: ValidPart<AgentSpec>): Finding[] {
  if (schedule === undefined) return [];
  return [
    ...fieldsFitMode(schedule),
    ...(schedule.persistent === true && returns !== undefined ? [NO_RETURNS] : []),
    ...measuresAreInRange(schedule),
    ...timesAreValid(schedule),
    ...triggersAreSound(schedule, PATH),
  ];
}

function fieldsFitMode(schedule: Schedule): Finding[] {
  return [...timesFitMode(schedule), ...persistentFits(schedule), ...messagesFitMode(schedule)].map(
    ([field, text, fix]) => ({
      path: [...PATH, field],
      rule: 'schedule-mode',
      message: `spec.schedule.${field} ${text}`,
      fix,
    }),
  );
}

/** A field, what is wrong with it, and the fix. */
type Misfit = readonly [field: string, text: string, fix: string];

function timesFitMode({ mode = 'Reactive', cron, interval, jitter }: Schedule): Misfit[] {
  const misfits: Misfit[] = [];
  const add = (...misfit: Misfit) => misfits.push(misfit);
  if (mode === 'Periodic' && cron === undefined) add('cron', 'is missing', 'write the times, such as "0 9 * * 1-5"');
  if (mode !== 'Periodic' && cron !== undefined) add('cron', `has no effect with mode ${mode}`, 'set mode: Periodic');
  if (mode !== 'Periodic' && jitter !== undefined) add('jitter', 'has no effect without cron', 'remove it');
  if (mode !== 'Continuous' && interval !== undefined)
    add('interval', `has no effect with mode ${mode}`, 'set mode: Continuous');
  return misfits;
}

function persistentFits({ mode = 'Reactive', interval, persistent = false }: Schedule): Misfit[] {
  if (!persistent) return [];
  if (mode !== 'Continuous') return [['persistent', `has no effect with mode ${mode}`, 'set mode: Continuous']];
  return interval === undefined ? [] : [['interval', 'has no effect with persistent', 'remove one of them']];
}

function messagesFitMode({ mode = 'Reactive', message, triggers }: Schedule): Misfit[] {
  const misfits: Misfit[] = [];
  const add = (...misfit: Misfit) => misfits.push(misfit);
  const hasTriggers = (triggers ?? []).length > 0;
  if (mode === 'Proactive' && !hasTriggers) add('triggers', 'is missing', 'write the events that the agent works on');
  if (mode !== 'Proactive' && hasTriggers) add('triggers', `has no effect with mode ${mode}`, 'set mode: Proactive');
  if (mode === 'Proactive' && message !== undefined)
    add('message', 'has no effect with mode Proactive', 'write the message of each trigger');
  if (hasRuns({ mode }) && message === undefined) add('message', 'is missing', 'write what the agent does in a run');
  return misfits;
}

function measuresAreInRange({ interval, jitter }: Schedule): Finding[] {
  return checkMeasures([
    {
      path: [...PATH, 'interval'],
      value: interval,
      parse: parseDuration,
      minimum: MIN_INTERVAL_MS,
      maximum: MAX_INTERVAL_MS,
      allowed: 'a duration from 60s to 24h',
    },
    {
      path: [...PATH, 'jitter'],
      value: jitter,
      parse: parseDuration,
      minimum: 0,
      maximum: MAX_JITTER_MS,
      allowed: 'a duration up to 1h',
    },
  ]);
}

function timesAreValid({ cron, timeZone = 'UTC', quietHours }: Schedule): Finding[] {
  const zone = problemOf('timeZone', () => assertTimeZone(timeZone));
  if (zone.length > 0) return zone;
  const { from, to } = quietHours ?? {};
  if (from !== undefined && from === to) return [NO_HOURS];
  if (cron === undefined) return [];
  return problemOf('cron', () => {
    const quiet = from === undefined || to === undefined ? {} : { quietHours: { from, to } };
    const timing = parseTiming(cron, timeZone);
    const definition = {
      key: '',
      timing,
      timeZone,
      jitterMs: 0,
      startingDeadlineMs: 0,
      suspended: false,
      generation: 0,
    };
    if (occurrencesOf({ ...definition, ...quiet }).next(REFERENCE) !== undefined) return;
    throw new TemperError('TEMPER_MANIFEST_INVALID', 'every time of the schedule is within spec.schedule.quietHours');
  });
}

const NO_RETURNS: Finding = {
  path: ['spec', 'returns'],
  rule: 'persistent-returns',
  message: 'spec.returns: a persistent agent never ends, so it returns no value',
  fix: 'remove spec.returns, or set spec.schedule.persistent to false',
};

const NO_HOURS: Finding = {
  path: [...PATH, 'quietHours'],
  rule: 'quiet-hours',
  message: 'spec.schedule.quietHours begin when they end',
  fix: 'write two different times, or set spec.schedule.suspend',
};

function problemOf(field: string, check: () => void): Finding[] {
  try {
    check();
    return [];
  } catch (error) {
    if (!isTemperError(error)) throw error;
    const message = `spec.schedule.${field}: ${error.message}`;
    return [{ path: [...PATH, field], rule: 'schedule', message, fix: 'see docs/reference/schedules.md' }];
  }
}
