/** Parsers for the members of frames, which are untrusted. Each returns undefined for an invalid value. */
import { TOOL_APIS } from '../../api/v1alpha1/actions.ts';
import type { ToolApi } from '../../api/v1alpha1/common.ts';
import { type ErrorCode, isErrorCode } from '../../lib/error-codes.ts';
import { isCount, isJsonObject, type Json, type JsonObject, member } from '../../lib/json.ts';
import {
  type HostAnswer,
  isSandboxFailure,
  type Job,
  type JobLimits,
  type JobOutcome,
  type JobUsage,
  type TimeAndRandomness,
} from '../../sandbox/port.ts';
import type { ResolvedFile } from '../../tools/host/host-files.ts';

/** The result of a request: its value, or the error that was thrown. */
export type SocketResult = { ok: true; value: Json } | { ok: false; code: ErrorCode; message: string };

const MAX_MESSAGE = 4_096;
const MAX_PATH = 4_096;
const MAX_OWNER = 512;
/** More answers than the host calls of any job. */
const MAX_ANSWERS = 1_000;
const SEED = /^[0-9a-f]{32}$/;
const APIS: ReadonlySet<unknown> = new Set(TOOL_APIS);
const LIMIT_NAMES = ['durationMilliseconds', 'memoryBytes', 'outputBytes', 'hostCalls', 'hostBytes'] as const;

export function parseJob(value: Json | undefined): Job | undefined {
  const source = member(value, 'source');
  const apis = member(value, 'apis');
  const limits = limitsIn(member(value, 'limits'));
  const given = member(value, 'timeAndRandomness');
  const timeAndRandomness = timeAndRandomnessIn(given);
  if (member(value, 'language') !== 'javascript' || typeof source !== 'string' || limits === undefined)
    return undefined;
  if (given !== undefined && timeAndRandomness === undefined) return undefined;
  if (!Array.isArray(apis) || !apis.every((api) => APIS.has(api))) return undefined;
  const owner = member(value, 'owner');
  if (owner !== undefined && (typeof owner !== 'string' || owner.length > MAX_OWNER)) return undefined;
  return {
    language: 'javascript',
    source,
    input: member(value, 'input') ?? null,
    apis: apis as unknown as ToolApi[],
    limits,
    ...(timeAndRandomness === undefined ? {} : { timeAndRandomness }),
    ...(owner === undefined ? {} : { owner }),
  };
}

function timeAndRandomnessIn(value: Json | undefined): TimeAndRandomness | undefined {
  const [startTime, seed, times] = ['startTime', 'seed', 'answerTimes'].map((key) => member(value, key));
  if (!isCount(startTime) || typeof seed !== 'string' || !SEED.test(seed)) return undefined;
  if (times === undefined) return { startTime, seed };
  return isShortList(times) && times.every(isCount) ? { startTime, seed, answerTimes: times } : undefined;
}

function isShortList(value: Json | undefined): value is Json[] {
  return Array.isArray(value) && value.length <= MAX_ANSWERS;
}

function limitsIn(value: Json | undefined): JobLimits | undefined {
  const limits: Partial<JobLimits> = {};
  for (const name of LIMIT_NAMES) {
    const limit = member(value, name);
    if (!isCount(limit)) return undefined;
    limits[name] = limit;
  }
  return limits as JobLimits;
}

export function parseOutcome(value: Json | undefined): JobOutcome | undefined {
  const usage = usageIn(member(value, 'usage'));
  const [ok, code, message] = ['ok', 'code', 'message'].map((key) => member(value, key));
  if (usage === undefined) return undefined;
  if (ok === true) return { ok, output: member(value, 'output') ?? null, usage };
  if (!isSandboxFailure(code) || typeof message !== 'string') return undefined;
  return { ok: false, code, message: message.slice(0, MAX_MESSAGE), usage };
}

function usageIn(value: Json | undefined): JobUsage | undefined {
  const milliseconds = member(value, 'milliseconds');
  const [heapBytes, hostCalls] = [member(value, 'heapBytes'), member(value, 'hostCalls')];
  if (typeof milliseconds !== 'number' || milliseconds < 0 || !isCount(heapBytes) || !isCount(hostCalls)) {
    return undefined;
  }
  const given = member(value, 'answers');
  const answers = answersIn(given);
  if (given !== undefined && answers === undefined) return undefined;
  return { milliseconds, heapBytes, hostCalls, ...(answers === undefined ? {} : { answers }) };
}

function answersIn(value: Json | undefined): HostAnswer[] | undefined {
  if (!isShortList(value)) return undefined;
  const answers = value.flatMap((item) => {
    const [call, time] = [member(item, 'call'), member(item, 'time')];
    return isCount(call) && isCount(time) ? [{ call, time }] : [];
  });
  return answers.length === value.length ? answers : undefined;
}

export function parseResult(value: Json | undefined): SocketResult | undefined {
  if (!isJsonObject(value)) return undefined;
  if (value['ok'] === true) return { ok: true, value: value['value'] ?? null };
  return value['ok'] === false ? failureIn(value) : undefined;
}

function failureIn({ code, message }: JsonObject): SocketResult | undefined {
  if (!isErrorCode(code) || typeof message !== 'string') return undefined;
  return { ok: false, code, message: message.slice(0, MAX_MESSAGE) };
}

export function parseFoundFile(value: Json | undefined): ResolvedFile | undefined {
  const [absolute, relative] = [member(value, 'absolute'), member(value, 'relative')];
  if (!isPath(absolute) || (relative !== undefined && !isPath(relative))) return undefined;
  return { absolute, relative };
}

function isPath(value: Json | undefined): value is string {
  return typeof value === 'string' && value.length <= MAX_PATH;
}
