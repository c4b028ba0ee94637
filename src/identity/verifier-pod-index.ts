import type { Store } from '../kube/informer/store.ts';
import type { AgentPod } from './agent-pod.ts';

const BY_UID = 'identity.verifier';

/** The verifier pods of the release's namespace, from an informer cache. */
export class VerifierPodIndex {
  readonly #pods: Store<AgentPod>;

  /** Adds an index to the store. */
  constructor(pods: Store<AgentPod>) {
    this.#pods = pods;
    pods.addIndex(BY_UID, ({ metadata }) => (metadata.uid === undefined ? [] : [metadata.uid]));
  }

  pod(podUid: string): AgentPod | undefined {
    return this.#pods.byIndex(BY_UID, podUid)[0];
  }
}
