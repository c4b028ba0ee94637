import { API_VERSION } from '../../api/names.ts';
import { ApiError } from '../../kube/client/kube-client.ts';
import type { ControllerOptions } from '../../kube/controller/controller.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import { type Cache, parseKey } from '../kube/cache.ts';
import type { StoredAgent } from '../kube/types.ts';

type Reconcile = ControllerOptions['reconcile'];

export interface ForeignPolicyDeps {
  readonly agents: Cache<StoredAgent>;
  readonly events: Pick<EventRecorder, 'record'>;
  /** Namespace of this release. */
  readonly namespace: string;
}

const TEMPER_POLICY_ERROR = /ValidatingAdmissionPolicy 'temper-/;
/** A changed policy requeues at once through its watch; this retry covers the delay until the policy is enforced. */
const RETRY_MS = 30_000;

/**
 * Wraps a reconciler and warns when an admission policy rejects the writes of this operator: the policy of another release does not list
 * this release. Status writes are rejected too, so only Events and the log can report it.
 */
export function withForeignPolicyWarning(deps: ForeignPolicyDeps, reconcile: Reconcile): Reconcile {
  const message = `the admission policies of the cluster do not allow the operator of namespace ${deps.namespace} to write here; list ${deps.namespace} in admissionPolicies.operatorNamespaces of the release that installed them`;
  return async (key, context) => {
    try {
      return await reconcile(key, context);
    } catch (error) {
      if (!isRejectedByPolicy(error)) throw error;
      context.log.warn({ refused: error.message }, message);
      const { namespace, name } = parseKey(key);
      const agent = deps.agents.get(namespace, name);
      if (agent !== undefined) {
        const metadata = { name, namespace, uid: agent.metadata.uid };
        const subject = { apiVersion: API_VERSION, kind: 'Agent', metadata };
        deps.events.record(subject, { type: 'Warning', reason: 'AdmissionPolicyMissing', message });
      }
      return { kind: 'requeueAfter', afterMs: RETRY_MS };
    }
  };
}

function isRejectedByPolicy(error: unknown): error is ApiError {
  return (
    error instanceof ApiError &&
    (error.status === 403 || error.status === 422) &&
    TEMPER_POLICY_ERROR.test(error.message)
  );
}
