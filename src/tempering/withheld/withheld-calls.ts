import type { Json } from '../../lib/json.ts';
import { canonicalJson, type Digest, sha256 } from '../../lib/canonical.ts';
import { isTemperError } from '../../lib/errors.ts';
import { isJsonObject, parseUntrustedJson, textAt } from '../../lib/json.ts';
import type { ModelMessage } from '../../models/port.ts';
import { FORGE_TOOL_NAME } from '../../tools/forge-test-call.ts';
import type { SourceStore } from './source-store.ts';
import { WITHHELD, type WithheldSources } from './withheld-sources.ts';

/**
 * The form of messages in which a session stores them without sources. The arguments of a forge that has no result yet stay in the
 * encrypted store, so that a parked or interrupted forge can go on; they are deleted with its result.
 */
export interface WithheldCalls {
  toStored(collection: string, items: readonly ModelMessage[]): Promise<ModelMessage[]>;
  /** The items with the arguments of the forges that have no result. */
  restored(collection: string, items: readonly ModelMessage[]): Promise<ModelMessage[]>;
}

type AssistantMessage = Extract<ModelMessage, { role: 'assistant' }>;
type Call = AssistantMessage['toolCalls'][number];

export function createWithheldCalls(sources: WithheldSources, store: SourceStore): WithheldCalls {
  const storedCall = async (collection: string, call: Call): Promise<Call> => {
    if (call.name !== FORGE_TOOL_NAME) return { ...call, arguments: sources.text(call.arguments) };
    sources.learn(argumentsOf(call));
    const digest = sha256(call.arguments);
    await store.put(forgesOf(collection), keyOf(call.id), call.arguments);
    return { ...call, arguments: canonicalJson({ withheld: digest, bytes: Buffer.byteLength(call.arguments) }) };
  };
  const stored = async (collection: string, item: ModelMessage): Promise<ModelMessage> => {
    if (item.role === 'user') return { ...item, text: sources.text(item.text) };
    if (item.role === 'tool') {
      if (item.name !== FORGE_TOOL_NAME) return { ...item, text: sources.text(item.text) };
      await store.delete(forgesOf(collection), keyOf(item.toolCallId));
      return { ...item, text: forgeResult(item.text) };
    }
    const toolCalls: Call[] = [];
    for (const call of item.toolCalls) toolCalls.push(await storedCall(collection, call));
    return { ...item, text: sources.text(item.text), toolCalls };
  };
  const restoredCall = async (collection: string, call: Call): Promise<Call> => {
    const digest = call.name === FORGE_TOOL_NAME ? withheldDigest(call) : undefined;
    if (digest === undefined) return call;
    // With a key that was replaced since, the forge cannot go on: it is refused, and the model forges again.
    const text = await store.get(forgesOf(collection), keyOf(call.id)).catch((error: unknown) => {
      if (isTemperError(error, 'TEMPER_STATE_CORRUPT')) return undefined;
      throw error;
    });
    if (text === undefined || sha256(text) !== digest) return call;
    sources.learn(argumentsOf({ ...call, arguments: text }));
    return { ...call, arguments: text };
  };
  /** `ended`: calls with a later result. */
  const restoredAnswer = async (collection: string, item: AssistantMessage, ended: ReadonlySet<string>) => {
    const toolCalls: Call[] = [];
    for (const call of item.toolCalls) toolCalls.push(ended.has(call.id) ? call : await restoredCall(collection, call));
    return { ...item, toolCalls };
  };
  return {
    async toStored(collection, items) {
      const all: ModelMessage[] = [];
      for (const item of items) all.push(await stored(collection, item));
      return all;
    },
    async restored(collection, items) {
      const all: ModelMessage[] = [];
      const ended = new Set<string>();
      for (const item of items.toReversed()) {
        if (item.role === 'tool') ended.add(item.toolCallId);
        all.push(item.role === 'assistant' ? await restoredAnswer(collection, item, ended) : item);
      }
      return all.reverse();
    },
  };
}

/** The items with the lines of sources replaced in all texts but those of forges, whose sources are learned. */
export function withheldTexts(sources: WithheldSources, items: readonly ModelMessage[]): ModelMessage[] {
  return items.map((item): ModelMessage => {
    if (item.role === 'user') return { ...item, text: sources.text(item.text) };
    if (item.role === 'tool') return item.name === FORGE_TOOL_NAME ? item : { ...item, text: sources.text(item.text) };
    for (const call of item.toolCalls) if (isOpenForge(call)) sources.learn(argumentsOf(call));
    const toolCalls = item.toolCalls.map((call) =>
      call.name === FORGE_TOOL_NAME ? call : { ...call, arguments: sources.text(call.arguments) },
    );
    return { ...item, text: sources.text(item.text), toolCalls };
  });
}

function isOpenForge(call: Call): boolean {
  return call.name === FORGE_TOOL_NAME && withheldDigest(call) === undefined;
}

/** Below the session, so that it is deleted with it. */
function forgesOf(session: string): string {
  return `${session}/forges`;
}

/** Providers reuse the ids of calls, and only the last one can be without a result. */
function keyOf(callId: string): string {
  return sha256(callId).slice('sha256:'.length);
}

/** Arguments that are not JSON never become a tool; their text is withheld all the same. */
function argumentsOf(call: Call): Json {
  try {
    return parseUntrustedJson(call.arguments);
  } catch {
    return call.arguments;
  }
}

function withheldDigest(call: Call): Digest | undefined {
  const found = textAt(argumentsOf(call), ['withheld']);
  return found.startsWith('sha256:') ? (found as Digest) : undefined;
}

/** The result without warnings and messages, which may quote the source. */
function forgeResult(text: string): string {
  let result: Json;
  try {
    result = parseUntrustedJson(text);
  } catch {
    return WITHHELD;
  }
  if (!isJsonObject(result)) return WITHHELD;
  const code = textAt(result, ['error', 'code']);
  if (code !== '') return canonicalJson({ error: { code, message: WITHHELD } });
  const { tool = null, digest = null, tier = null } = result;
  return canonicalJson({ tool, digest, tier });
}
