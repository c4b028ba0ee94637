import { onAbort } from '../../../lib/async/abort.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { PipelineOptions } from '../../pipeline.ts';
import type { ModelEvent, TokenUsage } from '../../port.ts';

/** Further answers of the same caller are aborted at once. */
const MAX_PER_CALLER = 8;

/** An answer whose reader left. */
export interface AbandonedAnswer {
  events: AsyncIterator<ModelEvent>;
  /** The step that the reader was waiting for, if any. */
  pending: Promise<IteratorResult<ModelEvent>> | undefined;
  /** What the provider has counted so far, if it has. */
  usage: () => TokenUsage | undefined;
  /** Closes the connection. */
  abort: () => void;
}

/**
 * Reads answers that their readers left, because most providers report the usage only at the end: otherwise a reader that leaves early would
 * never learn, and never pay, what the provider charged. The time of an answer and the number of answers per caller are limited.
 */
export class UnreadAnswers {
  readonly #clock: Clock;
  readonly #maxMs: number;
  readonly #closing: AbortSignal;
  readonly #perCaller = new Map<string, number>();

  /** After `maxMs`, or when `closing` aborts, an answer is aborted, and its charge is the reservation. */
  constructor({ clock, maxMs, closing }: { clock: Clock; maxMs: number; closing: AbortSignal | undefined }) {
    this.#clock = clock;
    this.#maxMs = maxMs;
    this.#closing = closing ?? new AbortController().signal;
  }

  /** Reads until the provider reports a count, if there is a meter to receive it and capacity for the caller; else aborts. */
  leave(answer: AbandonedAnswer, { meter, caller }: PipelineOptions): void {
    const usage = answer.usage();
    const id = caller?.id ?? '';
    const reading = this.#perCaller.get(id) ?? 0;
    const isRefused = this.#maxMs <= 0 || this.#closing.aborted || reading >= MAX_PER_CALLER;
    if (usage !== undefined || meter === undefined || isRefused) {
      if (usage !== undefined) meter?.counted(usage, false);
      return close(answer);
    }
    this.#perCaller.set(id, reading + 1);
    const done = this.#read(answer, (count, isComplete) => meter.counted(count, isComplete));
    meter.unread(done.finally(() => this.#release(id)));
  }

  async #read(answer: AbandonedAnswer, counted: (usage: TokenUsage, isComplete: boolean) => void): Promise<void> {
    const done = new AbortController();
    this.#clock.sleep(this.#maxMs, done.signal).then(
      () => answer.abort(),
      () => undefined,
    );
    using _closing = onAbort(this.#closing, () => answer.abort());
    try {
      for (let step = await (answer.pending ?? answer.events.next()); ; step = await answer.events.next()) {
        if (step.done === true) return;
        if (step.value.type === 'end') return counted(step.value.usage, true);
        const usage = answer.usage();
        if (usage !== undefined) return counted(usage, false);
      }
    } catch {
      // The answer broke off or took too long. The reservation is charged, unless the provider has counted.
      const usage = answer.usage();
      if (usage !== undefined) counted(usage, false);
    } finally {
      done.abort();
      close({ ...answer, pending: undefined });
    }
  }

  #release(id: string): void {
    const reading = (this.#perCaller.get(id) ?? 1) - 1;
    if (reading === 0) this.#perCaller.delete(id);
    else this.#perCaller.set(id, reading);
  }
}

/** Closes the connection without waiting: the reader has left, and a failure to close has no consequence. */
function close({ events, pending, abort }: AbandonedAnswer): void {
  abort();
  pending?.catch(() => undefined);
  void events.return?.().catch(() => undefined);
}
