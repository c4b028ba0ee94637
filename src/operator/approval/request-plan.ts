import type { ApprovalRequestStatus } from '../../api/v1alpha1/approvalrequest.ts';
import type { Verdict } from '../../approvals/verdict.ts';
import type { ConditionUpdate } from '../conditions.ts';
import { byline } from '../tool/plan.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import type { StoredRequest } from './stored-decision.ts';
import { isOverdue, isTimedOut, POLICY_ACTOR, SYSTEM_ACTOR, timedOut } from './timed-out.ts';

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
  /** Of the policy of its agent: as long as a request that timed out keeps the next one from following. */
  readonly coolDownMs: number;
}

export type RequestStep =
  | { readonly step: 'wait'; readonly condition: ConditionUpdate<'Decided'> }
  | {
      readonly step: 'decide';
      readonly decision: NonNullable<ApprovalRequestStatus['decision']>;
      readonly by?: string;
      /** Of the audit record. */
      readonly actor: string;
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
  const { request, verdict } = observed;
  if (request.status?.decision !== undefined) return afterDecision(observed);
  if (verdict.decision === 'Revoke') return decided('Revoke', 'Revoked', verdict.approval);
  if (verdict.decision === 'Deny') return decided('Deny', 'Denied', verdict.approval);
  // The promotion to tier Agent itself follows the approval; its tool is no object.
  if (request.spec.subject.promotion?.tier === 'Agent') return pendingOrApproved(observed);
  const obsolete = whyObsolete(observed);
  if (obsolete !== undefined) return expired(obsolete);
  const step = pendingOrApproved(observed);
  const { source, shared } = observed;
  const isApproved = step.step === 'decide' && step.decision === 'Approve';
  return isApproved && shared === undefined && source !== undefined ? { ...step, share: source } : step;
}

/** Why nothing is left to decide about tier Shared. */
function whyObsolete({ request, source, shared, olderTwin }: ObservedRequest): string | undefined {
  if (olderTwin !== undefined) return `ApprovalRequest "${olderTwin}" asks the same; decide that one`;
  if (shared !== undefined && shared.facts.requestNonce !== request.spec.nonce)
    return `EmergentTool "${shared.metadata.name}" has the digest and another nonce; approve that one, or delete it`;
  if (source !== undefined || shared !== undefined) return undefined;
  const digest = request.spec.subject.promotion?.digest ?? '';
  return `no tool with digest ${digest} is in service at tier Agent any more`;
}

/** A request that timed out stays for the cool-down, which no Approval records. */
function afterDecision({ request, now, coolDownMs }: ObservedRequest): RequestStep {
  const since = request.status?.conditions?.find(({ type }) => type === 'Decided')?.lastTransitionTime;
  const keptMs = isTimedOut(request) ? Math.max(KEEP_MS, coolDownMs) : KEEP_MS;
  const leftMs = since === undefined ? 0 : Date.parse(since) + keptMs - now.getTime();
  return leftMs > 0 ? { step: 'keep', forMs: Math.min(leftMs, KEEP_MS) } : { step: 'remove' };
}

function pendingOrApproved({ request, verdict, now }: ObservedRequest): RequestStep {
  if (verdict.decision !== 'Pending') return decided('Approve', 'Approved', verdict.approval);
  if (isOverdue(request, now)) {
    const condition = timedOut(request.spec, 'the next request follows after the cool-down of the policy');
    return { step: 'decide', decision: 'Expired', by: POLICY_ACTOR, actor: POLICY_ACTOR, condition };
  }
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
  const { by } = approval;
  const condition = { type: 'Decided', status: 'True', reason, message } as const;
  return { step: 'decide', decision, by, actor: `user/${by}`, condition };
}

function expired(message: string): RequestStep {
  return {
    step: 'decide',
    decision: 'Expired',
    actor: SYSTEM_ACTOR,
    condition: { type: 'Decided', status: 'True', reason: 'Expired', message },
  };
}
