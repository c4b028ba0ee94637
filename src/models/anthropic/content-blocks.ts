import { parseUntrustedJson, type Json, type JsonObject } from '../../lib/json.ts';
import { formatError } from '../adapter/provider-errors.ts';
import { assertToolCallAllowed } from '../adapter/stream-end.ts';
import { objectAt, textAt } from '../adapter/json-members.ts';
import type { ModelEvent, ToolCall } from '../port.ts';

interface OpenBlock {
  type: string;
  start: JsonObject;
  /** Concatenated JSON deltas of a tool call or a server tool. */
  json: string;
}

/** Assembles the content of one message from its blocks. */
export class ContentBlocks {
  readonly #provider: string;
  readonly #open = new Map<number, OpenBlock>();
  readonly #calls: ToolCall[] = [];

  constructor(provider: string) {
    this.#provider = provider;
  }

  start(index = -1, block: JsonObject | undefined): ModelEvent[] {
    if (!block) return [];
    const open = this.#open.get(index);
    // A block that is started twice is one block; another one with its index ends it.
    if (open !== undefined && textAt(open.start, 'id') === textAt(block, 'id')) return [];
    const ended = open === undefined ? [] : this.#finished(open);
    this.#open.set(index, { type: textAt(block, 'type'), start: block, json: '' });
    return [...ended, ...initialEvents(block)];
  }

  delta(index = -1, delta: JsonObject | undefined): ModelEvent[] {
    const block = this.#open.get(index);
    if (!block) throw formatError(this.#provider, `continued block ${index}, which was not started`);
    switch (textAt(delta, 'type')) {
      case 'text_delta':
        return textEvent('text', textAt(delta, 'text'));
      case 'thinking_delta':
        return textEvent('reasoning', textAt(delta, 'thinking'));
      case 'input_json_delta':
        block.json += textAt(delta, 'partial_json');
        return [];
      default:
        return [];
    }
  }

  stop(index = -1): ModelEvent[] {
    const block = this.#open.get(index);
    this.#open.delete(index);
    return block ? this.#finished(block) : [];
  }

  /** Handles a block that arrived complete. */
  complete(block: Json): ModelEvent[] {
    const start = objectAt({ block }, 'block');
    if (!start) throw formatError(this.#provider, 'sent content that is not a block');
    return [...initialEvents(start), ...this.#finished({ type: textAt(start, 'type'), start, json: '' })];
  }

  /** All tool calls. Throws when a call was started and not finished. */
  calls(): ToolCall[] {
    if ([...this.#open.values()].some((block) => block.type === 'tool_use'))
      throw formatError(this.#provider, 'ended its answer inside a tool call', 'backoff');
    return this.#calls;
  }

  #finished(block: OpenBlock): ModelEvent[] {
    const { type, start } = block;
    if (type === 'text' || type === 'thinking') return [];
    if (type === 'tool_use') {
      this.#addCall(block);
      return [];
    }
    const data = block.json === '' ? start : { ...start, input: parseOrText(block.json) };
    return [{ type: 'provider', name: type || 'unknown', data }];
  }

  #addCall(block: OpenBlock): void {
    assertToolCallAllowed(this.#provider, this.#calls.length);
    const name = textAt(block.start, 'name');
    if (name === '') throw formatError(this.#provider, 'sent a tool call without a name');
    const id = textAt(block.start, 'id') || `call_${this.#calls.length}`;
    const given = block.json.trim() === '' ? JSON.stringify(block.start['input'] ?? {}) : block.json;
    // The same call sent twice is one call.
    if (!this.#calls.some((call) => call.id === id && call.name === name && call.arguments === given))
      this.#calls.push({ id, name, arguments: given });
  }
}

/** Events for the content that a block already has at its start. */
function initialEvents(block: JsonObject): ModelEvent[] {
  const type = textAt(block, 'type');
  if (type === 'text') return textEvent('text', textAt(block, 'text'));
  return type === 'thinking' ? textEvent('reasoning', textAt(block, 'thinking')) : [];
}

function textEvent(type: 'text' | 'reasoning', content: string): ModelEvent[] {
  return content === '' ? [] : [{ type, text: content }];
}

function parseOrText(source: string): Json {
  try {
    return parseUntrustedJson(source);
  } catch (error) {
    if (error instanceof SyntaxError) return source;
    throw error;
  }
}
