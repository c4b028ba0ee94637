import type { Clock } from '../../lib/clock.ts';
import { isTemperError, messageOf } from '../../lib/errors.ts';
import { printable } from '../../lib/escape.ts';
import type { ModelEvent } from '../../models/port.ts';
import type { StreamLine } from '../../remote/wire.ts';

/** How long a connection may be silent while a model thinks. */
const KEEP_ALIVE_MILLISECONDS = 10_000;
const MESSAGE_CHARACTERS = 2_000;

type Step = IteratorResult<ModelEvent, unknown>;
type Outcome = { step: Step } | { error: unknown } | 'silence';

export interface LineDeps {
  clock: Clock;
  /** Told of failures that are defects of our own. */
  failed: (error: unknown) => void;
}

/** The first event of an answer, and all of it as lines. */
export class AnswerLines {
  readonly #iterator: AsyncIterator<ModelEvent>;
  readonly #deps: LineDeps;
  #pending: Promise<Exclude<Outcome, 'silence'>>;

  constructor(events: AsyncIterable<ModelEvent>, deps: LineDeps) {
    this.#deps = deps;
    this.#iterator = events[Symbol.asyncIterator]();
    this.#pending = this.#next();
  }

  /** What the answer failed of before anything was sent, when that shows at once. */
  async firstFailure(): Promise<unknown> {
    const outcome = await this.#outcome();
    return outcome !== 'silence' && 'error' in outcome ? outcome.error : undefined;
  }

  /** Ends with `end` or `error`. Whoever stops reading withdraws the call. */
  async *lines(): AsyncGenerator<string> {
    try {
      for (;;) {
        const outcome = await this.#outcome();
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
          yield textOf({ type: 'error', code: 'TEMPER_MODEL_FORMAT', message: 'the answer has no end' });
          return;
        }
        if (step.value.type === 'end') {
          yield textOf(step.value);
          return;
        }
        this.#pending = this.#next();
        yield textOf(step.value);
      }
    } finally {
      await this.stop();
    }
  }

  /** Withdraws the call, whether anybody reads or not. */
  async stop(): Promise<void> {
    await this.#iterator.return?.().catch(this.#deps.failed);
  }

  /** Never rejects: it may be made long before anybody waits for it. */
  #next(): Promise<Exclude<Outcome, 'silence'>> {
    return this.#iterator.next().then(
      (step) => ({ step }),
      (error: unknown) => ({ error }),
    );
  }

  async #outcome(): Promise<Outcome> {
    const done = new AbortController();
    const silence = this.#deps.clock.sleep(KEEP_ALIVE_MILLISECONDS, done.signal).then(
      () => 'silence' as const,
      () => 'silence' as const,
    );
    try {
      return await Promise.race([this.#pending, silence]);
    } finally {
      done.abort();
    }
  }

  #failure(error: unknown): StreamLine {
    if (isTemperError(error) && error.code !== 'TEMPER_INTERNAL') {
      return { type: 'error', code: error.code, message: printable(messageOf(error), MESSAGE_CHARACTERS) };
    }
    this.#deps.failed(error);
    return { type: 'error', code: 'TEMPER_INTERNAL', message: 'the gateway failed; its log has more' };
  }
}

function textOf(line: StreamLine): string {
  return `${JSON.stringify(line)}\n`;
}
