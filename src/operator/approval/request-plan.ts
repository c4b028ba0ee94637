import type { ApprovalRequestStatus } from '../../api/v1alpha1/approvalrequest.ts';
import type { Verdict } from '../../approvals/verdict.ts';
import type { ConditionUpdate } from '../conditions.ts';
import { byline } from '../tool/plan.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import type { StoredRequest } from './stored-decision.ts';

/** Everything that decides about a request for the promotion of a tool. */
export interface ObservedRequest {
  readonly request: StoredRequest;
  readonly now: Date;
  readonly verdict: Verdict;
  /** Tier Shared: the object of tier Agent with the digest that is in service, or is only replaced by its Shared object. */
  readonly source: StoredTool | undefined;
  /** The Shared object with the digest. */
  readonly shared: StoredTool | undefined;
  /** An older undecided request with the same subject. */
  readonly olderTwin: string | undefined;
}

export type RequestStep =
  | { readonly step: 'wait'; readonly condition: ConditionUpdate<'Decided'> }
  | {
      readonly step: 'decide';
      readonly decision: NonNullable<ApprovalRequestStatus['decision']>;
      readonly by?: string;
      readonly condition: ConditionUpdate<'Decided'>;
      /** The tool from which the Shared object is made first. */
      readonly share?: StoredTool;
    }
  | { readonly step: 'keep'; readonly forMs: number }
  | { readonly step: 'remove' };

/** How long a decided request stays, so that users can read the decision. */
const KEEP_MS = 24 * 3_600_000;

/** Decides the next step of a request. Each decision is final. Pure. */
export function planRequest(observed: ObservedRequest): RequestStep {
  const { request, verdict, source, shared, olderTwin, now } = observed;
  if (request.status?.decision !== undefined) return afterDecision(request, now);
  if (verdict.decision === 'Revoke') return decided('Revoke', 'Revoked', verdict.approval);
  if (verdict.decision === 'Deny') return decided('Deny', 'Denied', verdict.approval);
  const { tier, digest } = request.spec.subject.promotion ?? { tier: 'Agent', digest: '' };
  // The promotion to tier Agent itself follows the approval; its tool is no object.
  if (tier === 'Agent') return pendingOrApproved(verdict);
  if (olderTwin !== undefined) return expired(`ApprovalRequest "${olderTwin}" asks the same; decide that one`);
  if (shared !== undefined && shared.facts.requestNonce !== request.spec.nonce)
    return expired(
      `EmergentTool "${shared.metadata.name}" has the digest and another nonce; approve that one, or delete it`,
    );
  if (source === undefined && shared === undefined)
    return expired(`no tool with digest ${digest} is in service at tier Agent any more`);
  const step = pendingOrApproved(verdict);
  return step.step === 'decide' && shared === undefined && source !== undefined ? { ...step, share: source } : step;
}

function afterDecision({ status }: StoredRequest, now: Date): RequestStep {
  const since = status?.conditions?.find(({ type }) => type === 'Decided')?.lastTransitionTime;
  const leftMs = since === undefined ? 0 : Date.parse(since) + KEEP_MS - now.getTime();
  return leftMs > 0 ? { step: 'keep', forMs: leftMs } : { step: 'remove' };
}

function pendingOrApproved(verdict: Verdict): RequestStep {
  if (verdict.decision !== 'Pending') return decided('Approve', 'Approved', verdict.approval);
  const [ignored] = verdict.ignored;
  const message =
    ignored === undefined
      ? 'waits for an approver'
      : `waits for an approver; Approval "${ignored.approval.name}" does not count, see its condition Effective`;
  return { step: 'wait', condition: { type: 'Decided', status: 'False', reason: 'AwaitingApproval', message } };
}

function decided(
  decision: 'Approve' | 'Deny' | 'Revoke',
  reason: 'Approved' | 'Denied' | 'Revoked',
  approval: Parameters<typeof byline>[0],
): RequestStep & { step: 'decide' } {
  const message = byline(approval, reason.toLowerCase());
  return { step: 'decide', decision, by: approval.by, condition: { type: 'Decided', status: 'True', reason, message } };
}

function expired(message: string): RequestStep {
  return {
    step: 'decide',
    decision: 'Expired',
    condition: { type: 'Decided', status: 'True', reason: 'Expired', message },
  };
}
