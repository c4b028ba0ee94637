import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { UsageMeter } from '../pipeline.ts';
import type { PricedTokens } from '../price.ts';
import type { ModelEvent, TokenUsage } from '../port.ts';
import { jsonSize, type TextSize, textSize } from './request-size.ts';

/** Tokens to charge. Of the input of the last attempt, its cached parts have prices of their own. */
export type ChargedTokens = PricedTokens;

/** Tokens that a provider may add to a request, such as its instructions for tools. A larger count is an error of the provider. */
const MAX_ADDED_TOKENS = 16_384;

/** The provider rejected the call before it did any work, and charges nothing. */
const FREE_CODES: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_MODEL_RATE_LIMITED',
  'TEMPER_MODEL_OVERLOADED',
  'TEMPER_MODEL_UNREACHABLE',
  'TEMPER_MODEL_UNAUTHORIZED',
  'TEMPER_MODEL_BILLING',
  'TEMPER_MODEL_CONTEXT_OVERFLOW',
  'TEMPER_MODEL_NOT_FOUND',
  'TEMPER_MODEL_UNAVAILABLE',
  'TEMPER_REPLAY_NO_MATCH',
] satisfies ErrorCode[]);

/**
 * The usage of one call, from the provider's count or else from the bytes that were sent and received. A count of zero tokens for a request or
 * an output that has bytes is no count: several servers report no usage. A count below what the bytes have at least is raised to that.
 */
export class CallMeter implements UsageMeter {
  readonly #request: TextSize;
  readonly #maxOutputTokens: number;
  readonly #received: TextSize = { bytes: 0, tokens: 0, minTokens: 0 };
  #isSent = false;
  /** The last attempt failed, and the provider charges nothing for it. */
  #isFreeAttempt = false;
  #hasStarted = false;
  #usage: TokenUsage | undefined;
  #isComplete = false;
  #unread: Promise<void> | undefined;
  /** Input of the attempt that failed last, and of those before it, which the provider may charge. */
  #failedInput = 0;
  #earlierInput = 0;

  constructor(request: TextSize, maxOutputTokens: number) {
    this.#request = request;
    this.#maxOutputTokens = maxOutputTokens;
  }

  /** The amount to reserve. The provider may store all of the input in its cache. */
  get maximum(): ChargedTokens {
    const inputTokens = this.#request.tokens;
    return { inputTokens, outputTokens: this.#maxOutputTokens, cacheCreationInputTokens: inputTokens };
  }

  sent(): void {
    this.#isSent = true;
    this.#isFreeAttempt = false;
    // The next attempt replaces the count of the one before.
    this.#earlierInput += this.#failedInput;
    this.#failedInput = 0;
    this.#usage = undefined;
    this.#isComplete = false;
  }

  failed(error: unknown): void {
    this.#isFreeAttempt = isFreeFailure(error) && this.#countedInput() === 0;
    this.#failedInput = this.#isFreeAttempt ? 0 : this.#input();
  }

  counted(usage: TokenUsage, isComplete: boolean): void {
    this.#usage = usage;
    this.#isComplete = isComplete;
  }

  unread(done: Promise<void>): void {
    this.#unread = done;
  }

  /** Call with each event that reaches the reader. */
  receive(event: ModelEvent): void {
    this.#hasStarted = true;
    const size = sizeOf(event);
    this.#received.bytes += size.bytes;
    this.#received.tokens += size.tokens;
    this.#received.minTokens += size.minTokens;
  }

  /** Resolves when no further count can arrive; undefined when none can arrive now. */
  get pending(): Promise<void> | undefined {
    return this.#unread;
  }

  /** Whether the last attempt of a call that failed with this error costs nothing. */
  isFree(error: unknown): boolean {
    const isFreeLast = this.#isFreeAttempt || (isFreeFailure(error) && this.#countedInput() === 0);
    return !this.#hasStarted && (!this.#isSent || isFreeLast);
  }

  /** The tokens to charge when the last attempt costs nothing: the input of earlier attempts. */
  get chargedBefore(): ChargedTokens {
    const inputTokens = this.#earlierInput;
    return { inputTokens, outputTokens: 0, cacheCreationInputTokens: inputTokens };
  }

  /** The tokens to charge: the provider's count, or the maximum when there is none; and the input of earlier attempts. */
  charged(): ChargedTokens {
    const reported = this.#usage?.outputTokens ?? 0;
    const output = limited(reported, Math.max(this.#maxOutputTokens, this.#received.bytes));
    return {
      inputTokens: this.#earlierInput + this.#input(),
      outputTokens: this.#output(output, this.#countedInput() > 0),
      ...this.#cached(),
    };
  }

  #input(): number {
    return this.#countedInput() || this.#request.tokens;
  }

  /** Earlier attempts, and an attempt without a count, may have stored all of their input. */
  #cached(): Pick<ChargedTokens, 'cachedInputTokens' | 'cacheCreationInputTokens'> {
    const counted = this.#countedInput();
    if (counted === 0) return { cacheCreationInputTokens: this.#earlierInput + this.#input() };
    const created = limited(this.#usage?.cacheCreationInputTokens ?? 0, counted);
    const cachedInputTokens = limited(this.#usage?.cachedInputTokens ?? 0, counted - created);
    return { cachedInputTokens, cacheCreationInputTokens: this.#earlierInput + created };
  }

  /** 0: not counted. */
  #countedInput(): number {
    const counted = limited(this.#usage?.inputTokens ?? 0, this.#request.bytes + MAX_ADDED_TOKENS);
    return counted > 0 ? Math.max(counted, this.#request.minTokens) : 0;
  }

  #output(reported: number, isCounted: boolean): number {
    if (this.#isComplete && reported > 0) return Math.max(reported, this.#received.minTokens);
    // A count in the middle of an answer may be older than the last received text.
    const soFar = Math.max(reported, this.#received.tokens);
    const isRead = this.#isComplete && this.#unread === undefined;
    return isRead || isCounted ? soFar : Math.max(soFar, this.#maxOutputTokens);
  }
}

/** Whether an attempt that failed with this error before its first event costs nothing. */
function isFreeFailure(error: unknown): boolean {
  return isTemperError(error) && (FREE_CODES.has(error.code) || isRejection(error.details));
}

/** A request that the provider refused as invalid, with an HTTP status. */
function isRejection({ status }: Readonly<Record<string, unknown>>): boolean {
  return typeof status === 'number' && status >= 400 && status < 500 && status !== 408;
}

/** A count of a provider as an integer from 0 to `maximum`. */
function limited(tokens: number, maximum: number): number {
  return Number.isFinite(tokens) ? Math.min(maximum, Math.max(0, Math.ceil(tokens))) : 0;
}

function sizeOf(event: ModelEvent): TextSize {
  switch (event.type) {
    case 'text':
    case 'reasoning':
      return textSize(event.text);
    case 'tool-call':
      return textSize(event.call.name + event.call.arguments);
    case 'provider':
      // Not all of it is output of the model: it may have results of a search.
      return { ...jsonSize(event.data), minTokens: 0 };
    case 'end':
      return { bytes: 0, tokens: 0, minTokens: 0 };
    default:
      return event satisfies never;
  }
}
