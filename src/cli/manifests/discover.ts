import { definitionTokens } from '../../agent/disclosure/loaded-tools.ts';
import { bodyTokensOf } from '../../agent/disclosure/settings.ts';
import { suggestedTokens, suggestionsOf } from '../../agent/disclosure/suggestions.ts';
import { toolMap } from '../../agent/disclosure/tool-map.ts';
import { type RankedTool, ToolSearch } from '../../agent/disclosure/tool-search.ts';
import type { Capability } from '../../api/v1alpha1/capability.ts';
import { assertKind, DISCOVER_TOOL } from '../../discovery/discover-tool.ts';
import { capabilityEntry, type DiscoveryEntry, toolEntry } from '../../discovery/entry.ts';
import { deniedHosts } from '../../discovery/fetch-hosts.ts';
import { explainSearch, type SearchExplanation } from '../../discovery/lexical/explain-search.ts';
import { LexicalIndex } from '../../discovery/lexical/lexical-index.ts';
import type { DiscoveryResult } from '../../discovery/port.ts';
import { buildResult, MAX_RESULTS } from '../../discovery/result.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { jsonSize, textSize } from '../../models/charge/request-size.ts';
import { createDecider } from '../../policy/decider.ts';
import type { PolicySnapshot } from '../../policy/types.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { table } from '../table.ts';
import { type ComparedVectors, compareVectors, vectorsJson, vectorsText } from './discover-vectors.ts';
import { type AgentQuestion, loadSnapshot, namespaceOf } from './policy-snapshot.ts';

export interface DiscoverOptions extends AgentQuestion {
  query: string;
  kind?: string;
  category?: string;
  explain?: boolean;
  /** File with model providers and `discovery.embedder`. Absent: a search by words alone. */
  providers?: string;
  output: 'text' | 'json';
}

/** What a run of the user has besides the manifests. */
export interface Offered {
  tools: readonly ToolDescriptor[];
  /** The names of connections and of MCP servers. */
  connections: ReadonlySet<string>;
  /** The tools of the Capabilities that a run of the user executes itself. */
  toolsOf: (capabilities: readonly Capability[]) => readonly ToolDescriptor[];
}

interface Discovered {
  snapshot: PolicySnapshot;
  result: DiscoveryResult;
  explanation: SearchExplanation;
  /** Absent without `providers`. */
  vectors: ComparedVectors | undefined;
  /** Estimated tokens in requests of the agent. */
  tokens: { definitions: number; map: number; lines: number; lent: number; result: number };
}

/**
 * Prints what `discover_capabilities` returns to the agent, among the tools and the Capabilities of the manifests. Executes nothing.
 * Exit 0; 2 for an unknown agent or kind, and unreadable manifests.
 */
export async function discover(options: DiscoverOptions, offered: Offered, io: CliIo): Promise<number> {
  try {
    const found = await discovered(options, offered, io);
    if (options.output === 'json') writeJsonLine(io, jsonOf(found, options.explain === true));
    else io.out(textOf(found, options.explain === true));
    return EXIT.ok;
  } catch (error) {
    const usage = ['TEMPER_USAGE', 'TEMPER_MANIFEST_UNREADABLE', 'TEMPER_TOOL_INPUT_INVALID'] as const;
    if (!isTemperError(error) || !usage.some((code) => error.code === code)) throw error;
    io.error(`temper: ${error.code}: ${error.message}\n`);
    return EXIT.usage;
  }
}

async function discovered(options: DiscoverOptions, offered: Offered, io: CliIo): Promise<Discovered> {
  const { query, kind, category } = options;
  const { snapshot, objects } = await loadSnapshot(options, io.cwd);
  const decider = createDecider(snapshot);
  const permits = ({ request }: DiscoveryEntry): boolean =>
    request === undefined || decider.decide(request).effect !== 'Deny';
  const own = objects.flatMap((object) =>
    object.kind === 'Capability' && namespaceOf(object) === snapshot.agent.namespace ? [object] : [],
  );
  const tools = [...offered.tools, ...offered.toolsOf(own)];
  const listed = tools.filter((tool) => tool.name !== DISCOVER_TOOL.name && permits(toolEntry(tool)));
  const indexes = [LexicalIndex.of(listed.map(toolEntry)), LexicalIndex.of(own.map(capabilityEntry))];
  const asked = { query, ...assertKind(kind), ...(category === undefined ? {} : { category }) };
  const scope = { indexes, permits };
  const { name, namespace } = snapshot.agent;
  const vectors =
    options.providers === undefined
      ? undefined
      : await compareVectors(options.providers, { query: asked, scope, tools: listed, agent: { name, namespace } }, io);
  const explanation = explainSearch(asked, scope, systemClock, vectors?.part.similarities);
  const result = buildResult(explanation.results, {
    callable: new Set(listed.map(({ name: tool }) => tool)),
    hasConnection: (connection) => offered.connections.has(connection),
    fetchProblem: (hosts) => deniedHosts(hosts, decider),
  });
  const ranked = vectors?.ranked ?? new ToolSearch().rank(query, listed);
  const tokens = { ...tokensOf(ranked, listed, snapshot), result: jsonSize(resultJson(result)).tokens };
  return { snapshot, result, explanation, vectors, tokens };
}

/** `lines` and `lent`: what mode `Semantic` adds to the first request of a session for a message with the words of the query. */
function tokensOf(
  ranked: readonly RankedTool[],
  tools: readonly ToolDescriptor[],
  { agent }: PolicySnapshot,
): Omit<Discovered['tokens'], 'result'> {
  const { lines, definitions: lent } = suggestedTokens(suggestionsOf(ranked, bodyTokensOf(agent.spec)));
  const definitions = tools.reduce((sum, tool) => sum + definitionTokens(tool), 0);
  return { definitions, map: textSize(toolMap(tools)).tokens, lines, lent };
}

function resultJson({ capabilities, more }: DiscoveryResult): JsonObject {
  return { capabilities: capabilities.map((found) => ({ ...found })), more };
}

function jsonOf({ snapshot, result, explanation, vectors, tokens }: Discovered, isExplained: boolean): Json {
  const found = { agent: snapshot.agent.name, level: snapshot.level, ...resultJson(result) };
  if (!isExplained) return found;
  const { visible, clauses, words, results, milliseconds } = explanation;
  return {
    ...found,
    visible,
    milliseconds,
    clauses,
    words: words.map(({ word, readAs, entries }) => ({ word, readAs: [...readAs], entries })),
    matches: results.slice(0, MAX_RESULTS).map(({ entry, words: matched, links, byWords, cosine }) => ({
      id: entry.id,
      words: matched,
      links,
      byWords,
      ...(cosine === undefined ? {} : { cosine }),
    })),
    ...(vectors === undefined ? {} : { vectors: vectorsJson(vectors) }),
    tokens,
  };
}

function textOf(found: Discovered, isExplained: boolean): string {
  const { snapshot, result } = found;
  const { capabilities, more } = result;
  const rows = capabilities.map(({ id, displayName, relevance, description, note }) => [
    relevance.toFixed(2),
    id,
    [
      ...(displayName === undefined ? [] : [`${displayName}:`]),
      description,
      ...(note === undefined ? [] : [note]),
    ].join(' '),
  ]);
  const none = `agent ${snapshot.agent.name} finds nothing; other words, or temper validate for its manifests\n`;
  const list = rows.length === 0 ? none : table(['RELEVANCE', 'ID', 'DESCRIPTION'], rows);
  const rest = more === 0 ? '' : `${more} more\n`;
  return `${list}${rest}${isExplained ? explanationOf(found) : ''}`;
}

function explanationOf({ snapshot, explanation, vectors, tokens }: Discovered): string {
  const { visible, clauses, words, results, milliseconds } = explanation;
  const shown = results.slice(0, MAX_RESULTS);
  const wordRows = words.map(({ word, readAs, entries }) => [word, readAs.join(' '), String(entries)]);
  const parts = vectors === undefined ? [] : ['BY WORDS', 'COSINE'];
  const matchRows = shown.map(({ entry, words: matched, links, byWords, cosine }) => [
    entry.id,
    ...(vectors === undefined ? [] : [byWords.toFixed(2), cosine?.toFixed(2) ?? '-']),
    matched.join(' '),
    links.join(' '),
  ]);
  return [
    `\n${visible} capabilities are visible to agent ${snapshot.agent.name} at level ${snapshot.level}`,
    clauses === 0 ? '\n' : `; ${clauses} sentences are ranked alone too\n`,
    `\n${table(['WORD', 'READ AS', 'ENTRIES'], wordRows)}`,
    shown.length === 0 ? '' : `\n${table(['RESULT', ...parts, 'WORDS', 'LINKS'], matchRows)}`,
    vectors === undefined ? '' : `\n${vectorsText(vectors, visible)}\n`,
    `\ntime: ranking ${milliseconds.ranking.toFixed(1)} ms, links ${milliseconds.links.toFixed(1)} ms\n`,
    `tokens: all definitions ${tokens.definitions}, map ${tokens.map}, this result ${tokens.result}; in mode Semantic ${tokens.lent} for definitions and ${tokens.lines} for names\n`,
  ].join('');
}
