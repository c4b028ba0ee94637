/** One job in one environment: counts what guest code asks of the host, and says how it ended. */
import type { RemoteApi, RunFrame, RunnerFailure, RunnerFrame } from '../protocol.ts';
import type { EntryEnd, Environment } from './engine.ts';
import { hash, randomUuid } from './hashing.ts';
import { readFrame, writeFrame } from './pipe.ts';

type DoneFrame = Extract<RunnerFrame, { type: 'done' }>;
type Verdict = { ok: true; output: string } | { ok: false; code: RunnerFailure; message: string };

/** A hash costs this many bytes of the budget at least, so that empty ones are not free. */
const SMALLEST_HASH = 64;

interface Tally {
  verdict: Verdict | undefined;
  calls: number;
  waiting: number;
  bytes: number;
}

/** Runs the job to its end. Undefined when the supervisor is gone. */
export function runJob(environment: Environment, frame: RunFrame): DoneFrame | undefined {
  const begin = performance.now();
  const tally: Tally = { verdict: undefined, calls: 0, waiting: 0, bytes: 0 };
  const done = (verdict: Verdict): DoneFrame => ({
    type: 'done',
    job: frame.job,
    ...verdict,
    usage: {
      milliseconds: Math.round((performance.now() - begin) * 1_000) / 1_000,
      heapBytes: environment.heapBytes(),
      hostCalls: tally.calls,
    },
  });
  environment.mailbox = (kind, first, second) => {
    const answer = receive(environment, frame, tally, kind, first, second);
    if (!overBudget(frame, tally)) return answer;
    // A guest that ignores a refusal would hold the thread; nothing it does from here on counts.
    writeFrame(done(budgetSpent(frame)));
    process.kill(process.pid, 'SIGKILL');
    return '';
  };
  const remaining = (): number => frame.durationMilliseconds - (performance.now() - begin);
  let end = environment.start(frame.source, frame.input, remaining());
  for (;;) {
    const verdict = judge(frame, tally, end);
    if (verdict !== undefined) return done(verdict);
    const answer = readFrame();
    if (answer === undefined) return undefined;
    if (answer.type !== 'answer' || answer.job !== frame.job) continue;
    tally.waiting -= 1;
    const text = answer.ok ? answer.value : JSON.stringify({ code: answer.code, message: answer.message });
    tally.bytes += Buffer.byteLength(text);
    if (overBudget(frame, tally)) return done(budgetSpent(frame));
    if (remaining() <= 0) return done(timedOut(frame));
    end = environment.deliver(answer.call, answer.ok, text, remaining());
  }
}

/** Undefined: nothing is decided, an answer of the host may decide it. */
function judge(frame: RunFrame, tally: Tally, end: EntryEnd): Verdict | undefined {
  if (end === 'timeout') return timedOut(frame);
  if (end === 'memory') {
    const limit = Math.floor(frame.memoryBytes / 1_048_576);
    return refusal('TEMPER_SANDBOX_MEMORY', `the tool used more than its limit of ${limit} MiB`);
  }
  if (tally.verdict !== undefined) return tally.verdict;
  if (end === 'threw') return refusal('TEMPER_SANDBOX_THREW', 'the tool threw something that cannot be read');
  if (tally.waiting > 0) return undefined;
  return refusal(
    'TEMPER_SANDBOX_TIMEOUT',
    'the tool returned a promise that can never settle: nothing it waits for is under way',
  );
}

function receive(
  environment: Environment,
  frame: RunFrame,
  tally: Tally,
  kind: string,
  first: string,
  second: string,
): string {
  switch (kind) {
    case 'call':
      return requestHost(frame, tally, first, second);
    case 'hash':
      tally.bytes += Math.max(SMALLEST_HASH, first.length);
      return frame.apis.includes('crypto') ? JSON.stringify(hash(first)) : '';
    case 'uuid':
      return frame.apis.includes('random') ? randomUuid() : '';
    default:
      tally.verdict ??= settle(environment, frame, kind, first, second);
      return '';
  }
}

function requestHost(frame: RunFrame, tally: Tally, api: string, input: string): string {
  if (!(frame.apis as readonly string[]).includes(api)) return '';
  tally.calls += 1;
  tally.bytes += Buffer.byteLength(input);
  if (!overBudget(frame, tally)) {
    tally.waiting += 1;
    writeFrame({ type: 'call', job: frame.job, call: tally.calls, api: api as RemoteApi, input });
  }
  return String(tally.calls);
}

function settle(environment: Environment, frame: RunFrame, kind: string, first: string, second: string): Verdict {
  switch (kind) {
    case 'value':
      return Buffer.byteLength(first) > frame.outputBytes
        ? refusal('TEMPER_SANDBOX_OUTPUT_TOO_LARGE', `the result is larger than ${frame.outputBytes} bytes`)
        : { ok: true, output: first };
    case 'invalid':
      return refusal(
        'TEMPER_SANDBOX_OUTPUT_INVALID',
        `the result cannot be written as JSON: ${first.replace(/^TypeError: /, '')}`,
      );
    case 'no-entry':
      return refusal('TEMPER_SANDBOX_NO_ENTRY', 'the source defines neither execute(input) nor run(input)');
    case 'syntax': {
      const message = environment.syntaxError(frame.source);
      return message === undefined ? refusal('TEMPER_SANDBOX_THREW', first) : refusal('TEMPER_SANDBOX_SYNTAX', message);
    }
    default:
      return refusal('TEMPER_SANDBOX_THREW', `${first}${placeOf(second)}`);
  }
}

/** The first place in the tool that a stack names. */
function placeOf(stack: string): string {
  const match = /tool\.js:(\d{1,7}):(\d{1,7})/.exec(stack);
  return match === null ? '' : ` (line ${match[1]}, column ${match[2]})`;
}

function overBudget(frame: RunFrame, tally: Tally): boolean {
  return tally.calls > frame.hostCalls || tally.bytes > frame.hostBytes;
}

function budgetSpent(frame: RunFrame): Verdict {
  const limits = `${frame.hostCalls} calls and ${frame.hostBytes} bytes`;
  return refusal('TEMPER_SANDBOX_CALL_BUDGET', `the tool used more of the host than its ${limits}`);
}

function timedOut(frame: RunFrame): Verdict {
  return refusal('TEMPER_SANDBOX_TIMEOUT', `the tool did not finish within ${frame.durationMilliseconds} ms`);
}

function refusal(code: RunnerFailure, message: string): Verdict {
  return { ok: false, code, message };
}
