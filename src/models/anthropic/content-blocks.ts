import { parseUntrustedJson, type Json, type JsonObject } from '../../lib/json.ts';
import { formatError } from '../errors.ts';
import { objectAt, text } from '../json-read.ts';
import type { ModelEvent, ToolCall } from '../port.ts';

interface OpenBlock {
  type: string;
  start: JsonObject;
  /** Pieces of JSON, of tools of either side. */
  json: string;
}

/** The content of one message, put together block by block. */
export class ContentBlocks {
  readonly #provider: string;
  readonly #open = new Map<number, OpenBlock>();
  readonly #calls: ToolCall[] = [];

  constructor(provider: string) {
    this.#provider = provider;
  }

  start(index = -1, block: JsonObject | undefined): ModelEvent[] {
    // The same block begun twice is one block.
    if (!block || this.#open.has(index)) return [];
    this.#open.set(index, { type: text(block, 'type'), start: block, json: '' });
    return spoken(block);
  }

  delta(index = -1, delta: JsonObject | undefined): ModelEvent[] {
    const block = this.#open.get(index);
    if (!block) throw formatError(this.#provider, `continued block ${index}, which it never began`);
    switch (text(delta, 'type')) {
      case 'text_delta':
        return said('text', text(delta, 'text'));
      case 'thinking_delta':
        return said('reasoning', text(delta, 'thinking'));
      case 'input_json_delta':
        block.json += text(delta, 'partial_json');
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

  /** A block that came in one piece. */
  whole(block: Json): ModelEvent[] {
    const start = objectAt({ block }, 'block');
    if (!start) throw formatError(this.#provider, 'sent content that is not a block');
    return [...spoken(start), ...this.#finished({ type: text(start, 'type'), start, json: '' })];
  }

  /** Throws when one of them was begun and not ended. */
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
    const data = block.json === '' ? start : { ...start, input: jsonOr(block.json) };
    return [{ type: 'provider', name: type || 'unknown', data }];
  }

  #addCall(block: OpenBlock): void {
    const name = text(block.start, 'name');
    if (name === '') throw formatError(this.#provider, 'sent a tool call without a name');
    const id = text(block.start, 'id') || `call_${this.#calls.length}`;
    const given = block.json.trim() === '' ? JSON.stringify(block.start['input'] ?? {}) : block.json;
    // The same call sent twice is one call.
    if (!this.#calls.some((call) => call.id === id && call.name === name && call.arguments === given))
      this.#calls.push({ id, name, arguments: given });
  }
}

/** What a block already says when it begins. */
function spoken(block: JsonObject): ModelEvent[] {
  const type = text(block, 'type');
  if (type === 'text') return said('text', text(block, 'text'));
  return type === 'thinking' ? said('reasoning', text(block, 'thinking')) : [];
}

function said(type: 'text' | 'reasoning', words: string): ModelEvent[] {
  return words === '' ? [] : [{ type, text: words }];
}

function jsonOr(source: string): Json {
  try {
    return parseUntrustedJson(source);
  } catch (error) {
    if (error instanceof SyntaxError) return source;
    throw error;
  }
}
