import type { Json } from '../../lib/json.ts';
import { formatError } from '../adapter/provider-errors.ts';
import { assertToolCallAllowed } from '../adapter/stream-end.ts';
import { countAt, objectAt, textAt } from '../adapter/json-members.ts';
import type { ToolCall } from '../port.ts';

interface PartialCall {
  index: number | undefined;
  call: ToolCall;
}

/**
 * Assembles tool calls from their fragments. A fragment belongs to the call with the same index; when a server sends no index, or
 * the same index for every call, a new id starts a new call.
 */
export class ToolCallFragments {
  readonly #provider: string;
  readonly #calls: PartialCall[] = [];

  constructor(provider: string) {
    this.#provider = provider;
  }

  add(fragment: Json): void {
    const index = countAt(fragment, 'index');
    const id = textAt(fragment, 'id');
    const functionPart = objectAt(fragment, 'function');
    const partial = this.#owner(index, id) ?? this.#start(index, id);
    partial.call.name ||= textAt(functionPart, 'name');
    partial.call.arguments += argumentText(functionPart);
  }

  all(): ToolCall[] {
    for (const { call } of this.#calls) {
      if (call.name === '') throw formatError(this.#provider, 'sent a tool call without a name');
    }
    return this.#calls.map(({ call }) => ({
      ...call,
      arguments: call.arguments.trim() === '' ? '{}' : call.arguments,
    }));
  }

  #owner(index: number | undefined, id: string): PartialCall | undefined {
    const candidates = index === undefined ? this.#calls : this.#calls.filter((growing) => growing.index === index);
    if (id === '') return candidates.at(-1);
    return candidates.find((growing) => growing.call.id === id);
  }

  #start(index: number | undefined, id: string): PartialCall {
    assertToolCallAllowed(this.#provider, this.#calls.length);
    const call = { id: id || `call_${this.#calls.length}`, name: '', arguments: '' };
    const partial = { index, call };
    this.#calls.push(partial);
    return partial;
  }
}

/** The arguments as text; a few servers send an object instead. */
function argumentText(piece: Json | undefined): string {
  const given = objectAt(piece, 'arguments');
  return given ? JSON.stringify(given) : textAt(piece, 'arguments');
}
