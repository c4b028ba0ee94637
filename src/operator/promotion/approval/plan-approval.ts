import { printable } from '../../../lib/printable.ts';
import { formatFigures } from '../../../tempering/promotion/promotion-messages.ts';
import type { ObservedIn } from '../observed.ts';
import { candidate, type ClusterPromotionStep, rejected } from '../steps.ts';

/** As many requests of one agent wait for approvers at once. */
const MAX_PENDING_REQUESTS = 5;
/** Decisions arrive as watch events; this only bounds the time after a lost one. */
const WAIT_MS = 60_000;

/** What the decision of a user leads to, or the request for one. Pure. */
export function planAwaitingApproval(observed: ObservedIn<'AwaitingApproval'>): ClusterPromotionStep {
  const { record, verdict, hasRequest, toolExists, pendingOfAgent, policyGaps, rules, now } = observed;
  const { figures, verdicts } = record;
  if (policyGaps.length > 0) return candidate(policyGaps, now);
  if (!toolExists) return candidate(['its session was closed before the decision; forge it again'], now);
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
