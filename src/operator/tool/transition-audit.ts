import type { AuditRecord } from '../../audit/port.ts';
import type { ToolVerification } from '../../api/v1alpha1/emergenttool.ts';
import { printable } from '../../lib/printable.ts';
import type { RerunOrder } from '../reruns/rerun-plan.ts';
import type { OperatorAudit } from '../ports.ts';
import type { Activity } from './plan.ts';
import type { StoredTool } from './stored-tool.ts';

interface Transition {
  readonly namespace: string;
  readonly record: AuditRecord;
  readonly once: string;
}

/** The promotion to tier Shared, and the deactivation for the agent, have their own records. */
const OTHERS_RECORD: ReadonlySet<string> = new Set(['Promoted', 'Deactivated']);

/**
 * Audit records of tools that enter or leave service. A tool enters service after its record is stored, and leaves it at once: the record
 * of a demotion is repeated until NATS accepts it, as long as this process runs.
 */
export class TransitionAudit {
  readonly #audit: OperatorAudit | undefined;
  readonly #unsent = new Map<string, Transition>();

  constructor(audit: OperatorAudit | undefined) {
    this.#audit = audit;
  }

  /** Throws when the record of an activation cannot be stored. */
  async before(tool: StoredTool, activity: Activity): Promise<void> {
    if (activity.status === 'True' && tool.facts.tier === 'Shared' && tool.status?.active !== true)
      await this.#append(transitionOf(tool, activity, 'tool.promoted'));
  }

  /** Never throws; `retry` sends what could not be stored. */
  async after(tool: StoredTool, activity: Activity): Promise<void> {
    if (activity.status === 'True' || tool.status?.active !== true || OTHERS_RECORD.has(activity.reason)) return;
    const transition = transitionOf(tool, activity, 'tool.demoted');
    this.#unsent.set(transition.once, transition);
    await this.retry();
  }

  /** Throws when the record of a run of the tests cannot be stored. */
  async verified(
    tool: StoredTool,
    { result, tests, failedTests, reruns, successes }: ToolVerification,
    { order, problem }: { order: RerunOrder; problem: string | undefined },
  ): Promise<void> {
    const { namespace, name } = tool.metadata;
    const { tool: toolName, digest, tier } = tool.facts;
    const figures = { tests, failedTests, reruns, successes };
    const action = result === 'Passed' ? 'tool.verified' : 'tool.verification-failed';
    const reason = problem === undefined ? {} : { reason: printable(problem, 1_000) };
    const facts = { tool: toolName, object: name, tier, namespace, cause: order.cause, ...figures, ...reason };
    const record = { action, actor: 'system', evidence: 'observed', subject: digest, facts } as const;
    await this.#append({ namespace, record, once: `tool.verified/${order.attempt}` });
  }

  /** False while a record is left. */
  async retry(): Promise<boolean> {
    for (const [key, transition] of this.#unsent) {
      try {
        await this.#append(transition);
        this.#unsent.delete(key);
      } catch {
        return false;
      }
    }
    return true;
  }

  async #append({ namespace, record, once }: Transition): Promise<void> {
    await this.#audit?.append(namespace, record, once);
  }
}

function transitionOf(tool: StoredTool, { reason, message }: Activity, action: string): Transition {
  const { namespace, name, uid, generation } = tool.metadata;
  const { tool: toolName, digest, tier, requestNonce } = tool.facts;
  const facts = {
    tool: toolName,
    object: name,
    tier,
    namespace,
    reason,
    message,
    ...(requestNonce === undefined ? {} : { nonce: requestNonce }),
  };
  // Not the resourceVersion: a cache that lags behind own writes, or a refused write, would record one transition twice.
  const since = tool.status?.conditions?.find(({ type }) => type === 'Active')?.lastTransitionTime ?? '';
  return {
    namespace,
    record: { action, actor: 'system', evidence: 'observed', subject: digest, facts },
    once: `${action}/${uid}/${generation}/${since}`,
  };
}
