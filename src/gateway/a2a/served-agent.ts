import type { A2aSettings } from '../../api/v1alpha1/agent/a2a.ts';
import type { PeerIdentity } from '../../identity/types.ts';
import { sha256 } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import type { AgentState } from '../agent-state.ts';
import type { AgentDirectory } from '../deps.ts';

/** An agent that serves this caller. */
export interface ServedAgent {
  readonly state: AgentState;
  readonly settings: A2aSettings;
  /** Stands for the caller in names of sessions and records, which other callers cannot write. */
  readonly caller: string;
  /** The caller for readers: `namespace/account`. */
  readonly callerName: string;
}

/**
 * Throws TEMPER_NOT_FOUND for an agent that does not serve this caller, so that a caller learns nothing about other agents. A child agent
 * is never available, also as a copy of an agent that is.
 */
export function requireServed(
  { namespace, agent: name }: { namespace: string; agent: string },
  peer: PeerIdentity,
  directory: Pick<AgentDirectory, 'agent'>,
): ServedAgent {
  const state = directory.agent(namespace, name);
  const settings = state?.agent.spec.a2a;
  const callerName = `${peer.namespace}/${peer.account}`;
  if (
    state === undefined ||
    settings?.enabled !== true ||
    state.ancestors.length > 0 ||
    !mayCall(settings, peer, namespace)
  )
    throw new TemperError(
      'TEMPER_NOT_FOUND',
      `no agent "${name}" of namespace ${namespace} is available to ServiceAccount ${callerName}; its spec.a2a decides`,
    );
  return { state, settings, caller: digestOfCaller(callerName), callerName };
}

function mayCall({ callers = [] }: A2aSettings, peer: PeerIdentity, ownNamespace: string): boolean {
  return callers.some(
    ({ serviceAccount, namespace = ownNamespace }) => serviceAccount === peer.account && namespace === peer.namespace,
  );
}

function digestOfCaller(callerName: string): string {
  return sha256(`a2a ${callerName}`).slice('sha256:'.length, 'sha256:'.length + 32);
}
