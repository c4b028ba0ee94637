import type { CountedRequest, ModelMessage } from '../../models/port.ts';

/** Real tokens per estimated token. Runs of blanks are below one half, rare characters above one; a count beyond is an error of the provider. */
const MIN_RATIO = 0.3;
const MAX_RATIO = 4;
/** English prose has about two thirds of its estimate. */
const PROSE_RATIO = 0.6;
/** A request must be this much smaller than one that the provider refused as too long. */
const BELOW_REFUSED = 0.95;

/**
 * The share of the window that a request with this estimate takes. What the provider counted for the last request of the session corrects
 * the estimate; what was added since then keeps the higher estimate, because it may be of another script. A request near the size of one
 * that the provider refused takes more than the window.
 */
export function windowShare(estimated: number, windowTokens: number, last?: CountedRequest): number {
  if (last === undefined) return estimated / windowTokens;
  const ratio = ratioOf(last);
  const known = Math.min(estimated, last.estimated);
  const expected = known * ratio + (estimated - known) * Math.max(1, ratio);
  return Math.max(expected / windowTokens, refusedShare(estimated, last));
}

/** As `windowShare`, and the least that is plausible. */
export function leastShare(estimated: number, windowTokens: number, last?: CountedRequest): number {
  const ratio = Math.min(1, last === undefined ? PROSE_RATIO : ratioOf(last));
  return Math.max((estimated * ratio) / windowTokens, refusedShare(estimated, last));
}

function refusedShare(estimated: number, last: CountedRequest | undefined): number {
  return last?.refused === undefined ? 0 : estimated / (BELOW_REFUSED * last.refused);
}

/** Real tokens per estimated token of new content. */
export function ratioOfNew(last?: CountedRequest): number {
  return last === undefined ? 1 : Math.max(1, ratioOf(last));
}

/** The count of the newest answer that has one, for this model. Stored histories are untrusted: a count must be a positive number. */
export function lastCount(items: readonly ModelMessage[], model: string): CountedRequest | undefined {
  const item = items.findLast((message) => message.role === 'assistant' && message.request?.model === model);
  const last = item?.role === 'assistant' ? item.request : undefined;
  if (last === undefined || !isPositive(last.estimated) || !isPositive(last.counted)) return undefined;
  const { estimated, counted, refused } = last;
  return { model, estimated, counted, ...(isPositive(refused) ? { refused } : {}) };
}

/** After an answer: its count, and what is known of refusals. A provider that counts nothing changes nothing. */
export function afterAnswer(
  { model, estimated }: Pick<CountedRequest, 'model' | 'estimated'>,
  counted: number,
  last?: CountedRequest,
): CountedRequest | undefined {
  if (!isPositive(counted)) return last;
  return { model, estimated, counted, ...(last?.refused === undefined ? {} : { refused: last.refused }) };
}

/** After the refusal of a request as too long: without a count of its own, the request takes the whole window. */
export function afterRefusal(
  { model, estimated }: Pick<CountedRequest, 'model' | 'estimated'>,
  windowTokens: number,
  last?: CountedRequest,
): CountedRequest {
  const refused = Math.min(estimated, last?.refused ?? estimated);
  return { ...(last ?? { model, estimated, counted: windowTokens }), refused };
}

function ratioOf({ estimated, counted }: CountedRequest): number {
  return Math.min(MAX_RATIO, Math.max(MIN_RATIO, counted / estimated));
}

function isPositive(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0;
}
