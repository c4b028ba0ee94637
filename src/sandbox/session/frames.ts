/**
 * The frames of a session runner, beside those of jobs (../protocol.ts), which explains their form.
 *
 *   supervisor                      runner
 *     open            ------------>   (once, in place of `run`; the process serves no job afterwards)
 *                     <------------  opened
 *     execute         ------------>
 *                     <------------  invoke    0 or more times, several may be open
 *     answer          ------------>           one per invoke; `job` is the number of the run
 *                     <------------  waiting   the code runs no more until a further answer
 *                     <------------  executed
 */
import { isCount, isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { isRunnerFailure, type RunnerFailure } from '../port.ts';
import type { OmittedMember, SessionLimits } from '../session-port.ts';

/** Longest name of a call that reaches the host, in characters. */
const MAX_CALL_NAME = 128;
/** Most members of `memory` that a run reports as omitted. */
const MAX_OMITTED = 100;

export interface OpenFrame {
  type: 'open';
  memoryBytes: number;
  snapshotBytes: number;
  /** JSON text of an object. */
  memory: string;
}

export type ExecuteFrame = Pick<
  SessionLimits,
  'guestMilliseconds' | 'outputBytes' | 'logBytes' | 'calls' | 'callBytes'
> & {
  type: 'execute';
  run: number;
  code: string;
  startTime: number;
  seed: string;
};

interface ExecutedReport {
  type: 'executed';
  run: number;
  /** JSON text of the value that the code finished with. */
  finished?: string;
  /** JSON text of the members of `memory`. Absent when the engine can run no more code. */
  memory?: string;
  omitted: OmittedMember[];
  log: string;
  isLogCut: boolean;
  unawaited: number;
  usage: { guestMilliseconds: number; heapBytes: number; calls: number };
}

export type ExecutedFrame = ExecutedReport &
  ({ ok: true /** JSON text. */; output?: string } | { ok: false; code: RunnerFailure; message: string });

export type SessionFrame =
  | { type: 'opened' }
  | { type: 'invoke'; run: number; call: number; name: string; input: string }
  /** `answers`: how many answers of this run the code has got. */
  | { type: 'waiting'; run: number; answers: number }
  | ExecutedFrame;

/** Parses a frame of a session runner. Undefined for anything that is not a valid frame. */
export function parseSessionFrame(value: JsonObject): SessionFrame | undefined {
  const { type, run, call, name, input, answers } = value;
  if (type === 'opened') return { type };
  if (!isCount(run)) return undefined;
  if (type === 'waiting') return isCount(answers) ? { type, run, answers } : undefined;
  if (type === 'executed') return parseExecuted(value, run);
  const isCall = type === 'invoke' && isCount(call) && typeof name === 'string' && typeof input === 'string';
  return isCall && name.length <= MAX_CALL_NAME ? { type, run, call, name, input } : undefined;
}

function parseExecuted(value: JsonObject, run: number): ExecutedFrame | undefined {
  const report = parseReport(value, run);
  const { ok, output, code, message } = value;
  if (report === undefined) return undefined;
  if (ok === true) {
    if (output === undefined) return { ...report, ok };
    return typeof output === 'string' ? { ...report, ok, output } : undefined;
  }
  return isRunnerFailure(code) && typeof message === 'string' ? { ...report, ok: false, code, message } : undefined;
}

function parseReport(value: JsonObject, run: number): ExecutedReport | undefined {
  const { finished, memory, log, isLogCut, unawaited } = value;
  const usage = parseUsage(value['usage']);
  const omitted = parseOmitted(value['omitted']);
  if (usage === undefined || omitted === undefined || typeof log !== 'string' || !isCount(unawaited)) return undefined;
  if (!isOptionalText(finished) || !isOptionalText(memory)) return undefined;
  return {
    type: 'executed',
    run,
    ...(finished === undefined ? {} : { finished }),
    ...(memory === undefined ? {} : { memory }),
    omitted,
    log,
    isLogCut: isLogCut === true,
    unawaited,
    usage,
  };
}

function isOptionalText(value: Json | undefined): value is string | undefined {
  return value === undefined || typeof value === 'string';
}

function parseUsage(value: Json | undefined): ExecutedReport['usage'] | undefined {
  if (!isJsonObject(value)) return undefined;
  const { guestMilliseconds, heapBytes, calls } = value;
  if (typeof guestMilliseconds !== 'number' || guestMilliseconds < 0) return undefined;
  return isCount(heapBytes) && isCount(calls) ? { guestMilliseconds, heapBytes, calls } : undefined;
}

function parseOmitted(value: Json | undefined): OmittedMember[] | undefined {
  if (!Array.isArray(value) || value.length > MAX_OMITTED) return undefined;
  const members = value.flatMap((item) => {
    if (!isJsonObject(item)) return [];
    const { name, reason } = item;
    return typeof name === 'string' && typeof reason === 'string' ? [{ name, reason }] : [];
  });
  return members.length === value.length ? members : undefined;
}
