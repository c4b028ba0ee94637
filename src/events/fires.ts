import { isCount, isJsonObject, type Json, type JsonObject } from '../lib/json.ts';

/** What a trigger did so far. Times in epoch milliseconds. */
export interface TriggerFires {
  readonly fires: number;
  readonly lastFire?: number;
  /** The clock hour (UTC) of `inHour`, in hours since 1970. */
  readonly hour: number;
  readonly inHour: number;
  /** The last events that it fired for, oldest first: a repeated event is the same fire. */
  readonly recent: readonly string[];
  /** Matching events that gave no message, and the last one of them. A repeated event may count twice. */
  readonly refused?: number;
  readonly lastRefusal?: { readonly reason: string; readonly time: number };
}

export interface FireLimits {
  /** Undefined: no limit. */
  readonly maxFires?: number | undefined;
  readonly maxFiresPerHour: number;
  readonly cooldownMs: number;
}

export type FireRefusal = 'MaxFires' | 'Cooldown' | 'HourlyLimit';

/** `fires` is undefined for an event that it fired for before: its message is sent again, under the same id. */
export type FireDecision = { readonly fires: TriggerFires | undefined } | { readonly refused: FireRefusal };

export const NO_FIRES: TriggerFires = { fires: 0, hour: 0, inHour: 0, recent: [] };
const HOUR_MS = 3_600_000;
/** More than the events that can wait to be sent again. */
const MAX_RECENT = 32;

/** Whether a trigger fires for an event, and what it has done then. Pure. */
export function fire(before: TriggerFires, limits: FireLimits, event: string, now: number): FireDecision {
  if (before.recent.includes(event)) return { fires: undefined };
  const hour = Math.floor(now / HOUR_MS);
  // An hour that a clock which went back repeats continues the later one.
  const inHour = hour <= before.hour ? before.inHour : 0;
  if (limits.maxFires !== undefined && before.fires >= limits.maxFires) return { refused: 'MaxFires' };
  const { lastFire } = before;
  if (lastFire !== undefined && now >= lastFire && now - lastFire < limits.cooldownMs) return { refused: 'Cooldown' };
  if (inHour >= limits.maxFiresPerHour) return { refused: 'HourlyLimit' };
  return {
    fires: {
      ...before,
      fires: before.fires + 1,
      lastFire: now,
      hour: Math.max(hour, before.hour),
      inHour: inHour + 1,
      recent: [...before.recent, event].slice(-MAX_RECENT),
    },
  };
}

/** After a matching event that gave no message. */
export function refused(before: TriggerFires, reason: string, now: number): TriggerFires {
  return { ...before, refused: (before.refused ?? 0) + 1, lastRefusal: { reason, time: now } };
}

/** `NO_FIRES` for a value that is none. */
export function parseFires(value: Json | undefined): TriggerFires {
  if (!isJsonObject(value)) return NO_FIRES;
  const { fires, lastFire, hour, inHour, recent } = value;
  const counts = [fires, hour, inHour];
  if (!counts.every((count) => Number.isSafeInteger(count)) || !Array.isArray(recent)) return NO_FIRES;
  if (!recent.every((id) => typeof id === 'string')) return NO_FIRES;
  return {
    fires: fires as number,
    hour: hour as number,
    inHour: inHour as number,
    recent: recent as string[],
    ...(Number.isSafeInteger(lastFire) ? { lastFire: lastFire as number } : {}),
    ...refusalsIn(value),
  };
}

function refusalsIn({ refused: count, lastRefusal }: JsonObject): Pick<TriggerFires, 'refused' | 'lastRefusal'> {
  if (!isCount(count) || !isJsonObject(lastRefusal)) return {};
  const { reason, time } = lastRefusal;
  if (typeof reason !== 'string' || !isCount(time)) return {};
  return { refused: count, lastRefusal: { reason, time } };
}
