import { readFile } from 'node:fs/promises';
import { createDisclosure } from '../../src/agent/disclosure/disclosure.ts';
import { DISCLOSURE_TOOL_DESCRIPTORS } from '../../src/agent/disclosure/disclosure-tools.ts';
import { asSpec, definitionTokens } from '../../src/agent/disclosure/loaded-tools.ts';
import { ToolSearch } from '../../src/agent/disclosure/tool-search.ts';
import type { ProviderOffer } from '../../src/agent/provider/port.ts';
import type { AgentSpec } from '../../src/api/v1alpha1/agent.ts';
import { DISCOVER_TOOL } from '../../src/discovery/discover-tool.ts';
import type { JsonObject } from '../../src/lib/json.ts';
import { requestSize } from '../../src/models/charge/request-size.ts';
import type { ModelMessage } from '../../src/models/port.ts';
import type { ToolDescriptor } from '../../src/tools/contract.ts';
import { callOptions } from '../../test/support/call-options.ts';
import { publicData } from '../../test/support/public-data.ts';
import type { BenchRow } from '../row.ts';

const EXPLORERS: readonly ToolDescriptor[] = [DISCOVER_TOOL, ...DISCLOSURE_TOOL_DESCRIPTORS];
const CALLER = { agent: 'a', namespace: 'n', session: 's', rootMessage: 'm', stack: [], origin: 'Agent' } as const;
const PROMPT = 'You test.';
const TEXT = 'Please search the latest reports about the weather and send a summary of them.';
const BODY_TOKENS = 15_000;
/** The registries, and how many tokens the tools of a request have to be below those of all tools. */
const REGISTRIES = [
  { count: 20, least: 0.7 },
  { count: 100, least: 0.9 },
  { count: 1_000, least: 0.98 },
] as const;

interface PublicTool {
  name: string;
  description: string;
  parameters?: JsonObject;
}

/** Tokens of prompt and tools of a request by the number of tools, beside all tools in each request, for real tools of MCP servers. */
export async function benchDisclosure(): Promise<BenchRow[]> {
  const { file, present } = publicData('discovery/livemcp/tools.jsonl');
  if (!present) return [];
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
  const tools = lines.map((line, at) => descriptorOf(JSON.parse(line) as PublicTool, at));
  return Promise.all(REGISTRIES.map(({ count, least }) => rowOf(registry(tools, count), least)));
}

async function rowOf(tools: readonly ToolDescriptor[], least: number): Promise<BenchRow> {
  const inline = requestSize({ system: PROMPT, tools: tools.map(asSpec), messages: [] }).tokens;
  const explore = await tokensOf('Explore', tools, []);
  const semantic = await tokensOf('Semantic', tools, []);
  const items = tools.flatMap(({ name }) => loadOf(name));
  const { tools: offered } = await offerOf('Explore', tools, items);
  const bodies = offered.filter(({ name }) => !EXPLORERS.some((one) => one.name === name));
  const loaded = bodies.reduce((sum, tool) => sum + definitionTokens(tool), 0);
  const share = (tokens: number): string => `${tokens} tokens (${((1 - tokens / inline) * 100).toFixed(1)} % less)`;
  return {
    name: `disclosure: prompt and tools of a request with ${tools.length} tools of MCP servers`,
    figures: {
      'all tools': `${inline} tokens`,
      Explore: share(explore),
      Semantic: share(semantic),
      'all of them loaded': `${loaded} tokens`,
    },
    limit: `Explore and Semantic ≥ ${least * 100} % less; loaded ≤ ${BODY_TOKENS} tokens`,
    met: Math.max(explore, semantic) <= (1 - least) * inline && loaded <= BODY_TOKENS,
  };
}

async function tokensOf(
  mode: 'Explore' | 'Semantic',
  tools: readonly ToolDescriptor[],
  items: ModelMessage[],
): Promise<number> {
  const { prompt, tools: offered, note = '' } = await offerOf(mode, tools, items);
  return requestSize({ system: `${prompt}${note}`, tools: offered.map(asSpec), messages: [] }).tokens;
}

async function offerOf(
  mode: 'Explore' | 'Semantic',
  tools: readonly ToolDescriptor[],
  items: ModelMessage[],
): Promise<ProviderOffer> {
  const offer = await disclosed(mode).offer([...EXPLORERS, ...tools], items, callOptions());
  if (offer === undefined) throw new Error('bench: the agent may not load tools');
  return offer;
}

function disclosed(mode: 'Explore' | 'Semantic') {
  const spec: AgentSpec = {
    trustPolicyRef: { name: 'p' },
    model: { primary: 'a/b' },
    prompt: { system: PROMPT },
    disclosure: { mode, bodyTokens: BODY_TOKENS },
  };
  const deps = { search: new ToolSearch(), contextTokens: () => 10_000_000 };
  const message = { caller: CALLER, text: TEXT, prompt: PROMPT, model: 'a/b', maxOutputTokens: 0 };
  const made = createDisclosure(deps, spec, message);
  if (made === undefined) throw new Error('bench: the agent has no disclosure');
  return made;
}

function loadOf(name: string): ModelMessage[] {
  const call = { id: 'call', name: 'load_tool', arguments: JSON.stringify({ name }) };
  return [
    { role: 'assistant', text: '', toolCalls: [call] },
    { role: 'tool', toolCallId: 'call', name: 'load_tool', text: '{}', isError: false },
  ];
}

/** Evenly spaced tools of the file; a larger registry has each several times, under other names. */
function registry(tools: readonly ToolDescriptor[], count: number): ToolDescriptor[] {
  const step = Math.max(1, Math.floor(tools.length / count));
  return Array.from({ length: count }, (_, at) => tools[(at * step) % tools.length]).flatMap((tool, at) =>
    tool === undefined ? [] : [{ ...tool, name: `${tool.name.slice(0, 48)}_${at}` }],
  );
}

function descriptorOf({ name, description, parameters = {} }: PublicTool, at: number): ToolDescriptor {
  const category = at % 2 === 0 ? 'web' : 'mcp';
  const base = { action: 'comms:external', sideEffects: true, locality: 'Brokered' } as const;
  return { ...base, name, description, inputSchema: parameters, category };
}
