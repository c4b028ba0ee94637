import type { KnownAgents } from '../../gateway-api/children/child-schemas.ts';
import { listAgents, type OtherAgent } from '../../policy/children/known-agents.ts';
import type { AgentState } from '../agent-state.ts';
import type { AgentDirectory } from '../deps.ts';
import { isChildOf } from './family.ts';

/** The agents of the namespace that the agent may message, end or copy, its children first. */
export function knownAgents(state: AgentState, directory: Pick<AgentDirectory, 'agents' | 'decider'>): KnownAgents {
  const others = directory.agents(state.agent.metadata.namespace ?? '').flatMap((other): OtherAgent[] => {
    if (other.uid === state.uid) return [];
    const { metadata, spec } = other.agent;
    const { description, children } = spec;
    const template = children?.template === true;
    return [{ name: metadata.name, description, child: isChildOf(other, state), template, suspended: other.suspended }];
  });
  return listAgents(others, directory.decider(state, false));
}
