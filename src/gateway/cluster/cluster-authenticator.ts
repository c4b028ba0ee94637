import { createAuthenticator } from '../../identity/authenticator.ts';
import { ClusterKeys, readPublishedKeys } from '../../identity/cluster-keys.ts';
import { TokenVerifier } from '../../identity/token-verifier.ts';
import type { Authenticator } from '../../identity/types.ts';
import type { VerifierPodIndex } from '../../identity/verifier-pod-index.ts';
import type { Transport } from '../../kube/client/transport.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../telemetry/log.ts';
import { MinuteCounts } from '../http/limits/minute-counts.ts';
import type { WatchedAgentDirectory } from './agent-directory.ts';

interface ClusterAuthenticatorDeps {
  transport: Transport;
  directory: Pick<WatchedAgentDirectory, 'bindings'>;
  verifiers: VerifierPodIndex;
  releaseNamespace: string | undefined;
  clock: Clock;
  log: Logger;
}

/** Authenticates callers by the keys that the cluster publishes, and by its pods and Agents. */
export function clusterAuthenticator({
  transport,
  directory,
  verifiers,
  releaseNamespace,
  clock,
  log,
}: ClusterAuthenticatorDeps): Authenticator {
  const read = (signal: AbortSignal) => readPublishedKeys(transport, signal);
  // Limits the log: a pod that causes the error can call as often as it likes.
  const conflicts = new MinuteCounts(clock);
  return createAuthenticator({
    verifier: new TokenVerifier(new ClusterKeys({ read, clock, log }), clock),
    bindings: directory.bindings,
    verifiers,
    releaseNamespace,
    onBindingConflict: (podUid, agents) => {
      const names = agents.map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`);
      if (conflicts.add(podUid) > 1) return;
      log.error({ podUid, agents: names }, 'a pod and its agent are not bound one to one; the pod is not served');
    },
  });
}
