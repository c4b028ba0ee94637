import type { AnswerNormalizer } from '../adapter/wire-format.ts';
import { endEvents } from '../adapter/stream-end.ts';
import { formatError, inBandError } from '../adapter/provider-errors.ts';
import { isJsonObject, member, type Json } from '../../lib/json.ts';
import { arrayAt, countAt, objectAt, textAt } from '../adapter/json-members.ts';
import type { ModelEvent, StopReason, TokenUsage } from '../port.ts';
import { ContentBlocks } from './content-blocks.ts';

const STOP_REASONS: Readonly<Record<string, StopReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool-calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'refusal',
};

const INPUT_COUNTS = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'];

/** Anthropic Messages: the events of a stream, or one whole message. */
export function anthropicNormalizer(provider: string, offeredTools: readonly string[]): AnswerNormalizer {
  const message = new MessageState(provider);
  const throwInBandError = (body: Json): void => {
    const error = inBandError(provider, body);
    if (error) throw error;
  };
  return {
    get isComplete() {
      return message.complete;
    },
    feed(event) {
      throwInBandError(event);
      return message.feed(event);
    },
    readBody(body) {
      throwInBandError(body);
      if (!isJsonObject(body) || !Array.isArray(member(body, 'content')))
        throw formatError(provider, 'sent a body that is not a message');
      return message.read(body);
    },
    finish() {
      const { stopReason, model } = message;
      const whole = stopReason === 'stop' || stopReason === 'tool-calls';
      const calls = whole ? message.blocks.calls() : [];
      const usage = message.counts.usage();
      return endEvents({ provider, offeredTools, stopReason, refused: false, calls, usage, model });
    },
    get usage() {
      const usage = message.counts.usage();
      return usage.inputTokens > 0 ? usage : undefined;
    },
  };
}

class MessageState {
  readonly blocks: ContentBlocks;
  readonly counts = new UsageCounts();
  model = '';
  stopReason: StopReason | undefined;
  complete = false;
  #started: string | undefined;

  constructor(provider: string) {
    this.blocks = new ContentBlocks(provider);
  }

  feed(event: Json): ModelEvent[] {
    const index = countAt(event, 'index');
    switch (textAt(event, 'type')) {
      case 'message_start':
        return this.#start(objectAt(event, 'message'));
      case 'content_block_start':
        return this.blocks.start(index, objectAt(event, 'content_block'));
      case 'content_block_delta':
        return this.blocks.delta(index, objectAt(event, 'delta'));
      case 'content_block_stop':
        return this.blocks.stop(index);
      case 'message_delta':
        this.#readReason(objectAt(event, 'delta'));
        this.counts.merge(objectAt(event, 'usage'));
        return [];
      case 'message_stop':
        this.complete = true;
        return [];
      default:
        return [];
    }
  }

  /** Reads a complete answer. */
  read(message: Json | undefined): ModelEvent[] {
    this.counts.merge(objectAt(message, 'usage'));
    return this.#readContent(message);
  }

  #readContent(message: Json | undefined): ModelEvent[] {
    this.model = textAt(message, 'model') || this.model;
    this.#readReason(message);
    return arrayAt(message, 'content').flatMap((block) => this.blocks.complete(block));
  }

  #start(message: Json | undefined): ModelEvent[] {
    // A proxy that retries starts the same message a second time.
    if (this.#started === textAt(message, 'id')) return [];
    this.#started = textAt(message, 'id');
    // The output is not written yet, and some servers start with a count of 1 and never report another.
    this.counts.merge(objectAt(message, 'usage'), INPUT_COUNTS);
    return this.#readContent(message);
  }

  #readReason(value: Json | undefined): void {
    const reason = textAt(value, 'stop_reason');
    if (reason !== '') this.stopReason = STOP_REASONS[reason] ?? 'other';
  }
}

/**
 * Usage counts arrive in several events. Each is a total so far, and unchanged counts may be missing. A smaller count that follows a larger
 * one is an error of the provider.
 */
class UsageCounts {
  readonly #largest = new Map<string, number>();

  merge(usage: Json | undefined, names: readonly string[] = [...INPUT_COUNTS, 'output_tokens']): void {
    for (const name of names) {
      const found = countAt(usage, name);
      if (found !== undefined) this.#largest.set(name, Math.max(found, this.#largest.get(name) ?? 0));
    }
  }

  /** In this format cached tokens are not part of the input tokens; in `TokenUsage` they are. */
  usage(): TokenUsage {
    const of = (name: string): number => this.#largest.get(name) ?? 0;
    const cachedInputTokens = of('cache_read_input_tokens');
    const cacheCreationInputTokens = of('cache_creation_input_tokens');
    return {
      inputTokens: of('input_tokens') + cachedInputTokens + cacheCreationInputTokens,
      outputTokens: of('output_tokens'),
      cachedInputTokens,
      ...(cacheCreationInputTokens > 0 ? { cacheCreationInputTokens } : {}),
    };
  }
}
