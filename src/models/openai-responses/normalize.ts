import type { AnswerNormalizer } from '../adapter/wire-format.ts';
import { endEvents, largerUsage } from '../adapter/stream-end.ts';
import { formatError, inBandError, providerError, parseFailure } from '../adapter/provider-errors.ts';
import { member, type Json } from '../../lib/json.ts';
import { arrayAt, countAt, objectAt, textAt } from '../adapter/json-members.ts';
import type { ModelEvent, StopReason, TokenUsage } from '../port.ts';
import { OutputItems } from './output-items.ts';

/** OpenAI Responses: the events of a stream, or one complete response. */
export function responsesNormalizer(provider: string, offeredTools: readonly string[]): AnswerNormalizer {
  const response = new ResponseState(provider);
  return {
    get isComplete() {
      return response.stopReason !== undefined;
    },
    feed(event) {
      const error = inBandError(provider, event);
      if (error) throw error;
      return response.feed(event);
    },
    readBody(body) {
      if (!inBandError(provider, body) && !Array.isArray(member(body, 'output')))
        throw formatError(provider, 'sent a body that is not a response');
      return response.readEnd(body);
    },
    finish() {
      const { items, stopReason, usage, model } = response;
      const { refused, calls } = items;
      return endEvents({ provider, offeredTools, stopReason, refused, calls, usage, model });
    },
    get usage() {
      const { usage } = response;
      return usage !== undefined && usage.inputTokens > 0 ? usage : undefined;
    },
  };
}

class ResponseState {
  readonly items: OutputItems;
  usage: TokenUsage | undefined;
  model = '';
  stopReason: StopReason | undefined;
  readonly #provider: string;
  #previous = '';

  constructor(provider: string) {
    this.#provider = provider;
    this.items = new OutputItems(provider);
  }

  feed(event: Json): ModelEvent[] {
    if (this.#isRepeated(event)) return [];
    const index = countAt(event, 'output_index') ?? 0;
    switch (textAt(event, 'type')) {
      case 'response.created':
        this.model = textAt(objectAt(event, 'response'), 'model');
        return [];
      case 'response.output_text.delta':
        return this.items.textDelta(index, textAt(event, 'delta'));
      case 'response.refusal.delta':
        return this.items.refusalDelta(index, textAt(event, 'delta'));
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.items.reasoningDelta(index, textAt(event, 'delta'));
      case 'response.output_item.done':
        return this.items.completeItem(index, member(event, 'item') ?? null);
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        return this.readEnd(objectAt(event, 'response'));
      default:
        return [];
    }
  }

  readEnd(response: Json | undefined): ModelEvent[] {
    const error = inBandError(this.#provider, response ?? null);
    if (error) throw error;
    if (textAt(response, 'status') === 'failed') throw providerError(this.#provider, parseFailure(undefined));
    this.model = textAt(response, 'model') || this.model;
    this.usage = largerUsage(this.usage, usageOf(objectAt(response, 'usage')));
    this.stopReason = stopReasonOf(response);
    return arrayAt(response, 'output').flatMap((item, index) => this.items.completeItem(index, item));
  }

  /** Events have sequence numbers, so two equal events in a row are one event that was sent twice. */
  #isRepeated(event: Json): boolean {
    if (countAt(event, 'sequence_number') === undefined) return false;
    const identity = JSON.stringify(event);
    const repeated = identity === this.#previous;
    this.#previous = identity;
    return repeated;
  }
}

function stopReasonOf(response: Json | undefined): StopReason {
  switch (textAt(response, 'status')) {
    case 'completed':
    case '':
      return 'stop';
    case 'incomplete': {
      const reason = textAt(objectAt(response, 'incomplete_details'), 'reason');
      return reason === 'content_filter' ? 'refusal' : 'length';
    }
    default:
      return 'other';
  }
}

function usageOf(usage: Json | undefined): TokenUsage | undefined {
  if (usage === undefined) return undefined;
  const inputTokens = countAt(usage, 'input_tokens') ?? 0;
  const cached = countAt(objectAt(usage, 'input_tokens_details'), 'cached_tokens') ?? 0;
  return {
    inputTokens,
    outputTokens: countAt(usage, 'output_tokens') ?? 0,
    cachedInputTokens: Math.min(cached, inputTokens),
  };
}
