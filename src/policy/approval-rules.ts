import { parseDuration } from '../api/quantities.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { Risk } from './types.ts';

/** How long a request stays pending, and what happens then. */
export interface ApprovalRules {
  /** Absent: the request does not expire. */
  timeoutMs?: number;
  onTimeout: 'Wait' | 'Deny' | 'Approve';
  /** Who else is asked while the request stays pending, by time. */
  escalation: readonly { afterMs: number; to: readonly string[] }[];
}

/** What a policy says about a request, at one point in time. */
export type TimeoutDecision = 'Pending' | 'Deny' | 'Approve';

/** No request of these risks is ever approved without an approver, whatever the policy says. */
const NEEDS_APPROVER: ReadonlySet<Risk> = new Set(['high', 'critical']);

/** The rules for a call of this risk; without a risk, those for promotions. */
export function approvalRules(approvals: TrustPolicySpec['approvals'], risk?: Risk): ApprovalRules {
  const { timeout, onTimeout = 'Wait', byRisk = [], escalation = [] } = approvals ?? {};
  const own = byRisk.find((one) => one.risk === risk);
  const limit = own?.timeout ?? timeout;
  return {
    ...(limit === undefined ? {} : { timeoutMs: parseDuration(limit) }),
    onTimeout: permittedOutcome(own?.onTimeout ?? onTimeout, risk),
    escalation: escalation
      .map(({ after, to }) => ({ afterMs: parseDuration(after), to }))
      .sort((one, other) => one.afterMs - other.afterMs),
  };
}

function permittedOutcome(onTimeout: ApprovalRules['onTimeout'], risk: Risk | undefined): ApprovalRules['onTimeout'] {
  const needsApprover = risk === undefined || NEEDS_APPROVER.has(risk);
  return onTimeout === 'Approve' && needsApprover ? 'Wait' : onTimeout;
}

/** The members of an ApprovalRequest that tell an approver what happens when. Empty where the policy has no such rules. */
export function requestTimes({ timeoutMs, onTimeout, escalation }: ApprovalRules, created: Date) {
  const at = (afterMs: number): string => new Date(created.getTime() + afterMs).toISOString();
  return {
    ...(timeoutMs === undefined ? {} : { expiresAt: at(timeoutMs), onTimeout }),
    ...(escalation.length === 0
      ? {}
      : { escalation: escalation.map(({ afterMs, to }) => ({ at: at(afterMs), to: [...to] })) }),
  };
}

/** What the policy decides about a request that no approver has decided. `times`: as the request has them. */
export function decidedByTimeout(times: { expiresAt?: string; onTimeout?: string }, now: Date): TimeoutDecision {
  const { expiresAt, onTimeout } = times;
  if (expiresAt === undefined || !(Date.parse(expiresAt) <= now.getTime())) return 'Pending';
  return onTimeout === 'Deny' || onTimeout === 'Approve' ? onTimeout : 'Pending';
}
