import type { PolicyRequest } from '../types.ts';

/** Why a rule does not allow a request. `rule`, when set, replaces the id of the rule that returned the violation. */
export interface RuleViolation {
  effect: 'Deny' | 'Escalate';
  /** One sentence: the subject, the reason, and what would be allowed. */
  reason: string;
  rule?: string;
}

export interface RuleNote {
  verdict: 'passed' | 'allowed' | 'not-applicable';
  detail: string;
}

/**
 * One step of a decision. `check` runs for every request and must be cheap. `note` explains a passed rule; it is called only for
 * `explain`, and only when `check` returned no violation.
 */
export interface Rule<R> {
  id: string;
  check(request: R): RuleViolation | undefined;
  explain(request: R): RuleNote;
}

export type RequestOf<K extends PolicyRequest['kind']> = Extract<PolicyRequest, { kind: K }>;

export function deny(reason: string, rule?: string): RuleViolation {
  return rule === undefined ? { effect: 'Deny', reason } : { effect: 'Deny', reason, rule };
}

export function escalate(reason: string): RuleViolation {
  return { effect: 'Escalate', reason };
}

export function passed(detail: string): RuleNote {
  return { verdict: 'passed', detail };
}

export function allowed(detail: string): RuleNote {
  return { verdict: 'allowed', detail };
}

export function notApplicable(detail: string): RuleNote {
  return { verdict: 'not-applicable', detail };
}
