import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { printable } from '../../lib/printable.ts';
import { textSize } from '../../models/charge/request-size.ts';
import type { ModelMessage } from '../../models/port.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { LOAD_TOOL_NAME } from '../code/list-tools.ts';
import { itemsForModel } from '../compaction/summary-item.ts';
import { estimateRequest } from '../history/context-window.ts';
import type { ProviderOffer } from '../provider/port.ts';
import { asSpec, definitionTokens, lastWithin, loadedTools } from './loaded-tools.ts';
import { ALWAYS_OFFERED, byName } from './names.ts';
import { type DisclosureSettings, disclosureSettings } from './settings.ts';
import { toolMap } from './tool-map.ts';
import type { ToolSearch } from './tool-search.ts';

export interface DisclosureDeps {
  search: ToolSearch;
  /** Context window of a model in tokens. */
  contextTokens: (model: string) => number;
}

/** The message that the tools are for. */
interface DisclosedMessage {
  text: string;
  prompt: string;
  model: string;
  maxOutputTokens: number;
}

/** What fits a message in mode `Semantic`, in tokens: lines with names and descriptions, and whole definitions. */
export const SUGGESTED = { results: 5, definitions: 2, lineTokens: 800, definitionTokens: 2_000 } as const;
const MAX_LINE_DESCRIPTION = 120;
/** A tool with less than this share of the relevance of the best one does not fit the message. */
const MIN_SHARE = 0.3;

interface Suggestions {
  lines: readonly string[];
  /** Lent for this message. */
  tools: readonly ToolDescriptor[];
}

/** The tools that the model of one message gets. The prompt and the order of the tools stay the same until a tool is loaded or leaves. */
export class Disclosure {
  readonly #settings: DisclosureSettings;
  readonly #deps: DisclosureDeps;
  readonly #message: DisclosedMessage;
  #prompt: string | undefined;
  #suggestions: Suggestions = { lines: [], tools: [] };

  constructor(settings: DisclosureSettings, deps: DisclosureDeps, message: DisclosedMessage) {
    this.#settings = settings;
    this.#deps = deps;
    this.#message = message;
  }

  /** Undefined for an agent that may not load tools: it gets all that it may call. */
  offer(visible: readonly ToolDescriptor[], items: readonly ModelMessage[]): ProviderOffer | undefined {
    if (!visible.some(({ name }) => name === LOAD_TOOL_NAME)) return undefined;
    const always = visible.filter(({ name }) => ALWAYS_OFFERED.has(name)).toSorted(byName);
    const others = visible.filter(({ name }) => !ALWAYS_OFFERED.has(name));
    const prompt = (this.#prompt ??= this.#openPrompt(others));
    const loaded = loadedTools(items, others, this.#settings.bodyTokens);
    const lent = this.#suggestions.tools.filter((tool) => others.includes(tool) && !loaded.includes(tool));
    const offered = this.#withinWindow(prompt, always, this.#withinBudget([...loaded, ...lent]), items);
    return { prompt, tools: [...always, ...offered] };
  }

  /** Once per message, because a changed prompt invalidates the provider's prompt cache. */
  #openPrompt(tools: readonly ToolDescriptor[]): string {
    if (this.#settings.mode === 'Semantic') this.#suggestions = this.#suggest(tools);
    return [this.#message.prompt, '', toolMap(tools), ...this.#suggestions.lines].join('\n');
  }

  #suggest(tools: readonly ToolDescriptor[]): Suggestions {
    const ranked = this.#deps.search.rank(this.#message.text, tools).slice(0, SUGGESTED.results);
    const best = ranked[0]?.relevance ?? 0;
    const fitting = ranked.filter(({ relevance }) => relevance >= best * MIN_SHARE).map(({ tool }) => tool);
    const budget = Math.min(SUGGESTED.definitionTokens, this.#settings.bodyTokens);
    const lent = within(fitting.slice(0, SUGGESTED.definitions), budget, definitionTokens);
    const named = fitting.filter((tool) => !lent.includes(tool)).map(lineOf);
    const lines = within(named, SUGGESTED.lineTokens, (line) => textSize(line).tokens);
    const title = 'Tools that may fit the message, one JSON object per line:';
    return { tools: lent, lines: lines.length === 0 ? [] : [title, ...lines] };
  }

  #withinBudget(tools: readonly ToolDescriptor[]): ToolDescriptor[] {
    return lastWithin(tools, this.#settings.bodyTokens);
  }

  /** The tools that were loaded first leave until the request is below the share of the window. The last one stays. */
  #withinWindow(
    system: string,
    always: readonly ToolDescriptor[],
    offered: readonly ToolDescriptor[],
    items: readonly ModelMessage[],
  ): readonly ToolDescriptor[] {
    const { model, maxOutputTokens } = this.#message;
    const window = Math.max(1_000, this.#deps.contextTokens(model) - maxOutputTokens);
    const fixed = estimateRequest(itemsForModel(items), { system, tools: always.map(asSpec) });
    const remaining = this.#settings.unloadShare * window - fixed;
    const fitting = lastWithin(offered, remaining);
    return fitting.length === 0 ? offered.slice(-1) : fitting;
  }
}

/** Undefined for an agent whose model always gets all tools. */
export function createDisclosure(
  deps: DisclosureDeps | undefined,
  spec: AgentSpec,
  message: DisclosedMessage,
): Disclosure | undefined {
  const settings = disclosureSettings(spec);
  return settings === undefined || deps === undefined ? undefined : new Disclosure(settings, deps, message);
}

/** What a message that a search answers so costs in mode `Semantic`: tools by relevance, best first. */
export function suggestedTokens(ranked: readonly ToolDescriptor[]): { lines: number; definitions: number } {
  const [tools, lent] = [ranked.slice(0, SUGGESTED.results), ranked.slice(0, SUGGESTED.definitions)];
  const lines = tools.slice(lent.length).map((tool) => textSize(lineOf(tool)).tokens);
  const sum = (sizes: readonly number[]): number => sizes.reduce((total, size) => total + size, 0);
  return { lines: sum(lines), definitions: sum(lent.map(definitionTokens)) };
}

/** JSON, because the description is untrusted text. */
function lineOf({ name, description }: ToolDescriptor): string {
  return JSON.stringify({ name, description: printable(description, MAX_LINE_DESCRIPTION) });
}

/** The first items that fit the budget; an item that does not fit is skipped. */
function within<T>(items: readonly T[], tokens: number, sizeOf: (item: T) => number): T[] {
  let remaining = tokens;
  return items.filter((item) => {
    const size = sizeOf(item);
    if (size > remaining) return false;
    remaining -= size;
    return true;
  });
}
