import type { Store } from '../../kube/informer/store.ts';
import type { ApprovalSummary } from '../cluster/demotions.ts';
import type { CallApprovalsDeps } from './call-approvals.ts';

const BY_CALL = 'gateway.call';

/** Finds the cached Approvals of a call. Adds an index to the store. */
export function indexCallApprovals(approvals: Store<ApprovalSummary>): CallApprovalsDeps['approvals'] {
  approvals.addIndex(BY_CALL, ({ metadata: { namespace }, record: { subject } }) =>
    subject.call === undefined ? [] : [keyOf(namespace, subject.call.agentUid, subject.call.callId)],
  );
  return (namespace, agentUid, callId) => approvals.byIndex(BY_CALL, keyOf(namespace, agentUid, callId));
}

function keyOf(namespace: string | undefined, agentUid: string, callId: string): string {
  return `${namespace ?? ''}/${agentUid}/${callId}`;
}
