import type { Json } from '../../lib/json.ts';
import { formatError } from '../errors.ts';
import { arrayAt, text } from '../json-read.ts';
import type { ModelEvent, ToolCall } from '../port.ts';

/**
 * The output of one response. Items are identified by their index in the output: some servers give the same item a new
 * id in every event. An item may arrive as deltas, as a done item, inside the completed response, or as all three.
 */
export class OutputItems {
  readonly calls: ToolCall[] = [];
  refused = false;
  readonly #provider: string;
  readonly #streamed = new Set<number>();
  readonly #done = new Set<number>();

  constructor(provider: string) {
    this.#provider = provider;
  }

  said(index: number, words: string): ModelEvent[] {
    this.#streamed.add(index);
    return words === '' ? [] : [{ type: 'text', text: words }];
  }

  declined(index: number, words: string): ModelEvent[] {
    this.refused = true;
    return this.said(index, words);
  }

  thought(index: number, words: string): ModelEvent[] {
    this.#streamed.add(index);
    return words === '' ? [] : [{ type: 'reasoning', text: words }];
  }

  /** Handles a finished item. Content that was already streamed as deltas is not emitted again. */
  whole(index: number, item: Json): ModelEvent[] {
    if (this.#done.has(index)) return [];
    this.#done.add(index);
    const type = text(item, 'type');
    const streamed = this.#streamed.has(index);
    switch (type) {
      case 'message':
        return this.#message(index, item, streamed);
      case 'reasoning':
        return streamed ? [] : this.#reasoning(index, item);
      case 'function_call':
        this.#addCall(item);
        return [];
      default:
        return [{ type: 'provider', name: type || 'unknown', data: item }];
    }
  }

  #message(index: number, item: Json, streamed: boolean): ModelEvent[] {
    const parts = arrayAt(item, 'content');
    const refusals = parts.filter((part) => text(part, 'type') === 'refusal');
    if (refusals.length > 0) this.refused = true;
    if (streamed) return [];
    return parts.flatMap((part) => this.said(index, text(part, 'text') || text(part, 'refusal')));
  }

  #reasoning(index: number, item: Json): ModelEvent[] {
    const parts = [...arrayAt(item, 'summary'), ...arrayAt(item, 'content')];
    return parts.flatMap((part) => this.thought(index, text(part, 'text')));
  }

  #addCall(item: Json): void {
    const name = text(item, 'name');
    if (name === '') throw formatError(this.#provider, 'sent a tool call without a name');
    const id = text(item, 'call_id') || text(item, 'id') || `call_${this.calls.length}`;
    const given = text(item, 'arguments').trim() === '' ? '{}' : text(item, 'arguments');
    this.calls.push({ id, name, arguments: given });
  }
}
