import type { A2aSettings } from '../api/v1alpha1/agent/a2a.ts';
import type { Agent } from '../api/v1alpha1/agent.ts';
import { sha256 } from '../lib/canonical.ts';
import { TemperError } from '../lib/errors.ts';

/** A ServiceAccount. */
export interface PeerAccount {
  readonly namespace: string;
  readonly account: string;
}

/** The agent that a request names. */
export interface PeerPath {
  readonly namespace: string;
  readonly agent: string;
}

/** A caller that an agent lists. */
export interface ListedCaller {
  /** Stands for the caller in names of sessions and records, which other callers cannot write. */
  readonly caller: string;
  /** The caller for readers: `namespace/account`. */
  readonly callerName: string;
}

/**
 * Throws TEMPER_NOT_FOUND for an agent that does not serve this caller, so that a caller learns nothing about other agents. A child agent
 * is never available, also as a copy of an agent that is.
 */
export function requireListed(
  { namespace, agent: name }: PeerPath,
  agent: { spec: Agent['spec']; isChild: boolean } | undefined,
  peer: PeerAccount,
): ListedCaller {
  const settings = agent?.spec.a2a;
  const callerName = `${peer.namespace}/${peer.account}`;
  if (settings?.enabled === true && agent?.isChild === false && mayCall(settings, peer, namespace))
    return { caller: digestOfCaller(callerName), callerName };
  throw new TemperError(
    'TEMPER_NOT_FOUND',
    `no agent "${name}" of namespace ${namespace} is available to ServiceAccount ${callerName}; its spec.a2a decides`,
  );
}

function mayCall({ callers = [] }: A2aSettings, peer: PeerAccount, ownNamespace: string): boolean {
  return callers.some(
    ({ serviceAccount, namespace = ownNamespace }) => serviceAccount === peer.account && namespace === peer.namespace,
  );
}

function digestOfCaller(callerName: string): string {
  return sha256(`a2a ${callerName}`).slice('sha256:'.length, 'sha256:'.length + 32);
}
