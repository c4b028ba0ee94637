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

/** The times of a request, as its spec has them. */
export interface RequestTimes {
  expiresAt?: string;
  onTimeout?: string;
  escalation?: readonly { at: string; to: readonly string[] }[];
}

/** What a policy says about a request, at one point in time. */
export type TimeoutDecision = 'Pending' | 'Deny' | 'Approve';

/** No request of these risks is ever approved without an approver, whatever the policy says. */
const NEEDS_APPROVER: ReadonlySet<Risk> = new Set(['high', 'critical']);

/** The rules for a call of this risk; without a risk, those for promotions and rises of a level, which no timeout approves. */
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

/** What the policy decides about a request that no approver has decided. */
export function decidedByTimeout(
  { expiresAt, onTimeout }: Pick<RequestTimes, 'expiresAt' | 'onTimeout'>,
  now: Date,
): TimeoutDecision {
  if (expiresAt === undefined || !(Date.parse(expiresAt) <= now.getTime())) return 'Pending';
  return onTimeout === 'Deny' || onTimeout === 'Approve' ? onTimeout : 'Pending';
}

/** The steps of the escalation whose time has come. They are a prefix: a request has its steps in the order of their times. */
export function dueSteps({ escalation = [] }: RequestTimes, now: Date): NonNullable<RequestTimes['escalation']> {
  const pending = escalation.findIndex(({ at }) => !(Date.parse(at) <= now.getTime()));
  return pending < 0 ? escalation : escalation.slice(0, pending);
}

/** Milliseconds until the timeout denies the request, or until its next step; undefined when nothing follows. */
export function msUntilNext(times: RequestTimes, now: Date): number | undefined {
  const { expiresAt, onTimeout, escalation = [] } = times;
  const ends = expiresAt === undefined || onTimeout !== 'Deny' ? [] : [expiresAt];
  const left = [...ends, ...escalation.map(({ at }) => at)].map((at) => Date.parse(at) - now.getTime());
  const next = Math.min(...left.filter((ms) => ms > 0));
  return Number.isFinite(next) ? next : undefined;
}
