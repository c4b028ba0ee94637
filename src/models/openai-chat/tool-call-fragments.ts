import type { Json } from '../../lib/json.ts';
import { formatError } from '../errors.ts';
import { count, objectAt, text } from '../json-read.ts';
import type { ToolCall } from '../port.ts';

interface Growing {
  index: number | undefined;
  call: ToolCall;
}

/**
 * Puts tool calls together from their pieces. A piece belongs to the call of its index; where servers give no index, or
 * the same one to every call, a new id begins a new call.
 */
export class ToolCallFragments {
  readonly #calls: Growing[] = [];

  add(fragment: Json): void {
    const index = count(fragment, 'index');
    const id = text(fragment, 'id');
    const piece = objectAt(fragment, 'function');
    const growing = this.#owner(index, id) ?? this.#begin(index, id);
    growing.call.name ||= text(piece, 'name');
    growing.call.arguments += argumentText(piece);
  }

  all(provider: string): ToolCall[] {
    for (const { call } of this.#calls) {
      if (call.name === '') throw formatError(provider, 'sent a tool call without a name');
    }
    return this.#calls.map(({ call }) => ({
      ...call,
      arguments: call.arguments.trim() === '' ? '{}' : call.arguments,
    }));
  }

  #owner(index: number | undefined, id: string): Growing | undefined {
    const candidates = index === undefined ? this.#calls : this.#calls.filter((growing) => growing.index === index);
    if (id === '') return candidates.at(-1);
    return candidates.find((growing) => growing.call.id === id);
  }

  #begin(index: number | undefined, id: string): Growing {
    const call = { id: id || `call_${this.#calls.length}`, name: '', arguments: '' };
    const growing = { index, call };
    this.#calls.push(growing);
    return growing;
  }
}

/** Text; a few servers send the object itself. */
function argumentText(piece: Json | undefined): string {
  const given = objectAt(piece, 'arguments');
  return given ? JSON.stringify(given) : text(piece, 'arguments');
}
