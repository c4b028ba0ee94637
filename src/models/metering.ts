import type { Amounts, Ledger } from '../ledger/port.ts';
import { quotaExceeded } from '../ledger/quota-exceeded.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { IdGenerator } from '../lib/ids.ts';
import type { ModelLayer, ResolvedModel } from './pipeline.ts';
import type { TokenUsage } from './port.ts';
import { costInMicros, DEFAULT_PRICE, isFreeFailure, type ModelPrice } from './price.ts';
import { CHARACTERS_PER_TOKEN, estimateTokens } from './token-estimate.ts';

type Tokens = Pick<TokenUsage, 'inputTokens' | 'outputTokens'>;

export interface MeteringDeps {
  /** The accounts that calls are charged to. */
  ledger: Ledger;
  ids: IdGenerator;
  /** The model behind `embed`. */
  embedding?: ResolvedModel | undefined;
}

/** Upper bound of reported tokens; a larger figure is a provider's error. */
const MAX_TOKENS = 100_000_000;

/**
 * The charging rule of all model calls: reserve the maximum, stream, commit the usage that the provider reports.
 *
 *   call                                         charge
 *   ends                                         the reported usage, before the consumer sees the end
 *   fails before its first event, free of cost   nothing
 *   breaks off, is cancelled or abandoned        the reservation
 *
 * Throws TEMPER_QUOTA_EXCEEDED, TEMPER_LEDGER_UNAVAILABLE and the errors of the inner pipeline.
 */
export function metering({ ledger, ids, embedding }: MeteringDeps): ModelLayer {
  const open = (maximum: Amounts, op: CallOptions) => Charge.reserve(ledger, maximum, { ...op, key: ids.next('call') });
  return (inner) => ({
    async *stream(request, op) {
      const { price } = request.model;
      const maximum = { inputTokens: estimateTokens(request), outputTokens: request.maxOutputTokens };
      const charge = await open(amounts(price, maximum), op);
      let started = false;
      try {
        for await (const event of inner.stream(request, op)) {
          started = true;
          // Committed first: a consumer may stop reading at the end, and its next reservation needs the released amount.
          if (event.type === 'end') await charge.commit(amounts(price, plausible(event.usage)));
          yield event;
        }
      } catch (error) {
        if (!started && isFreeFailure(error)) await charge.commit({});
        throw error;
      } finally {
        await charge.commitReserved();
      }
    },
    async embed(texts, op) {
      const price = embedding?.price ?? DEFAULT_PRICE;
      const characters = texts.reduce((sum, text) => sum + text.length, 0);
      const inputTokens = Math.ceil(characters / CHARACTERS_PER_TOKEN);
      const charge = await open(amounts(price, { inputTokens, outputTokens: 0 }), op);
      try {
        return await inner.embed(texts, op);
      } catch (error) {
        if (isFreeFailure(error)) await charge.commit({});
        throw error;
      } finally {
        await charge.commitReserved();
      }
    },
  });
}

/** One reservation; only its first commit counts. */
class Charge {
  readonly #ledger: Ledger;
  readonly #id: string;
  readonly #maximum: Amounts;
  #isCommitted = false;

  private constructor(ledger: Ledger, id: string, maximum: Amounts) {
    this.#ledger = ledger;
    this.#id = id;
    this.#maximum = maximum;
  }

  static async reserve(ledger: Ledger, maximum: Amounts, op: CallOptions): Promise<Charge> {
    const reservation = await ledger.reserve(maximum, op);
    if (!reservation.granted) throw quotaExceeded(reservation, maximum);
    return new Charge(ledger, reservation.id, maximum);
  }

  async commit(used: Amounts): Promise<void> {
    if (this.#isCommitted) return;
    this.#isCommitted = true;
    await this.#ledger.commit(this.#id, used);
  }

  commitReserved(): Promise<void> {
    return this.commit(this.#maximum);
  }
}

function amounts(price: ModelPrice, tokens: Tokens): Amounts {
  return { ...tokens, costMicros: costInMicros(price, tokens) };
}

/** Normalizes untrusted usage of a provider to integers from 0 to MAX_TOKENS. */
function plausible({ inputTokens, outputTokens }: TokenUsage): Tokens {
  const whole = (tokens: number): number =>
    Number.isFinite(tokens) ? Math.min(MAX_TOKENS, Math.max(0, Math.ceil(tokens))) : 0;
  return { inputTokens: whole(inputTokens), outputTokens: whole(outputTokens) };
}
