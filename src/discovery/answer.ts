import { printable } from '../lib/escape.ts';
import type { DiscoveryEntry } from './entry.ts';
import type { DiscoveryAnswer, FoundCapability } from './port.ts';
import type { Ranked } from './search.ts';

/** A token is counted as four characters. */
const ANSWER_CHARACTERS = 800 * 4;
export const MOST_FOUND = 10;
const DESCRIPTION_CHARACTERS = 160;
const NOTE_CHARACTERS = 200;

/** The tools an agent can call: names, and `name@sha256:…` of forged ones. */
export type Callable = ReadonlySet<string>;

/** The best of what was found, within the budget of an answer. A line that does not fit makes room for the next one. */
export function answerOf(ranked: readonly Ranked[], callable: Callable): DiscoveryAnswer {
  const capabilities: FoundCapability[] = [];
  let left = ANSWER_CHARACTERS;
  for (const { entry, relevance } of ranked) {
    if (capabilities.length === MOST_FOUND) break;
    const line = lineOf(entry, relevance, callable);
    const size = JSON.stringify(line).length + 1;
    if (size > left) continue;
    capabilities.push(line);
    left -= size;
  }
  return { capabilities, more: ranked.length - capabilities.length };
}

function lineOf(entry: DiscoveryEntry, relevance: number, callable: Callable): FoundCapability {
  const { id, name, kind, description } = entry;
  const reason = unavailable(entry, callable);
  return {
    id: printable(id, 160),
    name: printable(name, 128),
    kind,
    description: printable(description, DESCRIPTION_CHARACTERS),
    relevance: Math.round(relevance * 100) / 100,
    available: reason === undefined,
    ...(reason === undefined ? {} : { note: `[not available: ${printable(reason, NOTE_CHARACTERS)}]` }),
  };
}

/** Required tools are counted, not named: the agent may not be allowed to know of them. */
function unavailable({ kind, name, requiredTools, unavailable: reason }: DiscoveryEntry, callable: Callable) {
  if (kind === 'tool' && callable.has(name)) return undefined;
  const missing = requiredTools.filter((tool) => !callable.has(tool)).length;
  const isTool = kind === 'tool' || kind === 'emergent-tool';
  if (missing === 0) return reason ?? (isTool && !callable.has(name) ? 'this agent was not given it' : undefined);
  const needs = `needs ${missing} ${missing === 1 ? 'tool' : 'tools'} this agent does not have`;
  return reason === undefined ? needs : `${needs}; ${reason}`;
}
