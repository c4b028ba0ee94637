import { messageOf } from '../../lib/errors.ts';
import type { TrustEvaluation } from '../../policy/trust/evaluate.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { ObservedAgent } from '../agent/observed.ts';
import type { TrustEvidence } from '../ports.ts';
import { evaluateAgent } from './evaluate-agent.ts';

export interface TrustEvaluatorDeps {
  readonly trustEvidence: TrustEvidence | undefined;
}

/** A timer cannot wait longer than 24 days, and a clock that is set is noticed within a day. */
const MAX_WAIT_MS = 24 * 3_600_000;

/**
 * Evaluates the trust of one agent, and writes the audit records of what changes before the status reports it. A change that cannot be
 * recorded does not happen: the next reconcile repeats it.
 */
export class TrustEvaluator {
  readonly #deps: TrustEvaluatorDeps;

  constructor(deps: TrustEvaluatorDeps) {
    this.#deps = deps;
  }

  async evaluate(observed: ObservedAgent, log: Logger, _signal: AbortSignal): Promise<TrustEvaluation | undefined> {
    const evaluation = evaluateAgent(observed, () => undefined);
    if (evaluation === undefined) return undefined;
    try {
      await this.#record(observed, evaluation);
      return evaluation;
    } catch (error) {
      log.warn({ error: messageOf(error, 200) }, 'a change of trust cannot be recorded; retrying');
      return undefined;
    }
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

/** Milliseconds until time alone may change a level. */
export function msUntilEvaluation(evaluation: TrustEvaluation | undefined, now: Date): number | undefined {
  if (evaluation?.nextAt === undefined) return undefined;
  return Math.min(MAX_WAIT_MS, Math.max(1_000, evaluation.nextAt - now.getTime()));
}
