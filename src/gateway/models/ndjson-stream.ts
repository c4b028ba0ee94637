import type { Clock } from '../../lib/clock.ts';
import { isTemperError, messageOf, type Retry } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { ModelEvent, RepeatedCall } from '../../models/port.ts';
import type { ModelStreamLine } from '../../gateway-api/pod-api.ts';

/** Interval of empty keep-alive lines while the model is silent. */
const KEEP_ALIVE_MS = 10_000;
const MAX_MESSAGE_CHARACTERS = 2_000;
/** More than all models of a call have attempts. */
const MAX_REPEATS = 64;

type StreamStep = IteratorResult<ModelEvent, unknown>;
type StreamOutcome = { step: StreamStep } | { error: unknown } | 'silence';

export interface NdjsonStreamDeps {
  clock: Clock;
  /** Called with internal errors. */
  failed: (error: unknown) => void;
  /** The signature of the whole answer, when its end is sent; undefined for an answer without one. */
  signature?: () => string | undefined;
}

/** A model response as NDJSON lines, with access to an early error before the first line. */
export class NdjsonModelStream {
  readonly #iterator: AsyncIterator<ModelEvent>;
  readonly #deps: NdjsonStreamDeps;
  #repeated: RepeatedCall[] = [];
  #pending: Promise<Exclude<StreamOutcome, 'silence'>>;

  constructor(events: AsyncIterable<ModelEvent>, deps: NdjsonStreamDeps) {
    this.#deps = deps;
    this.#iterator = events[Symbol.asyncIterator]();
    this.#pending = this.#next();
  }

  /** Reports a repetition of the call, with the next line. */
  repeats(call: RepeatedCall): void {
    if (this.#repeated.length < MAX_REPEATS) this.#repeated.push(call);
  }

  /** The error before the first event; undefined when an event arrives first or nothing arrives within the keep-alive interval. */
  async firstError(): Promise<unknown> {
    const outcome = await this.#outcome();
    return outcome !== 'silence' && 'error' in outcome ? outcome.error : undefined;
  }

  /** The last line is `end` or `error`. Stopping the iteration cancels the model call. */
  async *lines(): AsyncGenerator<string> {
    try {
      for (;;) {
        const outcome = await this.#outcome();
        for (const call of this.#repeated.splice(0)) yield textOf({ type: 'retry', ...call });
        if (outcome === 'silence') {
          yield '\n';
          continue;
        }
        if ('error' in outcome) {
          yield textOf(this.#failure(outcome.error));
          return;
        }
        const { step } = outcome;
        if (step.done === true) {
          yield textOf({ type: 'error', code: 'TEMPER_MODEL_FORMAT', message: 'the response has no end event' });
          return;
        }
        if (step.value.type === 'end') {
          const signature = this.#deps.signature?.();
          yield textOf(signature === undefined ? step.value : { ...step.value, signature });
          return;
        }
        this.#pending = this.#next();
        yield textOf(step.value);
      }
    } finally {
      await this.cancel();
    }
  }

  /** Cancels the model call, also when reading never started. */
  async cancel(): Promise<void> {
    await this.#iterator.return?.().catch(this.#deps.failed);
  }

  /** Never rejects, because the promise may exist long before it is awaited. */
  #next(): Promise<Exclude<StreamOutcome, 'silence'>> {
    return this.#iterator.next().then(
      (step) => ({ step }),
      (error: unknown) => ({ error }),
    );
  }

  async #outcome(): Promise<StreamOutcome> {
    const done = new AbortController();
    const silence = this.#deps.clock.sleep(KEEP_ALIVE_MS, done.signal).then(
      () => 'silence' as const,
      () => 'silence' as const,
    );
    try {
      return await Promise.race([this.#pending, silence]);
    } finally {
      done.abort('arrived');
    }
  }

  #failure(error: unknown): ModelStreamLine {
    if (isTemperError(error) && error.code !== 'TEMPER_INTERNAL') {
      const { code, retry } = error;
      const message = printable(messageOf(error), MAX_MESSAGE_CHARACTERS);
      return { type: 'error', code, message, ...retryMember(retry) };
    }
    this.#deps.failed(error);
    return { type: 'error', code: 'TEMPER_INTERNAL', message: 'internal error of the gateway; see its log' };
  }
}

function retryMember(retry: Retry): { retry?: 'backoff' | number } {
  if (retry === 'never') return {};
  return { retry: retry === 'backoff' ? retry : Math.max(0, Math.ceil(retry)) };
}

function textOf(line: ModelStreamLine): string {
  return `${JSON.stringify(line)}\n`;
}
