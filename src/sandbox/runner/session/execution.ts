/**
 * Runs the code of one run of a session, counts its calls and reports how it ended.
 *
 *   environment 'execute'                  -> code runs until it returns and its microtasks are done
 *     mailbox 'call'                          -> an `invoke` frame to the supervisor
 *     mailbox 'log', 'finished'               -> kept for the report
 *     mailbox 'hash', 'seed', 'uuid', 'web'   -> answered in the runner
 *     mailbox 'value/N', 'threw/N' ...        -> the verdict of run N
 *   then: verdict, and no call is open     -> snapshot of `memory`, `executed`
 *         a call or a timer is open        -> `waiting`, read an `answer`, environment 'deliver', judge again
 *         nothing is open, no verdict      -> the promise of the code can never settle: `executed` with a timeout
 *
 * Only the time in the environment counts as time of the code.
 */
import type { RunnerFailure } from '../../port.ts';
import type { AnswerFrame } from '../../protocol.ts';
import type { ExecutedFrame, ExecuteFrame } from '../../session/frames.ts';
import type { EntryResult, GuestEnvironment } from '../engine.ts';
import { hash, seededUuid } from '../hashing.ts';
import { readFrame, writeFrame } from '../pipe.ts';
import { webGroupSource } from '../web/web-globals.ts';
import { MemoryText } from './memory-text.ts';

type CodeVerdict = { ok: true; output?: string } | { ok: false; code: RunnerFailure; message: string };

const MAX_NAME = 128;
const MIN_HASHED_BYTES = 64;
/** Time for the snapshot of `memory` of code that has used up its own. */
const MIN_SNAPSHOT_MS = 250;
const TIMER = 'setTimeout';
/** The engine adds two lines before the body of a function. */
const LINES_BEFORE_BODY = 2;

/** One run. `execute` returns its report, or undefined when the supervisor closed the pipe. */
export class CodeExecution {
  readonly #environment: GuestEnvironment;
  readonly #frame: ExecuteFrame;
  readonly #snapshotBytes: number;
  readonly #timers = new Set<number>();
  #verdict: CodeVerdict | undefined;
  #finished: string | undefined;
  #log = '';
  #logBytes = 0;
  #isLogCut = false;
  #memory: MemoryText | undefined;
  #uuids = 0;
  #calls = 0;
  #openCalls = 0;
  #unawaited = 0;
  #bytes = 0;
  #answers = 0;
  #guestMs = 0;

  constructor(environment: GuestEnvironment, frame: ExecuteFrame, snapshotBytes: number) {
    this.#environment = environment;
    this.#frame = frame;
    this.#snapshotBytes = snapshotBytes;
  }

  execute(): ExecutedFrame | undefined {
    const { run, code, startTime } = this.#frame;
    this.#environment.onMessage = (kind, first, second) => this.#receive(kind, first, second);
    let end = this.#timed((limit) => this.#environment.enter('execute', String(run), code, startTime, limit));
    for (;;) {
      const verdict = this.#judge(end);
      if (verdict !== undefined) return this.#report(verdict, end === 'returned');
      writeFrame({ type: 'waiting', run, answers: this.#answers });
      const answer = this.#readAnswer();
      if (answer === undefined) return undefined;
      end = this.#deliver(answer);
    }
  }

  #judge(end: EntryResult): CodeVerdict | undefined {
    const { guestMilliseconds } = this.#frame;
    if (end === 'timeout') {
      return failedCode(
        'TEMPER_SANDBOX_TIMEOUT',
        `the code ran for more than ${guestMilliseconds} ms, waiting excluded`,
      );
    }
    if (end === 'memory') return failedCode('TEMPER_SANDBOX_MEMORY', 'the code used more than its limit of memory');
    if (end === 'threw') return failedCode('TEMPER_SANDBOX_EXCEPTION', 'the code threw a value that cannot be read');
    if (this.#openCalls > 0) return undefined;
    if (this.#verdict !== undefined || this.#timers.size > 0) return this.#verdict;
    return failedCode(
      'TEMPER_SANDBOX_TIMEOUT',
      'the code awaits a promise that can never settle: no call and no timer is open',
    );
  }

  #readAnswer(): AnswerFrame | undefined {
    for (;;) {
      const frame = readFrame();
      if (frame === undefined) return undefined;
      if (frame.type === 'answer' && frame.job === this.#frame.run) return frame;
    }
  }

  #deliver(frame: AnswerFrame): EntryResult {
    const text = frame.ok ? frame.value : JSON.stringify({ code: frame.code, message: frame.message });
    this.#answers += 1;
    if (!this.#timers.delete(frame.call)) this.#openCalls -= 1;
    this.#bytes += Buffer.byteLength(text);
    this.#endOverBudget();
    const { call, ok, time } = frame;
    return this.#timed((limit) => this.#environment.deliver({ call, ok, text, time }, limit));
  }

  #timed(enter: (limit: number) => EntryResult): EntryResult {
    const remaining = this.#frame.guestMilliseconds - this.#guestMs;
    if (remaining <= 0) return 'timeout';
    const startTime = performance.now();
    const end = enter(remaining);
    this.#guestMs += performance.now() - startTime;
    return end;
  }

  #report(verdict: CodeVerdict, isUsable: boolean): ExecutedFrame {
    const memory = isUsable ? this.#snapshot() : undefined;
    return {
      type: 'executed',
      run: this.#frame.run,
      ...verdict,
      ...(this.#finished === undefined ? {} : { finished: this.#finished }),
      ...(memory === undefined ? {} : { memory: memory.text() }),
      omitted: memory?.omitted ?? [],
      log: this.#log,
      isLogCut: this.#isLogCut,
      unawaited: this.#unawaited,
      usage: {
        guestMilliseconds: Math.round(this.#guestMs * 1_000) / 1_000,
        heapBytes: this.#environment.heapBytes(),
        calls: this.#calls,
      },
    };
  }

  /** Undefined when the code of a getter does not end, or ends the engine. */
  #snapshot(): MemoryText | undefined {
    const memory = new MemoryText(this.#snapshotBytes);
    this.#memory = memory;
    const limit = Math.max(MIN_SNAPSHOT_MS, this.#frame.guestMilliseconds - this.#guestMs);
    const end = this.#environment.enter('snapshot', '', '', this.#frame.startTime, limit);
    this.#memory = undefined;
    return end === 'returned' || end === 'threw' ? memory : undefined;
  }

  #receive(kind: string, first: string, second: string): string {
    switch (kind) {
      case 'call':
        return this.#call(first, second);
      case 'finished':
        return this.#finish(first);
      case 'log':
        return this.#write(first, second);
      case 'member':
        this.#memory?.add(first, second);
        return '';
      case 'omitted':
        this.#memory?.omit(first, second);
        return '';
      case 'hash':
        this.#bytes += Math.max(MIN_HASHED_BYTES, first.length);
        this.#endOverBudget();
        return JSON.stringify(hash(first));
      case 'web':
        return webGroupSource(first);
      case 'seed':
        return this.#frame.seed;
      case 'uuid':
        this.#uuids += 1;
        return seededUuid(this.#frame.seed, this.#uuids);
      default:
        return this.#end(kind, first, second);
    }
  }

  #call(name: string, input: string): string {
    this.#calls += 1;
    this.#bytes += Buffer.byteLength(input);
    this.#endOverBudget();
    if (name === TIMER) this.#timers.add(this.#calls);
    else this.#openCalls += 1;
    writeFrame({ type: 'invoke', run: this.#frame.run, call: this.#calls, name: name.slice(0, MAX_NAME), input });
    return String(this.#calls);
  }

  #finish(text: string): string {
    if (Buffer.byteLength(text) > this.#frame.outputBytes) this.#verdict ??= tooLargeValue(this.#frame.outputBytes);
    else this.#finished ??= text;
    return '';
  }

  #write(level: string, text: string): string {
    const line = `${level === '' ? '' : `[${level}] `}${text}\n`;
    const bytes = Buffer.byteLength(line);
    this.#isLogCut ||= this.#logBytes + bytes > this.#frame.logBytes;
    if (this.#isLogCut) return '';
    this.#log += line;
    this.#logBytes += bytes;
    return '';
  }

  #end(kind: string, text: string, stack: string): string {
    const [what, run] = kind.split('/');
    if (run !== String(this.#frame.run) || this.#verdict !== undefined) return '';
    this.#unawaited = this.#openCalls;
    this.#verdict =
      what === 'syntax'
        ? failedCode('TEMPER_SANDBOX_SYNTAX', this.#syntaxError() ?? text)
        : verdictOn(what, text, stack, this.#frame.outputBytes);
    return '';
  }

  /** With the line. Undefined for code that compiles only because it ends the function around it. */
  #syntaxError(): string | undefined {
    return this.#environment.syntaxError(`(async function () {${this.#frame.code}\n})`, 'code.js');
  }

  /** Code that ignores a refusal would block the thread, so the runner reports the result and ends itself. */
  #endOverBudget(): void {
    const { calls, callBytes } = this.#frame;
    if (this.#calls <= calls && this.#bytes <= callBytes) return;
    const message = `the code exceeded its budget of ${calls} calls and ${callBytes} bytes for arguments and answers`;
    writeFrame(this.#report(failedCode('TEMPER_SANDBOX_CALL_BUDGET', message), false));
    process.kill(process.pid, 'SIGKILL');
  }
}

function verdictOn(kind: string | undefined, text: string, stack: string, maxBytes: number): CodeVerdict {
  switch (kind) {
    case 'value':
      if (text === '') return { ok: true };
      return Buffer.byteLength(text) > maxBytes ? tooLargeValue(maxBytes) : { ok: true, output: text };
    case 'invalid':
      return failedCode(
        'TEMPER_SANDBOX_OUTPUT_INVALID',
        `the returned value cannot be written as JSON: ${text.replace(/^TypeError: /, '')}`,
      );
    default:
      return failedCode('TEMPER_SANDBOX_EXCEPTION', `${text}${codeLocation(stack)}`);
  }
}

function tooLargeValue(maxBytes: number): CodeVerdict {
  return failedCode('TEMPER_SANDBOX_OUTPUT_TOO_LARGE', `the value is larger than ${maxBytes} bytes`);
}

function failedCode(code: RunnerFailure, message: string): CodeVerdict & { ok: false } {
  return { ok: false, code, message };
}

/** The first location in the code that a stack contains. */
function codeLocation(stack: string): string {
  const match = /code\.js:(\d{1,7}):(\d{1,7})/.exec(stack);
  return match === null ? '' : ` (line ${Number(match[1]) - LINES_BEFORE_BODY}, column ${match[2]})`;
}
