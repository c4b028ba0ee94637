import { API_VERSION } from '../../api/names.ts';
import { ApiError } from '../../kube/client.ts';
import type { ControllerOptions } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import { type Cache, partsOf } from '../cache.ts';
import type { StoredAgent } from '../kube-types.ts';

type Reconcile = ControllerOptions['reconcile'];

export interface UnservedDeps {
  readonly agents: Cache<StoredAgent>;
  readonly events: Pick<EventRecorder, 'record'>;
  /** Namespace of this release. */
  readonly namespace: string;
}

const REFUSED = /ValidatingAdmissionPolicy 'temper-/;
/** Changed guards are heard of at once; this is for those that come into force a moment later. */
const RETRY = 30_000;

/**
 * A guard that refuses a write of this operator serves the operators of other releases. Statuses are refused too, so Events and the log
 * are all that can tell it.
 */
export function toldWhenUnserved(deps: UnservedDeps, reconcile: Reconcile): Reconcile {
  const why = `the admission policies of the cluster do not serve the operator in namespace ${deps.namespace}, so it may write nothing here; list ${deps.namespace} in guards.operatorNamespaces of the release that installed them`;
  return async (key, context) => {
    try {
      return await reconcile(key, context);
    } catch (error) {
      if (!isRefusedByGuard(error)) throw error;
      context.log.warn({ refused: error.message }, why);
      const { namespace, name } = partsOf(key);
      const agent = deps.agents.get(namespace, name);
      if (agent !== undefined) {
        const metadata = { name, namespace, uid: agent.metadata.uid };
        const subject = { apiVersion: API_VERSION, kind: 'Agent', metadata };
        deps.events.record(subject, { type: 'Warning', reason: 'GuardMissing', message: why });
      }
      return { kind: 'again', after: RETRY };
    }
  };
}

function isRefusedByGuard(error: unknown): error is ApiError {
  return error instanceof ApiError && (error.status === 403 || error.status === 422) && REFUSED.test(error.message);
}
