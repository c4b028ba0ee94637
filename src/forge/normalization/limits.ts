import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { RequestNotes } from './request-notes.ts';

/** Other names of `limits.duration`, with the unit of a plain number. */
const DURATION_ALIASES: Readonly<Record<string, string>> = {
  timeout: 'ms',
  timeoutMs: 'ms',
  timeout_ms: 'ms',
  timeoutMilliseconds: 'ms',
  durationMs: 'ms',
  duration_ms: 'ms',
  maxDurationMs: 'ms',
  timeoutSeconds: 's',
  timeout_seconds: 's',
  durationSeconds: 's',
  timeLimit: '',
  time: '',
};

/** Other names of `limits.memory`, with the unit of a plain number. */
const MEMORY_ALIASES: Readonly<Record<string, string>> = {
  memoryMb: 'Mi',
  memoryMB: 'Mi',
  memory_mb: 'Mi',
  memoryMiB: 'Mi',
  memoryMib: 'Mi',
  memoryBytes: '',
  memory_bytes: '',
  maxMemory: '',
  memoryLimit: '',
};

/** Units as models write them, by their documented form. */
const UNITS: Readonly<Record<string, string>> = {
  ms: 'ms',
  msec: 'ms',
  milliseconds: 'ms',
  s: 's',
  sec: 's',
  secs: 's',
  second: 's',
  seconds: 's',
  m: 'm',
  min: 'm',
  minute: 'm',
  minutes: 'm',
  kb: 'k',
  kib: 'Ki',
  mb: 'M',
  mib: 'Mi',
  gb: 'G',
  gib: 'Gi',
};

/** Gives limits their documented names and units: `timeoutMs: 500` is `duration: "500ms"`. */
export function normalizeLimits(given: Json, notes: RequestNotes): Json {
  const value = typeof given === 'string' ? notes.parsed(given, 'limits') : given;
  if (!isJsonObject(value)) return value;
  const limits = { ...value };
  adopt(limits, 'duration', DURATION_ALIASES, notes);
  adopt(limits, 'memory', MEMORY_ALIASES, notes);
  return limits;
}

function adopt(
  limits: JsonObject,
  member: 'duration' | 'memory',
  aliases: Readonly<Record<string, string>>,
  notes: RequestNotes,
): void {
  const alias =
    limits[member] === undefined ? Object.keys(aliases).find((name) => Object.hasOwn(limits, name)) : member;
  const value = alias === undefined ? undefined : limits[alias];
  if (alias === undefined || value === undefined) return;
  const unit = aliases[alias] ?? '';
  const text = documentedForm(value, unit);
  if (alias === member && text === value) return;
  if (typeof value === 'number' && unit === '' && member === 'duration') {
    notes.report(`limits.${alias} is the number ${value}, which has no unit; write "${value}ms" or "${value}s"`);
  }
  notes.warn(`limits.${alias} was taken as limits.${member} ${JSON.stringify(text).slice(0, 40)}`);
  delete limits[alias];
  limits[member] = text;
}

function documentedForm(value: Json, unit: string): Json {
  if (typeof value === 'number') return `${value}${unit}`;
  return typeof value === 'string' ? inUnits(value) : value;
}

/** `64 MB` is `64M`. */
function inUnits(text: string): string {
  const parts = /^\s{0,4}(\d{1,9})\s{0,4}([A-Za-z]{1,12})\s{0,4}$/.exec(text);
  const unit = parts === null ? undefined : UNITS[(parts[2] ?? '').toLowerCase()];
  // Mi and M, ms and m differ by case or by letters only in forms that need no change.
  if (parts === null || unit === undefined || /^(?:ms|s|m|Ki|Mi|Gi|k|M|G)$/.test(parts[2] ?? '')) return text.trim();
  return `${parts[1] ?? ''}${unit}`;
}
