import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';
import type { ActiveRun, ScheduleState } from './advance.ts';

const TIMES = ['next', 'last', 'lastSuccess'] as const;
const COUNTS = ['generation', 'failures', 'missed', 'skipped'] as const;

/** The state of a stored document; undefined when it is not valid, as for a schedule that is new. */
export function parseScheduleState(value: Json | undefined): ScheduleState | undefined {
  if (!isJsonObject(value) || typeof value['timing'] !== 'string') return undefined;
  if (!COUNTS.every((name) => isCount(value[name]))) return undefined;
  if (!TIMES.every((name) => value[name] === undefined || isCount(value[name]))) return undefined;
  const { active } = value;
  if (active !== undefined && !isRun(active)) return undefined;
  const { persistent } = value;
  const { timing, generation, failures, missed, skipped, next, last, lastSuccess } = value as unknown as ScheduleState;
  return {
    timing,
    generation,
    failures,
    missed,
    skipped,
    ...(persistent === true ? { persistent } : {}),
    ...(next === undefined ? {} : { next }),
    ...(last === undefined ? {} : { last }),
    ...(lastSuccess === undefined ? {} : { lastSuccess }),
    ...(active === undefined ? {} : { active: activeRun(active) }),
  };
}

export function storedForm(state: ScheduleState): JsonObject {
  return { ...state } as unknown as JsonObject;
}

function isRun(value: Json): boolean {
  return isJsonObject(value) && isCount(value['due']) && typeof value['message'] === 'string';
}

function activeRun(value: Json): ActiveRun {
  const { due, message } = value as unknown as ActiveRun;
  return { due, message };
}

function isCount(value: Json | undefined): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
