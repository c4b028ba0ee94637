import { dottedPath, type Finding, type ValidPart } from '../findings.ts';
import { parseDuration } from '../quantities.ts';
import type { TrustPolicySpec } from '../v1alpha1/trustpolicy.ts';
import { checkMeasures, itemsOf } from './shared.ts';

type Spec = ValidPart<TrustPolicySpec>;

const BY_RISK = ['spec', 'approvals', 'byRisk'];
const ESCALATION = ['spec', 'approvals', 'escalation'];

/** Cross-field rules of `spec.approvals`. */
export const APPROVAL_SETTINGS_CHECKS: readonly ((spec: Spec) => Finding[])[] = [
  durationsArePositive,
  risksAreUnique,
  highRisksNeedAnApprover,
  approvalByTimeoutHasATime,
];

function durationsArePositive({ approvals }: Spec): Finding[] {
  const some = { parse: parseDuration, minimum: 1, allowed: 'a duration longer than 0' };
  return checkMeasures([
    { path: ['spec', 'approvals', 'timeout'], value: approvals?.timeout, ...some },
    ...[...itemsOf(approvals?.byRisk, BY_RISK)].map(([{ timeout }, path]) => ({
      path: [...path, 'timeout'],
      value: timeout,
      ...some,
    })),
    ...[...itemsOf(approvals?.escalation, ESCALATION)].map(([{ after }, path]) => ({
      path: [...path, 'after'],
      value: after,
      ...some,
    })),
  ]);
}

function risksAreUnique({ approvals }: Spec): Finding[] {
  const seen = new Set<string>();
  return [...itemsOf(approvals?.byRisk, BY_RISK)].flatMap(([{ risk }, path]): Finding[] => {
    if (risk === undefined || !seen.has(risk)) {
      if (risk !== undefined) seen.add(risk);
      return [];
    }
    const message = `${dottedPath(path)} has settings for risk ${risk} again`;
    return [{ path: [...path, 'risk'], rule: 'unique', message, fix: 'keep one entry for each risk' }];
  });
}

function highRisksNeedAnApprover({ approvals }: Spec): Finding[] {
  return [...itemsOf(approvals?.byRisk, BY_RISK)].flatMap(([{ risk, onTimeout }, path]): Finding[] => {
    if (onTimeout !== 'Approve' || (risk !== 'high' && risk !== 'critical')) return [];
    const message = `${dottedPath(path)} would approve calls of ${risk} risk without an approver`;
    return [{ path: [...path, 'onTimeout'], rule: 'high-risk-needs-approver', message, fix: 'set it to Wait or Deny' }];
  });
}

function approvalByTimeoutHasATime({ approvals }: Spec): Finding[] {
  return [...itemsOf(approvals?.byRisk, BY_RISK)].flatMap(([{ onTimeout, timeout }, path]): Finding[] => {
    if (onTimeout !== 'Approve' || timeout !== undefined || approvals?.timeout !== undefined) return [];
    const message = `${dottedPath(path)} has no timeout after which it approves`;
    return [{ path: [...path, 'onTimeout'], rule: 'approve-needs-timeout', message, fix: 'add timeout' }];
  });
}
