import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { ModelMessage } from '../../models/port.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { CallerContext, ToolDescriptor } from '../../tools/contract.ts';
import { LOAD_TOOL_NAME } from '../code/list-tools.ts';
import { itemsForModel } from '../compaction/summary-item.ts';
import { estimateRequest } from '../history/context-window.ts';
import type { ProviderOffer } from '../provider/port.ts';
import { asSpec, lastWithin, loadedTools } from './loaded-tools.ts';
import { ALWAYS_OFFERED, byName } from './names.ts';
import { type DisclosureSettings, disclosureSettings } from './settings.ts';
import { type Suggestions, suggestionsOf } from './suggestions.ts';
import { toolMap } from './tool-map.ts';
import type { RankByMeaning, RankedTool, ToolSearch } from './tool-search.ts';

export interface DisclosureDeps {
  search: ToolSearch;
  /** Absent: mode `Semantic` ranks by words alone. */
  rankByMeaning?: RankByMeaning | undefined;
  /** Context window of a model in tokens. */
  contextTokens: (model: string) => number;
}

/** The message that the tools are for. */
interface DisclosedMessage {
  caller: CallerContext;
  text: string;
  prompt: string;
  model: string;
  maxOutputTokens: number;
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
  async offer(
    visible: readonly ToolDescriptor[],
    items: readonly ModelMessage[],
    op: CallOptions,
  ): Promise<ProviderOffer | undefined> {
    if (!visible.some(({ name }) => name === LOAD_TOOL_NAME)) return undefined;
    const always = visible.filter(({ name }) => ALWAYS_OFFERED.has(name)).toSorted(byName);
    const others = visible.filter(({ name }) => !ALWAYS_OFFERED.has(name));
    const prompt = (this.#prompt ??= await this.#openPrompt(others, op));
    const loaded = loadedTools(items, others, this.#settings.bodyTokens);
    const lent = this.#suggestions.tools.filter((tool) => others.includes(tool) && !loaded.includes(tool));
    const note = this.#suggestions.lines.join('\n');
    const offered = this.#withinWindow(`${prompt}${note}`, always, this.#withinBudget([...loaded, ...lent]), items);
    return { prompt, tools: [...always, ...offered], ...(note === '' ? {} : { note }) };
  }

  /**
   * Once per message, because a changed prompt invalidates the provider's prompt cache. So the prompt has only what does not depend on the
   * message: what does follows the message itself.
   */
  async #openPrompt(tools: readonly ToolDescriptor[], op: CallOptions): Promise<string> {
    const { mode, bodyTokens } = this.#settings;
    if (mode === 'Semantic') this.#suggestions = suggestionsOf(await this.#rank(tools, op), bodyTokens);
    return [this.#message.prompt, '', toolMap(tools)].join('\n');
  }

  async #rank(tools: readonly ToolDescriptor[], op: CallOptions): Promise<RankedTool[]> {
    const { search, rankByMeaning } = this.#deps;
    const { text, caller } = this.#message;
    if (rankByMeaning === undefined) return search.rank(text, tools);
    return search.rankByMeaning(text, tools, (query, scope) => rankByMeaning(query, scope, caller, op));
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
