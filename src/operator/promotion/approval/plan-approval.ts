import { printable } from '../../../lib/printable.ts';
import { formatFigures } from '../../../tempering/promotion/promotion-messages.ts';
import type { PromotionRecord } from '../../../tempering/promotion/promotion-record.ts';
import type { ObservedIn } from '../observed.ts';
import { candidate, type ClusterPromotionStep, rejected } from '../steps.ts';

/** As many requests of one agent wait for approvers at once. */
const MAX_PENDING_REQUESTS = 5;
/** Decisions arrive as watch events; this only bounds the time after a lost one. */
const WAIT_MS = 60_000;

const TIMED_OUT = 'the policy denied it, because no approver decided before its timeout (approvals.timeout)';

/** Why the tool itself is gone. Pure. */
export function goneBefore({ restored }: Pick<PromotionRecord, 'restored'>, moment: string): string {
  if (restored === undefined) return `its session was closed before ${moment}`;
  return `ApprovalRequest "${restored.request}", which alone has it, was deleted before ${moment}`;
}

/** What the decision of a user leads to, or the request for one. Pure. */
export function planAwaitingApproval(observed: ObservedIn<'AwaitingApproval'>): ClusterPromotionStep {
  const { record, verdict, hasRequest, timeout, toolExists, pendingOfAgent, policyGaps, rules, now } = observed;
  const { figures, verdicts } = record;
  if (policyGaps.length > 0) return candidate(policyGaps, now);
  if (!toolExists) return candidate([`${goneBefore(record, 'the decision')}; forge it again`], now);
  if (timeout === 'Denied') return rejected(TIMED_OUT, now, rules.coolDownMs, { figures, verdicts });
  if (timeout === 'Due') return { step: 'wait' };
  if (verdict.decision === 'Pending') {
    if (hasRequest) return { step: 'wait', forMs: WAIT_MS };
    return pendingOfAgent < MAX_PENDING_REQUESTS ? { step: 'requestApproval' } : { step: 'wait', forMs: WAIT_MS };
  }
  const by = printable(verdict.approval.by, 120);
  if (verdict.decision === 'Approve') {
    const note = `${formatFigures(figures)} → approved by ${by}`;
    return { step: 'enter', stage: { state: 'Promoted', note, concluded: false, figures, verdicts } };
  }
  const { reason } = verdict.approval;
  const why = reason === undefined ? '' : `: ${printable(reason, 300)}`;
  const verb = verdict.decision === 'Deny' ? 'denied' : 'revoked';
  return rejected(`${by} ${verb} it${why}`, now, rules.coolDownMs, { figures, verdicts });
}
