import { isJsonObject, parseUntrustedJson, type Json } from '../../lib/json.ts';
import { arrayAt, objectAt, textAt } from './json-members.ts';
import type { ToolCall } from '../port.ts';

const WRAPPERS: ReadonlySet<string> = new Set(['parallel', 'multi_tool_use.parallel']);
const NAMESPACE = 'functions.';

/**
 * OpenAI models sometimes pack several calls into one call of a tool that was not offered. A well-formed wrapper is replaced by
 * the calls inside it, with ids derived from its own; a malformed wrapper is returned unchanged and fails later as an unknown tool.
 */
export function unwrapParallel(call: ToolCall, offeredTools: readonly string[]): ToolCall[] {
  if (!WRAPPERS.has(call.name) || offeredTools.includes(call.name)) return [call];
  const inner = arrayAt(parsed(call.arguments), 'tool_uses').map((use, index) => unwrapped(use, `${call.id}_${index}`));
  const whole = inner.filter((use) => use !== undefined);
  return whole.length > 0 && whole.length === inner.length ? whole : [call];
}

function unwrapped(use: Json, id: string): ToolCall | undefined {
  const name = textAt(use, 'recipient_name');
  const parameters = objectAt(use, 'parameters');
  if (!name.startsWith(NAMESPACE) || !parameters) return undefined;
  return { id, name: name.slice(NAMESPACE.length), arguments: JSON.stringify(parameters) };
}

function parsed(source: string): Json {
  try {
    const value = parseUntrustedJson(source);
    return isJsonObject(value) ? value : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}
