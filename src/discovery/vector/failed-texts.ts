import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { MAX_BATCH } from './embed-texts.ts';

/**
 * Why texts have no vectors. `Refused`: the embedder rejects them, such as ones that are too long. `Failed`: it fails for them and works for
 * other texts. `Unclear`: it does not work for other texts either.
 */
export type TextFailure = 'Refused' | 'Failed' | 'Unclear';

const MAX_TEXTS = 10_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

interface FailedText {
  /** Texts of the largest batch that it may be part of. */
  most: number;
  /** How often it failed alone. */
  alone: number;
  skippedUntil: number;
}

/**
 * Texts whose batches failed. Each is sent again in a batch of half the size, until it succeeds or fails alone and is skipped. The texts that
 * failed longest ago are forgotten first.
 */
export class FailedTexts {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #texts: LRUCache<string, FailedText>;

  constructor(clock: Pick<Clock, 'monotonic'>, most = MAX_TEXTS) {
    this.#clock = clock;
    this.#texts = new LRUCache(entries(most));
  }

  isSkipped(key: string): boolean {
    return this.#clock.monotonic() < (this.#texts.peek(key)?.skippedUntil ?? -Infinity);
  }

  /** The texts of the next request: those without a failure first. Empty when all are skipped. */
  batchOf<Text>(texts: readonly Text[], keyOf: (text: Text) => string): Text[] {
    const mostOf = (text: Text): number => this.#texts.peek(keyOf(text))?.most ?? MAX_BATCH;
    const sent = texts.filter((text) => !this.isSkipped(keyOf(text)));
    const most = sent.reduce((largest, text) => Math.max(largest, mostOf(text)), 0);
    return sent.filter((text) => mostOf(text) === most).slice(0, most);
  }

  succeeded(keys: readonly string[]): void {
    for (const key of keys) this.#texts.delete(key);
  }

  failed(keys: readonly string[], failure: TextFailure): void {
    const most = Math.max(1, Math.ceil(keys.length / 2));
    for (const key of keys) {
      const alone = (this.#texts.peek(key)?.alone ?? 0) + (keys.length === 1 ? 1 : 0);
      const skippedMs = keys.length === 1 ? skippedFor(failure, alone) : 0;
      this.#texts.set(key, { most, alone, skippedUntil: this.#clock.monotonic() + skippedMs });
    }
  }
}

function skippedFor(failure: TextFailure, alone: number): number {
  if (failure === 'Refused') return Infinity;
  return failure === 'Failed' ? HOUR_MS : Math.min(HOUR_MS, MINUTE_MS * 2 ** (alone - 1));
}

/** The embedder answered, and refuses these texts. */
export function isRefusal(error: unknown): boolean {
  if (!isTemperError(error) || error.retry !== 'never') return false;
  const { status } = error.details;
  return error.code === 'TEMPER_MODEL_CONTEXT_OVERFLOW' || status === 400 || status === 413 || status === 422;
}
