import { type ListedCaller, type PeerPath, requireListed } from '../../a2a/callers.ts';
import type { PeerIdentity } from '../../identity/types.ts';
import { TemperError } from '../../lib/errors.ts';
import type { AgentState } from '../agent-state.ts';
import type { AgentDirectory } from '../deps.ts';

/** An agent that serves this caller. */
export interface ServedAgent extends ListedCaller {
  readonly state: AgentState;
}

/** Throws TEMPER_NOT_FOUND. */
export function requireServed(
  path: PeerPath,
  peer: PeerIdentity,
  directory: Pick<AgentDirectory, 'agent'>,
): ServedAgent {
  const state = directory.agent(path.namespace, path.agent);
  const agent = state && { spec: state.agent.spec, isChild: state.ancestors.length > 0 };
  const caller = requireListed(path, agent, peer);
  if (state === undefined) throw new TemperError('TEMPER_INTERNAL', 'an unknown agent has callers');
  return { state, ...caller };
}
