import type { Json } from '../../lib/json.ts';
import { formatError } from '../adapter/provider-errors.ts';
import { assertToolCallAllowed } from '../adapter/stream-end.ts';
import { arrayAt, textAt } from '../adapter/json-members.ts';
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

  textDelta(index: number, words: string): ModelEvent[] {
    this.#streamed.add(index);
    return words === '' ? [] : [{ type: 'text', text: words }];
  }

  refusalDelta(index: number, words: string): ModelEvent[] {
    this.refused = true;
    return this.textDelta(index, words);
  }

  reasoningDelta(index: number, words: string): ModelEvent[] {
    this.#streamed.add(index);
    return words === '' ? [] : [{ type: 'reasoning', text: words }];
  }

  /** Handles a finished item. Content that was already streamed as deltas is not emitted again. */
  completeItem(index: number, item: Json): ModelEvent[] {
    const type = textAt(item, 'type');
    const isRepeated = this.#done.has(index);
    this.#done.add(index);
    if (type === 'function_call' ? this.#knows(item, isRepeated) : isRepeated) return [];
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
    const refusals = parts.filter((part) => textAt(part, 'type') === 'refusal');
    if (refusals.length > 0) this.refused = true;
    if (streamed) return [];
    return parts.flatMap((part) => this.textDelta(index, textAt(part, 'text') || textAt(part, 'refusal')));
  }

  #reasoning(index: number, item: Json): ModelEvent[] {
    const parts = [...arrayAt(item, 'summary'), ...arrayAt(item, 'content')];
    return parts.flatMap((part) => this.reasoningDelta(index, textAt(part, 'text')));
  }

  /**
   * Whether the call is one of the calls so far: some servers give every call the same index, and some give a call another id each time,
   * so an index that repeats means the same call only with the same content.
   */
  #knows(item: Json, isRepeated: boolean): boolean {
    const { id, name, arguments: given } = callOf(item, this.calls.length);
    return this.calls.some((call) => call.id === id || (isRepeated && call.name === name && call.arguments === given));
  }

  #addCall(item: Json): void {
    assertToolCallAllowed(this.#provider, this.calls.length);
    const call = callOf(item, this.calls.length);
    if (call.name === '') throw formatError(this.#provider, 'sent a tool call without a name');
    this.calls.push(call);
  }
}

function callOf(item: Json, position: number): ToolCall {
  return {
    id: textAt(item, 'call_id') || textAt(item, 'id') || `call_${position}`,
    name: textAt(item, 'name'),
    arguments: textAt(item, 'arguments').trim() === '' ? '{}' : textAt(item, 'arguments'),
  };
}
