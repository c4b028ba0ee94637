import type { Amounts } from '../ledger/port.ts';
import { quotaExceeded } from '../ledger/quota-exceeded.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { TemperError } from '../lib/errors.ts';
import type { IdGenerator } from '../lib/ids.ts';
import { CallMeter, type ChargedTokens } from './charge/call-meter.ts';
import { assertFitsWindow, jsonSize, requestSize } from './charge/request-size.ts';
import type { ModelCaller, ModelLayer, PipelineOptions, ResolvedModel } from './pipeline.ts';
import { costInMicros, DEFAULT_PRICE, type ModelPrice } from './price.ts';

export interface MeteringDeps {
  ids: IdGenerator;
  /** The model behind `embed`. */
  embedding?: ResolvedModel | undefined;
}

/**
 * The charging rule of all model calls: reserve the maximum in the accounts of the caller, call, commit the usage.
 *
 *   call                                               charge
 *   ends                                               the provider's count, before the consumer sees the end
 *   was never sent, or was rejected before any event   nothing
 *   is left early by its reader                        the provider's count, for which the adapter reads on without a reader
 *   breaks off                                         the provider's count so far
 *   no count arrives                                   the reservation, or the received output if it is larger
 *
 * Throws TEMPER_QUOTA_EXCEEDED, TEMPER_LEDGER_UNAVAILABLE, TEMPER_MODEL_CONTEXT_OVERFLOW for a request beyond the window of its model, and the
 * errors of the inner pipeline.
 */
export function metering({ ids, embedding }: MeteringDeps): ModelLayer {
  const open = (model: ResolvedModel | undefined, maximum: Amounts, op: PipelineOptions) =>
    Charge.reserve(model, maximum, op, ids.next('call'));
  return (inner) => ({
    async *stream(request, op) {
      const { price } = request.model;
      const size = requestSize(request);
      assertFitsWindow(size, request.model);
      const meter = new CallMeter(size, request.maxOutputTokens);
      const charge = await open(request.model, amounts(price, meter.maximum), op);
      try {
        for await (const event of inner.stream(request, { ...op, meter })) {
          meter.receive(event);
          if (event.type === 'end') {
            meter.counted(event.usage, true);
            // Committed first: a consumer may stop reading at the end, and its next reservation needs the released amount.
            await charge.commit(amounts(price, meter.charged()));
          }
          yield event;
        }
      } catch (error) {
        if (meter.isFree(error)) await charge.commit(amounts(price, meter.chargedBefore));
        throw error;
      } finally {
        await settle(charge, meter, price);
      }
    },
    async embed(texts, op) {
      const price = embedding?.price ?? DEFAULT_PRICE;
      const meter = new CallMeter(jsonSize(texts), 0);
      const charge = await open(embedding, amounts(price, meter.maximum), op);
      try {
        return await inner.embed(texts, { ...op, meter });
      } catch (error) {
        if (meter.isFree(error)) await charge.commit(amounts(price, meter.chargedBefore));
        throw error;
      } finally {
        await settle(charge, meter, price);
      }
    },
  });
}

/** Commits what is not committed yet: now, or when the answer without a reader has ended. Until then the reservation stays charged. */
async function settle(charge: Charge, meter: CallMeter, price: ModelPrice): Promise<void> {
  const commit = (): Promise<void> => charge.commit(amounts(price, meter.charged()));
  if (meter.pending === undefined) return commit();
  // `commit` does not throw. The caller does not wait: its answer has ended.
  void meter.pending.then(commit);
}

/** One reservation; only its first commit counts. */
class Charge {
  readonly #caller: ModelCaller;
  readonly #model: ResolvedModel | undefined;
  readonly #id: string;
  readonly #key: string;
  #isCommitted = false;

  private constructor(caller: ModelCaller, model: ResolvedModel | undefined, id: string, key: string) {
    this.#caller = caller;
    this.#model = model;
    this.#id = id;
    this.#key = key;
  }

  /** `reservationKey`: of this attempt, because a repeated call is charged again. */
  static async reserve(
    model: ResolvedModel | undefined,
    maximum: Amounts,
    op: PipelineOptions,
    reservationKey: string,
  ): Promise<Charge> {
    const { caller, signal, deadline, key } = op;
    if (caller === undefined) throw new TemperError('TEMPER_INTERNAL', 'a charged model call has no caller');
    const options: CallOptions = { signal, deadline, key: reservationKey };
    const reservation = await caller.ledger.reserve(maximum, options);
    if (!reservation.granted) throw quotaExceeded(reservation, maximum);
    return new Charge(caller, model, reservation.id, key);
  }

  async commit(used: Amounts): Promise<void> {
    if (this.#isCommitted) return;
    this.#isCommitted = true;
    const hasCost = Object.values(used).some((amount) => amount > 0);
    if (this.#model !== undefined && hasCost) this.#caller.onCharged?.(this.#model, used, this.#key);
    await this.#caller.ledger.commit(this.#id, used);
  }
}

function amounts(price: ModelPrice, tokens: ChargedTokens): Amounts {
  const { inputTokens, outputTokens } = tokens;
  return { inputTokens, outputTokens, costMicros: costInMicros(price, tokens) };
}
