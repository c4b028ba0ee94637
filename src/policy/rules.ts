import type { PolicyRequest } from './types.ts';

/** Why a request may not simply go ahead. `rule` names the rule more exactly than the one that asked. */
export interface Violation {
  effect: 'Deny' | 'Escalate';
  /** One sentence: what was decided about what, and what would be allowed. */
  reason: string;
  rule?: string;
}

export interface Note {
  verdict: 'passed' | 'allowed' | 'not-applicable';
  detail: string;
}

/**
 * One step of a decision. `check` answers every request on the way and is kept cheap; `note` is only for people who ask
 * why, and only called when `check` found nothing.
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
