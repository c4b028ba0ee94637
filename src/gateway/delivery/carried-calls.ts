import { GENERATE_TEXT, TEXT_SYSTEM } from '../../agent/tools/generate-text.ts';
import { DEFAULT_KEYS } from '../../agent/tools/memory-key-tools.ts';
import { MEMORY_TOOLS } from '../../agent/tools/memory-access.ts';
import { DEFAULT_HITS } from '../../agent/tools/memory-tools.ts';
import type { MemoryHit, MemoryKeys } from '../../agent/ports.ts';
import { SEND_TOOL } from '../../agent/tools/send-tool.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import type { ModelRequest } from '../../models/port.ts';
import type { CarriedCall } from './answer-signatures.ts';

/* The calls of built-in tools that pass a gateway, in the one form that routes sign and reports are compared with. */

export function memoryRead(key: string, value: Json | undefined): CarriedCall {
  return { name: MEMORY_TOOLS.get, input: { key }, value: { found: value !== undefined, value: value ?? null } };
}

export function memoryWrite(key: string, value: Json): CarriedCall {
  return { name: MEMORY_TOOLS.set, input: { key, value }, value: { key } };
}

export function memoryDelete(key: string, deleted: boolean): CarriedCall {
  return { name: MEMORY_TOOLS.delete, input: { key }, value: { key, deleted } };
}

export function memoryList(prefix: string, limit: number, { keys, complete }: MemoryKeys): CarriedCall {
  return { name: MEMORY_TOOLS.list, input: { prefix, limit }, value: { keys, complete } };
}

export function memorySearch(query: string, limit: number, hits: readonly MemoryHit[]): CarriedCall {
  const shown = hits.map(({ key, value }) => ({ key, value }));
  return { name: MEMORY_TOOLS.search, input: { query, limit }, value: { hits: shown } };
}

export function sentMessage(draft: { to: string; session: string; text: string }, id: string): CarriedCall {
  const { to, session, text } = draft;
  return { name: SEND_TOOL.name, input: { to, session, text }, value: { id } };
}

/** Undefined for a model call of the agent itself. */
export function generatedText(request: Omit<ModelRequest, 'model'>, text: string): CarriedCall | undefined {
  const { system, messages, tools } = request;
  const [prompt, ...more] = messages;
  if (system !== TEXT_SYSTEM || prompt?.role !== 'user' || more.length > 0 || tools.length > 0) return undefined;
  if (request.temperature !== undefined || request.responseFormat !== undefined) return undefined;
  return { name: GENERATE_TEXT.name, input: { prompt: prompt.text }, value: { text, output: text } };
}

/** A recorded call with the defaults of its tool filled in. */
export function asCarried({ name, input, value }: CarriedCall, session: string): CarriedCall {
  if (!isJsonObject(input)) return { name, input, value };
  if (name === MEMORY_TOOLS.search) return { name, input: { limit: DEFAULT_HITS, ...input }, value };
  if (name === MEMORY_TOOLS.list) return { name, input: { prefix: '', limit: DEFAULT_KEYS, ...input }, value };
  if (name !== SEND_TOOL.name) return { name, input, value };
  const named = input['session'] === undefined || input['session'] === '' ? session : input['session'];
  return { name, input: { ...input, session: named }, value };
}
