import type { JsonObject } from '../../lib/json.ts';
import { textAt } from '../../models/adapter/json-members.ts';
import type { ModelEvent, ToolCall } from '../../models/port.ts';
import { anthropicUsage, STOP_REASONS } from '../../models/replay/wire/anthropic.ts';
import type { ServerSentEvent } from '../../models/replay/wire/wire.ts';
import type { AnswerStream } from './served-format.ts';

type BlockType = 'text' | 'thinking';

/** The events of one answer of Anthropic Messages. Content is in blocks, of which one is open at a time. */
export class MessagesStream implements AnswerStream {
  readonly #id: string;
  readonly #model: string;
  #index = 0;
  #open: BlockType | undefined;

  constructor(id: string, model: string) {
    this.#id = id;
    this.#model = model;
  }

  start(): ServerSentEvent[] {
    const message: JsonObject = {
      id: this.#id,
      type: 'message',
      role: 'assistant',
      model: this.#model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 0, output_tokens: 0 },
    };
    return [named({ type: 'message_start', message })];
  }

  next(event: ModelEvent): ServerSentEvent[] {
    if (event.type === 'text') return this.#part('text', event.text);
    if (event.type === 'reasoning') return this.#part('thinking', event.text);
    if (event.type === 'tool-call') return this.#call(event.call);
    return event.type === 'end' ? this.#end(event) : [];
  }

  #part(type: BlockType, text: string): ServerSentEvent[] {
    const before = this.#open === type ? [] : [...this.#close(), this.#start(EMPTY[type])];
    this.#open = type;
    return [
      ...before,
      this.#delta(type === 'text' ? { type: 'text_delta', text } : { type: 'thinking_delta', thinking: text }),
    ];
  }

  #call({ id, name, arguments: input }: ToolCall): ServerSentEvent[] {
    const before = this.#close();
    const block = [
      this.#start({ type: 'tool_use', id, name, input: {} }),
      this.#delta({ type: 'input_json_delta', partial_json: input }),
      this.#stop(),
    ];
    return [...before, ...block];
  }

  #end({ stopReason, usage }: Extract<ModelEvent, { type: 'end' }>): ServerSentEvent[] {
    const delta = { stop_reason: STOP_REASONS[stopReason], stop_sequence: null };
    return [
      ...this.#close(),
      named({ type: 'message_delta', delta, usage: anthropicUsage(usage) }),
      named({ type: 'message_stop' }),
    ];
  }

  #close(): ServerSentEvent[] {
    if (this.#open === undefined) return [];
    this.#open = undefined;
    return [this.#stop()];
  }

  #start(block: JsonObject): ServerSentEvent {
    return named({ type: 'content_block_start', index: this.#index, content_block: block });
  }

  #delta(delta: JsonObject): ServerSentEvent {
    return named({ type: 'content_block_delta', index: this.#index, delta });
  }

  #stop(): ServerSentEvent {
    this.#index += 1;
    return named({ type: 'content_block_stop', index: this.#index - 1 });
  }
}

const EMPTY: Readonly<Record<BlockType, JsonObject>> = {
  text: { type: 'text', text: '' },
  thinking: { type: 'thinking', thinking: '', signature: '' },
};

function named(data: JsonObject): ServerSentEvent {
  return { name: textAt(data, 'type'), data };
}
