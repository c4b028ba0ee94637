import type { KnownAgents } from '../../gateway-api/children/child-schemas.ts';
import type { AgentState } from '../agent-state.ts';
import type { AgentDirectory } from '../deps.ts';
import { isChildOf } from './family.ts';

const MAX_AGENTS = 100;
const MAX_DESCRIPTION = 300;

type Known = KnownAgents['agents'][number];

/** The agents of the namespace that the agent may message, end or copy, its children first. */
export function knownAgents(state: AgentState, directory: Pick<AgentDirectory, 'agents' | 'decider'>): KnownAgents {
  const decider = directory.decider(state, false);
  const known = directory.agents(state.agent.metadata.namespace ?? '').flatMap((agent): Known[] => {
    if (agent.uid === state.uid) return [];
    const { name } = agent.agent.metadata;
    const child = isChildOf(agent, state);
    const may = (request: Parameters<typeof decider.decide>[0]): boolean => decider.decide(request).effect === 'Allow';
    const isPeer = may({ kind: 'Message', agent: name, child });
    const isTemplate = agent.agent.spec.children?.template === true && may({ kind: 'Spawn', template: name });
    if (!child && !isPeer && !isTemplate) return [];
    const description = agent.agent.spec.description?.slice(0, MAX_DESCRIPTION).toWellFormed();
    const relation = child ? 'Child' : isPeer ? 'Peer' : 'Template';
    return [{ name, ...(description === undefined ? {} : { description }), relation, suspended: agent.suspended }];
  });
  known.sort((a, b) => Number(b.relation === 'Child') - Number(a.relation === 'Child') || (a.name < b.name ? -1 : 1));
  return { agents: known.slice(0, MAX_AGENTS), complete: known.length <= MAX_AGENTS };
}
