/** Parsers for the members of frames, which are untrusted. Each returns undefined for an invalid value. */
import { type ErrorCode, isErrorCode } from '../../lib/error-codes.ts';
import { isJsonObject, type Json, type JsonObject, member } from '../../lib/json.ts';
import type { HostApi, Job, JobLimits, JobUsage, JobOutcome, SandboxFailure } from '../../sandbox/port.ts';
import type { ResolvedFile } from '../../tools/host/host-files.ts';

/** The result of a request: its value, or the error that was thrown. */
export type SocketResult = { ok: true; value: Json } | { ok: false; code: ErrorCode; message: string };

const MAX_MESSAGE = 4_096;
const MAX_PATH = 4_096;
const APIS: ReadonlySet<string> = new Set<HostApi>(['fetch', 'fs.readFile', 'crypto', 'clock', 'random']);
const LIMIT_NAMES = ['durationMilliseconds', 'memoryBytes', 'outputBytes', 'hostCalls', 'hostBytes'] as const;
const FAILURES: ReadonlySet<string> = new Set<SandboxFailure>([
  'TEMPER_SANDBOX_UNAVAILABLE',
  'TEMPER_SANDBOX_SYNTAX',
  'TEMPER_SANDBOX_NO_ENTRY',
  'TEMPER_SANDBOX_EXCEPTION',
  'TEMPER_SANDBOX_TIMEOUT',
  'TEMPER_SANDBOX_MEMORY',
  'TEMPER_SANDBOX_OUTPUT_INVALID',
  'TEMPER_SANDBOX_OUTPUT_TOO_LARGE',
  'TEMPER_SANDBOX_INPUT_TOO_LARGE',
  'TEMPER_SANDBOX_CALL_BUDGET',
  'TEMPER_SANDBOX_CRASHED',
  'TEMPER_CANCELLED',
]);

export function parseJob(value: Json | undefined): Job | undefined {
  const source = member(value, 'source');
  const apis = member(value, 'apis');
  const limits = limitsIn(member(value, 'limits'));
  if (member(value, 'language') !== 'javascript' || typeof source !== 'string' || limits === undefined)
    return undefined;
  if (!Array.isArray(apis) || !apis.every((api) => typeof api === 'string' && APIS.has(api))) return undefined;
  return {
    language: 'javascript',
    source,
    input: member(value, 'input') ?? null,
    apis: apis as unknown as HostApi[],
    limits,
  };
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
  if (typeof code !== 'string' || !FAILURES.has(code) || typeof message !== 'string') return undefined;
  return { ok: false, code: code as SandboxFailure, message: message.slice(0, MAX_MESSAGE), usage };
}

function usageIn(value: Json | undefined): JobUsage | undefined {
  const milliseconds = member(value, 'milliseconds');
  const [heapBytes, hostCalls] = [member(value, 'heapBytes'), member(value, 'hostCalls')];
  if (typeof milliseconds !== 'number' || milliseconds < 0 || !isCount(heapBytes) || !isCount(hostCalls)) {
    return undefined;
  }
  return { milliseconds, heapBytes, hostCalls };
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

export function isCount(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
