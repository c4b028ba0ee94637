import type { RecordStore } from '../lib/record-store.ts';
import type { ApprovalDecision } from '../tools/approvals.ts';
import { approvalObject, decisionIn, statusOf, withStatus } from './approval-objects.ts';
import type { UserDecision } from './decision-files.ts';

export const REQUESTS = 'approvalrequests';
export const APPROVALS = 'approvals';

/** Records a decision about a request, and returns the one that counts: the first is final. Undefined for a request that is gone or expired. */
export async function storeDecision(
  records: RecordStore,
  decision: UserDecision,
): Promise<ApprovalDecision | undefined> {
  const { target } = decision;
  const request = await records.get(REQUESTS, target);
  if (request === undefined || statusOf(request) === 'Expired') return undefined;
  const recorded = decisionIn(await records.get(APPROVALS, target));
  if (recorded !== undefined) return recorded;
  await records.put(APPROVALS, target, approvalObject(decision, request));
  await records.put(REQUESTS, target, withStatus(request, target, { decision: decision.verb, decidedBy: decision.by }));
  return { decision: decision.verb === 'Approve' ? 'Approve' : 'Deny', by: decision.by, reason: decision.reason };
}

/** Records that the policy denied a request about a promotion or a rise after its timeout. No effect on a decided one. */
export async function timeOutRequest(records: RecordStore, name: string, by: string): Promise<void> {
  const request = await records.get(REQUESTS, name);
  if (request === undefined || statusOf(request) !== '') return;
  await records.put(REQUESTS, name, withStatus(request, name, { decision: 'Expired', decidedBy: by }));
}
