import type { Decider, PolicyRequest } from './types.ts';

/** A schedule that an agent made: the largest number of its runs in one hour. */
interface OwnSchedule {
  readonly id: string;
  readonly runsPerHour: number;
}

/** The question about the next schedule of an agent that has these already. */
export function scheduleRequest(
  before: readonly Pick<OwnSchedule, 'runsPerHour'>[],
  runsPerHour: number,
  depth = 0,
): Extract<PolicyRequest, { kind: 'Schedule' }> {
  const all = before.reduce((sum, schedule) => sum + schedule.runsPerHour, runsPerHour);
  return { kind: 'Schedule', others: before.length, runsPerHour: all, depth };
}

/** Those that the policy and the grants still allow, oldest first. A schedule that is not allowed takes no place of a later one. */
export function allowedSchedules(decider: Pick<Decider, 'decide'>, own: readonly OwnSchedule[]): ReadonlySet<string> {
  const allowed: OwnSchedule[] = [];
  for (const schedule of own) {
    if (decider.decide(scheduleRequest(allowed, schedule.runsPerHour)).effect === 'Allow') allowed.push(schedule);
  }
  return new Set(allowed.map(({ id }) => id));
}
