import type { Normalizer } from '../adapter.ts';
import { endOfAnswer } from '../answer-end.ts';
import { formatError, inBandError, providerError, failureOf } from '../errors.ts';
import { member, type Json } from '../../lib/json.ts';
import { arrayAt, count, objectAt, text } from '../json-read.ts';
import type { ModelEvent, StopReason, TokenUsage } from '../port.ts';
import { OutputItems } from './output-items.ts';

const NO_USAGE: TokenUsage = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 };

/** OpenAI Responses: the events of a stream, or one complete response. */
export function responsesNormalizer(provider: string, offeredTools: readonly string[]): Normalizer {
  const response = new ResponseState(provider);
  return {
    get complete() {
      return response.stopReason !== undefined;
    },
    feed(event) {
      const error = inBandError(provider, event);
      if (error) throw error;
      return response.feed(event);
    },
    whole(body) {
      if (!inBandError(provider, body) && !Array.isArray(member(body, 'output')))
        throw formatError(provider, 'sent a body that is not a response');
      return response.readEnd(body);
    },
    finish() {
      const { items, stopReason, usage, model } = response;
      const { refused, calls } = items;
      return endOfAnswer({ provider, offeredTools, stopReason, refused, calls, usage, model });
    },
  };
}

class ResponseState {
  readonly items: OutputItems;
  usage = NO_USAGE;
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
    const index = count(event, 'output_index') ?? 0;
    switch (text(event, 'type')) {
      case 'response.created':
        this.model = text(objectAt(event, 'response'), 'model');
        return [];
      case 'response.output_text.delta':
        return this.items.said(index, text(event, 'delta'));
      case 'response.refusal.delta':
        return this.items.declined(index, text(event, 'delta'));
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.items.thought(index, text(event, 'delta'));
      case 'response.output_item.done':
        return this.items.whole(index, member(event, 'item') ?? null);
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
    if (text(response, 'status') === 'failed') throw providerError(this.#provider, failureOf(undefined));
    this.model = text(response, 'model') || this.model;
    this.usage = usageOf(objectAt(response, 'usage')) ?? this.usage;
    this.stopReason = stopReasonOf(response);
    return arrayAt(response, 'output').flatMap((item, index) => this.items.whole(index, item));
  }

  /** Events have sequence numbers, so two equal events in a row are one event that was sent twice. */
  #isRepeated(event: Json): boolean {
    if (count(event, 'sequence_number') === undefined) return false;
    const identity = JSON.stringify(event);
    const repeated = identity === this.#previous;
    this.#previous = identity;
    return repeated;
  }
}

function stopReasonOf(response: Json | undefined): StopReason {
  switch (text(response, 'status')) {
    case 'completed':
    case '':
      return 'stop';
    case 'incomplete': {
      const reason = text(objectAt(response, 'incomplete_details'), 'reason');
      return reason === 'content_filter' ? 'refusal' : 'length';
    }
    default:
      return 'other';
  }
}

function usageOf(usage: Json | undefined): TokenUsage | undefined {
  if (usage === undefined) return undefined;
  const inputTokens = count(usage, 'input_tokens') ?? 0;
  const cached = count(objectAt(usage, 'input_tokens_details'), 'cached_tokens') ?? 0;
  return {
    inputTokens,
    outputTokens: count(usage, 'output_tokens') ?? 0,
    cachedInputTokens: Math.min(cached, inputTokens),
  };
}
