import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, type TemperError } from '../../lib/errors.ts';
import type { Decider, Decision, ExplainedDecision, PolicyRequest, RuleTrace } from '../../policy/types.ts';

/** The rule of a refusal that no rule of the policy made. */
const RULES: Partial<Record<ErrorCode, string>> = {
  TEMPER_CONNECTION_DENIED: 'connection',
  TEMPER_FETCH_DENIED: 'public-host',
  TEMPER_FILE_DENIED: 'workspace',
  TEMPER_MANIFEST_INVALID: 'tool-settings',
  TEMPER_QUOTA_EXCEEDED: 'quota',
  TEMPER_TOOL_INPUT_INVALID: 'input-schema',
  TEMPER_TOOL_NOT_FOUND: 'available',
};

/** The rule that an error of a refused call names: a rule of the policy, or the check that failed. */
export function ruleOfRefusal(code: ErrorCode, rule?: string): string {
  return rule ?? RULES[code] ?? 'tool';
}

/** What the checks of a call decide, in their order. */
export class Steps {
  readonly #decider: Decider;
  readonly #trace: RuleTrace[] = [];

  constructor(decider: Decider) {
    this.#decider = decider;
  }

  /** Decides, and keeps every evaluated rule. */
  decide(request: PolicyRequest, decider = this.#decider): Decision {
    const { trace, ...decision } = decider.explain(request);
    this.#trace.push(...trace);
    return decision;
  }

  note(rule: string, verdict: RuleTrace['verdict'], detail: string): void {
    this.#trace.push({ rule, verdict, detail });
  }

  /** The decision about a call that no check refuses. */
  permitted(decision: Decision): ExplainedDecision {
    return { ...decision, trace: this.#trace };
  }

  refused(error: TemperError, { risk }: Pick<Decision, 'risk'>): ExplainedDecision {
    const { rule: own } = error.details;
    const rule = ruleOfRefusal(error.code, typeof own === 'string' ? own : undefined);
    const last = this.#trace.at(-1);
    if (last?.rule !== rule || last.verdict === 'passed') this.note(rule, 'denied', error.message);
    return { effect: 'Deny', rule, reason: error.message, risk, trace: this.#trace };
  }
}

/** The error of the check; undefined when it passes. Throws every error that is no TemperError, and TEMPER_USAGE: no answer would be true. */
export function refusalOf(check: () => unknown): TemperError | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (isTemperError(error) && error.code !== 'TEMPER_USAGE') return error;
    throw error;
  }
}
