import type { DisclosureDeps } from '../agent/disclosure/disclosure.ts';
import { disclosureTools } from '../agent/disclosure/disclosure-tools.ts';
import { disclosureSettings, skillBudget } from '../agent/disclosure/settings.ts';
import { type RankByMeaning, ToolSearch } from '../agent/disclosure/tool-search.ts';
import { loopLimits } from '../agent/loop/limits.ts';
import { withSkillTools } from '../agent/skills/skill-tools.ts';
import { searchCaller } from '../discovery/session-discovery.ts';
import type { Tool } from '../tools/contract.ts';
import { codeModeTools, listedTools } from './code-mode.ts';
import type { DescribedTools, EngineContext } from './engine-context.ts';

/** What depends on how the model gets to know the tools of the agent. */
export interface ExploringParts {
  /** The tools with which the model, or its code, explores the others. */
  tools: Tool[];
  /** Undefined for an agent whose model always gets all tools. */
  disclosure: DisclosureDeps | undefined;
}

export function exploringParts(context: EngineContext, described: DescribedTools): ExploringParts {
  const { tools, disclosure } = toolParts(context, described);
  return { tools: withSkills(tools, context, described), disclosure };
}

function withSkills(tools: Tool[], context: EngineContext, described: DescribedTools): Tool[] {
  const { agent, ports, taint } = context;
  if (ports.skills === undefined) return tools;
  return withSkillTools(tools, {
    skills: ports.skills,
    bodyTokens: skillBudget(agent.spec).bodyTokens,
    outputCharacters: loopLimits(agent.spec).outputCharacters,
    visible: listedTools(context, described),
    onUntrusted: ({ session }) => taint.mark(session, 'Skill'),
  });
}

function toolParts(context: EngineContext, described: DescribedTools): ExploringParts {
  const { agent, decider, ports } = context;
  const settings = disclosureSettings(agent.spec);
  if (settings === undefined) return { tools: codeModeTools(context, described), disclosure: undefined };
  const search = new ToolSearch();
  const tools = disclosureTools({
    settings,
    search,
    visible: listedTools(context, described),
    decide: (caller, request) => decider(caller).decide(request),
  });
  const { contextTokens } = ports.models;
  return { tools, disclosure: { search, rankByMeaning: ports.rankByMeaning ?? rankByMeaning(ports), contextTokens } };
}

/** Undefined without an embedder. */
function rankByMeaning({ hybridSearch: hybrid }: EngineContext['ports']): RankByMeaning | undefined {
  if (hybrid === undefined) return undefined;
  return async (query, scope, caller, op) => {
    const ranked = await hybrid.search.search(query, scope, searchCaller(caller, hybrid.embed), op);
    return ranked.map(({ entry: { id }, relevance }) => ({ id, relevance }));
  };
}
