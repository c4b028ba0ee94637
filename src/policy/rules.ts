import type { PolicyRequest } from './types.ts';

/** Why a rule does not allow a request. `rule`, when set, replaces the id of the rule that returned the violation. */
export interface Violation {
  effect: 'Deny' | 'Escalate';
  /** One sentence: the subject, the reason, and what would be allowed. */
  reason: string;
  rule?: string;
}

export interface Note {
  verdict: 'passed' | 'allowed' | 'not-applicable';
  detail: string;
}

/**
 * One step of a decision. `check` runs for every request and must be cheap. `note` explains a passed rule; it is called only for
 * `explain`, and only when `check` returned no violation.
 */
export interface Rule<R> {
  id: string;
  check(request: R): Violation | undefined;
  note(request: R): Note;
}

export type RequestOf<K extends PolicyRequest['kind']> = Extract<PolicyRequest, { kind: K }>;

export function deny(reason: string, rule?: string): Violation {
  return rule === undefined ? { effect: 'Deny', reason } : { effect: 'Deny', reason, rule };
}

export function escalate(reason: string): Violation {
  return { effect: 'Escalate', reason };
}

export function passed(detail: string): Note {
  return { verdict: 'passed', detail };
}

export function allowed(detail: string): Note {
  return { verdict: 'allowed', detail };
}

export function notApplicable(detail: string): Note {
  return { verdict: 'not-applicable', detail };
}
