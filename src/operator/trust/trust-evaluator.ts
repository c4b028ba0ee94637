import { messageOf } from '../../lib/errors.ts';
import type { TrustEvaluation } from '../../policy/trust/evaluate.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { TrustRequest } from '../../policy/trust/evaluate.ts';
import type { ObservedAgent } from '../agent/observed.ts';
import type { TrustEvidence } from '../ports.ts';
import { evaluateAgent } from './evaluate-agent.ts';
import { raiseRequestName } from './raise-request.ts';
import { RaiseApprovals, type RaiseApprovalsDeps, type RaiseDecision } from './raise-approvals.ts';

export interface TrustEvaluatorDeps extends RaiseApprovalsDeps {
  readonly trustEvidence: TrustEvidence | undefined;
}

/** A timer cannot wait longer than 24 days, and a clock that is set is noticed within a day. */
const MAX_WAIT_MS = 24 * 3_600_000;
/** How often a pending decision is looked for. */
const DECISION_INTERVAL_MS = 4_000;
const MAX_PENDING = 5;

/**
 * Evaluates the trust of one agent, and writes the audit records of what changes before the status reports it. A change that cannot be
 * recorded does not happen: the next reconcile repeats it.
 */
export class TrustEvaluator {
  readonly #deps: TrustEvaluatorDeps;
  readonly #approvals: RaiseApprovals;

  constructor(deps: TrustEvaluatorDeps) {
    this.#deps = deps;
    this.#approvals = new RaiseApprovals(deps);
  }

  async evaluate(observed: ObservedAgent, log: Logger, signal: AbortSignal): Promise<TrustEvaluation | undefined> {
    try {
      const evaluation = await this.#decided(observed, log, signal);
      if (evaluation !== undefined) await this.#record(observed, evaluation);
      return evaluation;
    } catch (error) {
      log.warn({ error: messageOf(error, 200) }, 'the trust of the agent cannot be evaluated; retrying');
      return undefined;
    }
  }

  /** Elevated, and what the policy names, only with a decision that counts for exactly this rise. */
  async #decided(observed: ObservedAgent, log: Logger, signal: AbortSignal): Promise<TrustEvaluation | undefined> {
    const evaluation = evaluateAgent(observed, () => undefined);
    const { policy, agent } = observed;
    if (evaluation === undefined || policy === undefined) return evaluation;
    const rises = evaluation.requests.slice(0, MAX_PENDING).map((request) => ({ agent, policy, request }));
    await this.#approvals.expire(agent, rises.map(raiseRequestName), signal);
    if (rises.length === 0) return evaluation;
    const decisions: RaiseDecision[] = [];
    for (const rise of rises) {
      const decision = await this.#approvals.decide(rise, signal);
      if (decision !== undefined) decisions.push(decision);
    }
    const decisionOn = (request: TrustRequest) => decisions.find((one) => isSameRise(one.request, request));
    for (const { name, decision } of decisions) {
      if (decision !== 'Pending') log.info({ request: name, decision }, 'a rise was decided');
    }
    const decided = evaluateAgent(observed, (request) => decisionOn(request)?.approval);
    if (decided === undefined) return undefined;
    // What was refused waits for no approver any more.
    const isOpen = (request: TrustRequest) => (decisionOn(request)?.decision ?? 'Pending') === 'Pending';
    return { ...decided, requests: decided.requests.filter(isOpen) };
  }

  async #record({ agent, policy }: ObservedAgent, { transitions }: TrustEvaluation): Promise<void> {
    const { trustEvidence } = this.#deps;
    if (trustEvidence === undefined || policy === undefined) return;
    const { namespace, name, uid, generation } = agent.metadata;
    for (const transition of transitions) {
      const { kind, from, to, category = '' } = transition;
      const version = `${generation}/${policy.metadata.generation}/${agent.status?.trust?.loweredAt ?? ''}`;
      await trustEvidence.record({
        agent: { namespace, name, uid },
        policy: { name: policy.metadata.name, generation: policy.metadata.generation },
        transition,
        key: `trust/${uid}/${version}/${category}/${kind}/${from}/${to}`,
      });
    }
  }
}

function isSameRise(one: TrustRequest, other: TrustRequest): boolean {
  return one.level === other.level && one.category === other.category;
}

/** Milliseconds until time alone may change a level. */
export function msUntilEvaluation(evaluation: TrustEvaluation | undefined, now: Date): number | undefined {
  if (evaluation !== undefined && evaluation.requests.length > 0) return DECISION_INTERVAL_MS;
  if (evaluation?.nextAt === undefined) return undefined;
  return Math.min(MAX_WAIT_MS, Math.max(1_000, evaluation.nextAt - now.getTime()));
}
