import { printable } from '../lib/printable.ts';
import type { DiscoveryEntry } from './entry.ts';
import type { DiscoveryResult, FoundCapability } from './port.ts';
import type { RankedEntry } from './ranked-entry.ts';
import { missingRequirements } from './requirements.ts';

/** Budget of a response: 800 tokens of four characters each. */
const MAX_RESPONSE_CHARACTERS = 800 * 4;
export const MAX_RESULTS = 10;
const MAX_DESCRIPTION = 160;
const MAX_NOTE = 200;
/** In place of words that the team did not write: a search does not taint the session that makes it, and loading does. */
const WITHHELD = 'An imported skill; load_tool returns its text, which is untrusted content.';

/** What decides whether an agent can use a result. */
export interface AgentMeans {
  /** The tools that the agent can call: names, and `name@sha256:…` of forged tools. */
  readonly callable: ReadonlySet<string>;
  /** Whether the namespace of the agent has the connection. */
  readonly hasConnection: (name: string) => boolean;
  /** Why no call of `fetch` to the hosts succeeds; undefined when one may. */
  readonly fetchProblem: (hosts: readonly string[]) => string | undefined;
}

/** At most so many missing connections are named. */
const NAMED_CONNECTIONS = 3;

/** Returns the best results within the budget of a response. A result that does not fit is skipped, and the next one is tried. */
export function buildResult(ranked: readonly RankedEntry[], means: AgentMeans): DiscoveryResult {
  const capabilities: FoundCapability[] = [];
  let remaining = MAX_RESPONSE_CHARACTERS;
  for (const { entry, relevance } of ranked) {
    if (capabilities.length === MAX_RESULTS) break;
    const result = resultOf(entry, relevance, means);
    const size = JSON.stringify(result).length + 1;
    if (size > remaining) continue;
    capabilities.push(result);
    remaining -= size;
  }
  return { capabilities, more: ranked.length - capabilities.length };
}

function resultOf(entry: DiscoveryEntry, relevance: number, means: AgentMeans): FoundCapability {
  const { id, name, kind } = entry;
  const { displayName, description } = shownWords(entry);
  const reason = unavailable(entry, means);
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

/** What the agent can call is available. Everything else is as available as what it requires, and has the reason of its kind. */
function unavailable(entry: DiscoveryEntry, means: AgentMeans): string | undefined {
  const { kind, name, request } = entry;
  if (kind !== 'emergent-tool' && request !== undefined && means.callable.has(name)) return undefined;
  const reasons = [...missing(entry, means), ...ownReason(entry, means)];
  if (reasons.length > 0) return reasons.join('; ');
  const isTool = kind === 'tool' || kind === 'emergent-tool';
  return isTool && !means.callable.has(name) ? 'this agent does not have it' : undefined;
}

/** Counts missing tools without their names, because the agent may not be allowed to see these tools. */
function missing(
  { requiredConnections = [], requiredTools }: DiscoveryEntry,
  { callable, hasConnection }: AgentMeans,
): string[] {
  const required = { connections: requiredConnections, tools: requiredTools };
  const { connections, tools } = missingRequirements(required, {
    hasConnection,
    hasTool: (name) => callable.has(name),
  });
  const named = connections.slice(0, NAMED_CONNECTIONS).join(', ');
  return [
    ...(tools.length === 0
      ? []
      : [`needs ${tools.length} ${tools.length === 1 ? 'tool' : 'tools'} this agent does not have`]),
    ...(connections.length === 0 ? [] : [`needs connection ${named}`]),
  ];
}

function ownReason({ fetchHosts, unavailable: reason }: DiscoveryEntry, { fetchProblem }: AgentMeans): string[] {
  const found = reason ?? (fetchHosts === undefined ? undefined : fetchProblem(fetchHosts));
  return found === undefined ? [] : [found];
}
