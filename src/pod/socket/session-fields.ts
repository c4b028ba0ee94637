/** Parsers for the members of the frames of sessions, which are untrusted. Each returns undefined for an invalid value. */
import { isErrorCode } from '../../lib/error-codes.ts';
import { isCount, isJsonObject, type Json, member } from '../../lib/json.ts';
import { isSandboxFailure } from '../../sandbox/port.ts';
import type {
  MemorySnapshot,
  OmittedMember,
  RunOutcome,
  RunReport,
  SessionAnswer,
  SessionLimits,
  SessionOptions,
  SessionRequest,
  SessionRun,
} from '../../sandbox/session-port.ts';

const MAX_MESSAGE = 4_096;
const MAX_NAME = 128;
/** As many as a runner reports. */
const MAX_OMITTED = 100;
const SEED = /^[0-9a-f]{32}$/;
const LIMIT_NAMES = [
  'memoryBytes',
  'guestMilliseconds',
  'runMilliseconds',
  'outputBytes',
  'snapshotBytes',
  'logBytes',
  'calls',
  'callBytes',
] as const satisfies readonly (keyof SessionLimits)[];

export function parseSessionOptions(value: Json | undefined): SessionOptions | undefined {
  const given = member(value, 'limits');
  const memory = member(value, 'memory');
  const limits: Partial<SessionLimits> = {};
  for (const name of LIMIT_NAMES) {
    const limit = member(given, name);
    if (!isCount(limit)) return undefined;
    limits[name] = limit;
  }
  return isJsonObject(memory) ? { limits: limits as SessionLimits, memory } : undefined;
}

export function parseSessionRun(value: Json | undefined): SessionRun | undefined {
  const code = member(value, 'code');
  const given = member(value, 'timeAndRandomness');
  if (typeof code !== 'string') return undefined;
  if (given === undefined) return { code };
  const [startTime, seed] = [member(given, 'startTime'), member(given, 'seed')];
  if (!isCount(startTime) || typeof seed !== 'string' || !SEED.test(seed)) return undefined;
  return { code, timeAndRandomness: { startTime, seed } };
}

export function parseSessionRequest(value: Json | undefined): SessionRequest | undefined {
  const [call, name] = [member(value, 'call'), member(value, 'name')];
  if (!isCount(call) || typeof name !== 'string' || name.length > MAX_NAME) return undefined;
  return { call, name, input: member(value, 'input') ?? null };
}

export function parseSessionAnswer(value: Json | undefined): SessionAnswer | undefined {
  const [time, ok, code, message] = ['time', 'ok', 'code', 'message'].map((key) => member(value, key));
  if (!isCount(time)) return undefined;
  if (ok === true) return { time, ok, value: member(value, 'value') ?? null };
  if (!isErrorCode(code) || typeof message !== 'string') return undefined;
  return { time, ok: false, code, message: message.slice(0, MAX_MESSAGE) };
}

export function parseRunOutcome(value: Json | undefined): RunOutcome | undefined {
  const report = reportIn(value);
  const memory = snapshotIn(member(value, 'memory'));
  if (report === undefined || memory === 'invalid') return undefined;
  const finished = member(value, 'finished');
  const members = {
    ...report,
    ...(memory === undefined ? {} : { memory }),
    ...(finished === undefined ? {} : { finished: { value: member(finished, 'value') ?? null } }),
  };
  const [ok, code, message, output] = ['ok', 'code', 'message', 'value'].map((key) => member(value, key));
  if (ok === true) return output === undefined ? { ...members, ok } : { ...members, ok, value: output };
  if (!isSandboxFailure(code) || typeof message !== 'string') return undefined;
  return { ...members, ok: false, code, message: message.slice(0, MAX_MESSAGE) };
}

function reportIn(value: Json | undefined): RunReport | undefined {
  const [log, isLogCut, unawaited] = ['log', 'isLogCut', 'unawaited'].map((key) => member(value, key));
  const usage = member(value, 'usage');
  const [guestMilliseconds, heapBytes, calls] = ['guestMilliseconds', 'heapBytes', 'calls'].map((key) =>
    member(usage, key),
  );
  if (typeof log !== 'string' || typeof isLogCut !== 'boolean' || !isCount(unawaited)) return undefined;
  if (typeof guestMilliseconds !== 'number' || guestMilliseconds < 0) return undefined;
  if (!isCount(heapBytes) || !isCount(calls)) return undefined;
  return { log, isLogCut, unawaited, usage: { guestMilliseconds, heapBytes, calls } };
}

function snapshotIn(value: Json | undefined): MemorySnapshot | 'invalid' | undefined {
  if (value === undefined) return undefined;
  const [values, given] = [member(value, 'values'), member(value, 'omitted')];
  if (!isJsonObject(values) || !Array.isArray(given) || given.length > MAX_OMITTED) return 'invalid';
  const omitted = given.flatMap(omittedIn);
  return omitted.length === given.length ? { values, omitted } : 'invalid';
}

function omittedIn(value: Json): OmittedMember[] {
  const [name, reason] = [member(value, 'name'), member(value, 'reason')];
  if (typeof name !== 'string' || typeof reason !== 'string') return [];
  return [{ name: name.slice(0, MAX_MESSAGE), reason: reason.slice(0, MAX_MESSAGE) }];
}
