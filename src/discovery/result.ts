import { printable } from '../lib/printable.ts';
import type { DiscoveryEntry } from './entry.ts';
import type { DiscoveryResult, FoundCapability } from './port.ts';
import type { RankedEntry } from './ranked-entry.ts';

/** Budget of a response: 800 tokens of four characters each. */
const MAX_RESPONSE_CHARACTERS = 800 * 4;
export const MAX_RESULTS = 10;
const MAX_DESCRIPTION = 160;
const MAX_NOTE = 200;
/** In place of words that the team did not write: a search does not taint the session that makes it, and loading does. */
const WITHHELD = 'An imported skill; load_tool returns its text, which is untrusted content.';

/** The tools that an agent can call: names, and `name@sha256:…` of forged tools. */
export type CallableTools = ReadonlySet<string>;

/** Returns the best results within the budget of a response. A result that does not fit is skipped, and the next one is tried. */
export function buildResult(ranked: readonly RankedEntry[], callable: CallableTools): DiscoveryResult {
  const capabilities: FoundCapability[] = [];
  let remaining = MAX_RESPONSE_CHARACTERS;
  for (const { entry, relevance } of ranked) {
    if (capabilities.length === MAX_RESULTS) break;
    const result = resultOf(entry, relevance, callable);
    const size = JSON.stringify(result).length + 1;
    if (size > remaining) continue;
    capabilities.push(result);
    remaining -= size;
  }
  return { capabilities, more: ranked.length - capabilities.length };
}

function resultOf(entry: DiscoveryEntry, relevance: number, callable: CallableTools): FoundCapability {
  const { id, name, kind } = entry;
  const { displayName, description } = shownWords(entry);
  const reason = unavailable(entry, callable);
  return {
    id: printable(id, 160),
    name: printable(name, 128),
    ...(displayName === undefined ? {} : { displayName: printable(displayName, 128) }),
    kind,
    description: printable(description, MAX_DESCRIPTION),
    relevance: Math.round(relevance * 100) / 100,
    available: reason === undefined,
    ...(reason === undefined ? {} : { note: `[not available: ${printable(reason, MAX_NOTE)}]` }),
  };
}

function shownWords({ imported, displayName, description }: DiscoveryEntry) {
  return imported === true ? { displayName: undefined, description: WITHHELD } : { displayName, description };
}

/** Counts missing tools without their names, because the agent may not be allowed to see these tools. */
function unavailable({ kind, name, requiredTools, unavailable: reason }: DiscoveryEntry, callable: CallableTools) {
  if (kind === 'tool' && callable.has(name)) return undefined;
  const missing = requiredTools.filter((tool) => !callable.has(tool)).length;
  const isTool = kind === 'tool' || kind === 'emergent-tool';
  if (missing === 0) return reason ?? (isTool && !callable.has(name) ? 'this agent does not have it' : undefined);
  const needs = `needs ${missing} ${missing === 1 ? 'tool' : 'tools'} this agent does not have`;
  return reason === undefined ? needs : `${needs}; ${reason}`;
}
