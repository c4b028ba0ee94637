/**
 * Runs one job in one environment, counts its host calls and reports its result.
 *
 *   environment.start(source, input) -> guest code runs until it returns and its microtasks are done
 *     mailbox 'call'                       -> a `call` frame to the supervisor, `waiting` + 1
 *     mailbox 'hash', 'uuid', 'web'        -> answered in the runner
 *     mailbox 'value', 'threw', 'invalid'… -> the verdict; the first one counts
 *   then: verdict or timeout or memory     -> `done`
 *         `waiting` > 0                    -> read an `answer` frame, environment.deliver(...), judge again
 *         nothing is waiting               -> the promise of the tool can never settle: `done` with a timeout
 */
import type { ForwardedApi, RunnerFailure } from '../port.ts';
import type { RunFrame, RunnerFrame } from '../protocol.ts';
import type { EntryResult, GuestEnvironment } from './engine.ts';
import { hash, randomUuid } from './hashing.ts';
import { webGroupSource } from './web/web-globals.ts';
import { readFrame, writeFrame } from './pipe.ts';

type DoneFrame = Extract<RunnerFrame, { type: 'done' }>;
type JobVerdict = { ok: true; output: string } | { ok: false; code: RunnerFailure; message: string };

/** Smallest charge of a hash against the byte budget, so that empty hashes are not free. */
const MIN_HASH_BYTES = 64;

interface JobCounters {
  verdict: JobVerdict | undefined;
  calls: number;
  waiting: number;
  bytes: number;
}

/** Runs the job to its end. Undefined when the supervisor closed the pipe. */
export function runJob(environment: GuestEnvironment, frame: RunFrame): DoneFrame | undefined {
  const startTime = performance.now();
  const counters: JobCounters = { verdict: undefined, calls: 0, waiting: 0, bytes: 0 };
  const done = (verdict: JobVerdict): DoneFrame => ({
    type: 'done',
    job: frame.job,
    ...verdict,
    usage: {
      milliseconds: Math.round((performance.now() - startTime) * 1_000) / 1_000,
      heapBytes: environment.heapBytes(),
      hostCalls: counters.calls,
    },
  });
  environment.onMessage = (kind, first, second) => {
    const answer = receive(environment, frame, counters, kind, first, second);
    if (!overBudget(frame, counters)) return answer;
    // A guest that ignores a refusal would block the thread, so the runner reports the result and kills itself.
    writeFrame(done(budgetExceeded(frame)));
    process.kill(process.pid, 'SIGKILL');
    return '';
  };
  const remaining = (): number => frame.durationMilliseconds - (performance.now() - startTime);
  let end = environment.start(frame.source, frame.input, remaining());
  for (;;) {
    const verdict = judge(frame, counters, end);
    if (verdict !== undefined) return done(verdict);
    const answer = readFrame();
    if (answer === undefined) return undefined;
    if (answer.type !== 'answer' || answer.job !== frame.job) continue;
    counters.waiting -= 1;
    const text = answer.ok ? answer.value : JSON.stringify({ code: answer.code, message: answer.message });
    counters.bytes += Buffer.byteLength(text);
    if (overBudget(frame, counters)) return done(budgetExceeded(frame));
    if (remaining() <= 0) return done(timedOut(frame));
    end = environment.deliver(answer.call, answer.ok, text, remaining());
  }
}

/** The result of the job; undefined while it depends on a response of the host. */
function judge(frame: RunFrame, counters: JobCounters, end: EntryResult): JobVerdict | undefined {
  if (end === 'timeout') return timedOut(frame);
  if (end === 'memory') {
    const limit = Math.floor(frame.memoryBytes / 1_048_576);
    return failure('TEMPER_SANDBOX_MEMORY', `the tool used more than its limit of ${limit} MiB`);
  }
  if (counters.verdict !== undefined) return counters.verdict;
  if (end === 'threw') return failure('TEMPER_SANDBOX_EXCEPTION', 'the tool threw a value that cannot be read');
  if (counters.waiting > 0) return undefined;
  return failure(
    'TEMPER_SANDBOX_TIMEOUT',
    'the tool returned a promise that can never settle: it waits for no pending host call',
  );
}

function receive(
  environment: GuestEnvironment,
  frame: RunFrame,
  counters: JobCounters,
  kind: string,
  first: string,
  second: string,
): string {
  switch (kind) {
    case 'call':
      return requestHost(frame, counters, first, second);
    case 'hash':
      counters.bytes += Math.max(MIN_HASH_BYTES, first.length);
      return frame.apis.includes('crypto') ? JSON.stringify(hash(first)) : '';
    case 'web':
      return webGroupSource(first);
    case 'uuid':
      return frame.apis.includes('random') ? randomUuid() : '';
    default:
      counters.verdict ??= verdictOf(environment, frame, kind, first, second);
      return '';
  }
}

function requestHost(frame: RunFrame, counters: JobCounters, api: string, input: string): string {
  if (!(frame.apis as readonly string[]).includes(api)) return '';
  counters.calls += 1;
  counters.bytes += Buffer.byteLength(input);
  if (!overBudget(frame, counters)) {
    counters.waiting += 1;
    writeFrame({ type: 'call', job: frame.job, call: counters.calls, api: api as ForwardedApi, input });
  }
  return String(counters.calls);
}

function verdictOf(
  environment: GuestEnvironment,
  frame: RunFrame,
  kind: string,
  first: string,
  second: string,
): JobVerdict {
  switch (kind) {
    case 'value':
      return Buffer.byteLength(first) > frame.outputBytes
        ? failure('TEMPER_SANDBOX_OUTPUT_TOO_LARGE', `the result is larger than ${frame.outputBytes} bytes`)
        : { ok: true, output: first };
    case 'invalid':
      return failure(
        'TEMPER_SANDBOX_OUTPUT_INVALID',
        `the result cannot be written as JSON: ${first.replace(/^TypeError: /, '')}`,
      );
    case 'no-entry':
      return failure('TEMPER_SANDBOX_NO_ENTRY', 'the source defines neither execute(input) nor run(input)');
    case 'syntax': {
      const message = environment.syntaxError(frame.source);
      return message === undefined
        ? failure('TEMPER_SANDBOX_EXCEPTION', first)
        : failure('TEMPER_SANDBOX_SYNTAX', message);
    }
    default:
      return failure('TEMPER_SANDBOX_EXCEPTION', `${first}${locationOf(second)}`);
  }
}

/** The first location in the tool that a stack contains. */
function locationOf(stack: string): string {
  const match = /tool\.js:(\d{1,7}):(\d{1,7})/.exec(stack);
  return match === null ? '' : ` (line ${match[1]}, column ${match[2]})`;
}

function overBudget(frame: RunFrame, counters: JobCounters): boolean {
  return counters.calls > frame.hostCalls || counters.bytes > frame.hostBytes;
}

function budgetExceeded(frame: RunFrame): JobVerdict {
  const limits = `${frame.hostCalls} calls and ${frame.hostBytes} bytes`;
  return failure('TEMPER_SANDBOX_CALL_BUDGET', `the tool exceeded its budget of ${limits} for host calls`);
}

function timedOut(frame: RunFrame): JobVerdict {
  return failure('TEMPER_SANDBOX_TIMEOUT', `the tool did not finish within ${frame.durationMilliseconds} ms`);
}

function failure(code: RunnerFailure, message: string): JobVerdict {
  return { ok: false, code, message };
}
