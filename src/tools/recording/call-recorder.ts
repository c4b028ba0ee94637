import { randomBytes } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { HostAnswer, HostCalls, TimeAndRandomness } from '../../sandbox/port.ts';
import type { CallRecording, RecordedAnswer, RecordedCall } from './call-recording.ts';

const SEED_BYTES = 16;
const MAX_MESSAGE = 4_000;

type StepResult = { ok: true; output: Json } | { ok: false; error: { code: ErrorCode; message: string } };

/**
 * Records what one run of a forged tool gets from outside: the answers to its host calls or to the calls of its steps, time and randomness.
 * A tool whose output depends on its input alone records nothing. The budgets of the sandbox and of composed tools bound the memory.
 */
export class CallRecorder {
  readonly #calls: RecordedCall[] = [];
  #run: TimeAndRandomness | undefined;
  #answers: readonly HostAnswer[] | undefined;
  #started = false;

  /** Chooses time and randomness for a run in the sandbox. */
  startSandbox(clock: Clock): TimeAndRandomness {
    this.#started = true;
    this.#run = { startTime: clock.now().getTime(), seed: randomBytes(SEED_BYTES).toString('hex') };
    return this.#run;
  }

  startSteps(): void {
    this.#started = true;
  }

  /** The same host functions; each call is recorded. */
  hostCalls(host: HostCalls): HostCalls {
    return {
      call: async (api, input, op) => {
        const call: RecordedCall = { name: api, input };
        this.#calls.push(call);
        try {
          const value = await host.call(api, input, op);
          call.answer = { ok: true, value };
          return value;
        } catch (error) {
          call.answer = failedAnswer(error);
          throw error;
        }
      },
    };
  }

  /** The answers that the run really got: one that came after its end is not among them. */
  endSandbox(answers: readonly HostAnswer[] = []): void {
    this.#answers = answers;
  }

  step(name: string, input: Json, result: StepResult): void {
    const answer: RecordedAnswer = result.ok
      ? { ok: true, value: result.output }
      : { ok: false, code: result.error.code, message: printable(result.error.message, MAX_MESSAGE) };
    this.#calls.push({ name, input, answer });
  }

  /** Undefined when the tool needs no recording, or did not run. */
  get recording(): CallRecording | undefined {
    if (!this.#started) return undefined;
    if (this.#run === undefined) return { calls: [...this.#calls] };
    const { startTime, seed } = this.#run;
    const answers = [...(this.#answers ?? [])];
    const answered = new Set(answers.map(({ call }) => call));
    const calls = this.#calls.map(({ name, input, answer }, index): RecordedCall => {
      return answer === undefined || !answered.has(index + 1) ? { name, input } : { name, input, answer };
    });
    return { calls, sandbox: { startTime, seed, answers } };
  }
}

/** As the sandbox reports an error to guest code: the message of another error stays outside. */
function failedAnswer(error: unknown): RecordedAnswer {
  if (isTemperError(error)) return { ok: false, code: error.code, message: printable(error.message, MAX_MESSAGE) };
  return { ok: false, code: 'TEMPER_INTERNAL', message: 'the host could not answer' };
}
