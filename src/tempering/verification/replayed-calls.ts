import { differenceFrom, sameJson } from '../../forge/test-runs/compare-json.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { HostCalls, TimeAndRandomness } from '../../sandbox/port.ts';
import type { ToolResult } from '../../tools/contract.ts';
import type { CallRecording, RecordedAnswer, RecordedCall } from '../../tools/recording/call-recording.ts';

/**
 * Answers the calls of one re-run with the recorded answers. The re-run must make the recorded calls, with the same arguments and in the
 * same order; it gets the answers in the order in which the use got them. After a call that differs it gets no further answer.
 */
export class ReplayedCalls {
  readonly #recording: CallRecording;
  readonly #waiting = new Map<number, () => void>();
  #made = 0;
  #delivered = 0;
  #mismatch: string | undefined;

  constructor(recording: CallRecording) {
    this.#recording = recording;
  }

  /** Time and randomness of the use. Undefined for a composed tool. */
  get timeAndRandomness(): TimeAndRandomness | undefined {
    const { sandbox } = this.#recording;
    if (sandbox === undefined) return undefined;
    const { startTime, seed, answers } = sandbox;
    return { startTime, seed, answerTimes: answers.map(({ time }) => time) };
  }

  /** Host functions for a run in the sandbox. A call that the use did not see answered stays without an answer. */
  get host(): HostCalls {
    return {
      call: (api, input) => {
        const { promise, resolve, reject } = Promise.withResolvers<Json>();
        const call = this.#next(api, input);
        if (call === undefined) reject(this.#mismatchError());
        else if (call.answer !== undefined) {
          const { answer } = call;
          this.#waiting.set(this.#made, () => (answer.ok ? resolve(answer.value) : reject(errorOf(answer))));
          // The sandbox waits for the promise only after this function returned it.
          queueMicrotask(() => this.#deliver());
        }
        return promise;
      },
    };
  }

  /** The result of a step. */
  step(tool: string, input: Json): ToolResult {
    const call = this.#next(tool, input);
    const answer = call?.answer;
    if (answer?.ok === true) return { ok: true, tool, output: answer.value, milliseconds: 0 };
    const { code, message } = answer ?? this.#mismatchError();
    return { ok: false, tool, error: { code, message }, milliseconds: 0 };
  }

  /** After the run: what differs from the calls of the use. */
  get mismatch(): string | undefined {
    const { calls } = this.#recording;
    if (this.#mismatch !== undefined || this.#made >= calls.length) return this.#mismatch;
    return `it made ${this.#made} of the ${calls.length} recorded calls`;
  }

  #next(name: string, input: Json): RecordedCall | undefined {
    if (this.#mismatch !== undefined) return undefined;
    const recorded = this.#recording.calls[this.#made];
    this.#made += 1;
    this.#mismatch = differenceOf(recorded, name, input, this.#made);
    return this.#mismatch === undefined ? recorded : undefined;
  }

  /** Resolves the calls whose turn has come: the sandbox delivers answers in the order in which they resolve. */
  #deliver(): void {
    const { answers = [] } = this.#recording.sandbox ?? {};
    for (;;) {
      const next = answers[this.#delivered];
      const deliver = next === undefined ? undefined : this.#waiting.get(next.call);
      if (deliver === undefined) return;
      this.#delivered += 1;
      deliver();
    }
  }

  #mismatchError(): TemperError {
    return new TemperError('TEMPER_REPLAY_MISMATCH', this.#mismatch ?? 'the recorded call has no answer');
  }
}

function differenceOf(
  recorded: RecordedCall | undefined,
  name: string,
  input: Json,
  position: number,
): string | undefined {
  const shown = printable(name, 100);
  if (recorded === undefined) return `call ${position}, "${shown}", is not among the recorded calls`;
  if (recorded.name !== name) return `call ${position} is "${shown}", recorded is "${printable(recorded.name, 100)}"`;
  if (sameJson(recorded.input, input)) return undefined;
  const path = printable(differenceFrom(recorded.input, input) ?? '', 100);
  return `call ${position}, "${shown}", has other arguments than recorded${path === '' ? '' : `, at ${path}`}`;
}

function errorOf({ code, message }: Extract<RecordedAnswer, { ok: false }>): TemperError {
  return new TemperError(code, message);
}
