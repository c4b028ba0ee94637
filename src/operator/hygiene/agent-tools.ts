import { messageOf } from '../../lib/errors.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { OperatorMetrics } from '../../telemetry/temper-metrics.ts';
import type { ConditionEvent } from '../conditions.ts';
import type { StoredAgent } from '../kube/types.ts';
import type { OperatorAudit } from '../ports.ts';
import { type ObservedAgentTools, planAgentTools, type ToolPlan, type ToolTransition } from './plan.ts';

export interface AgentToolsDeps {
  readonly audit: OperatorAudit | undefined;
  readonly operatorMetrics: Pick<OperatorMetrics, 'count'> | undefined;
}

const ACTIONS = {
  Deactivated: 'tool.deactivated',
  Reactivated: 'tool.reactivated',
  ReactivationRefused: 'tool.reactivation-refused',
} as const;

/** Plans the tools of an agent, and writes the audit records of what changes first. Undefined: nothing changes now. */
export async function evaluateTools(
  { audit }: AgentToolsDeps,
  agent: StoredAgent,
  observed: ObservedAgentTools | undefined,
  log: Logger,
): Promise<ToolPlan | undefined> {
  if (observed === undefined) return undefined;
  const planned = planAgentTools(observed);
  try {
    for (const transition of planned.transitions) await record(audit, agent, transition);
    return planned;
  } catch (error) {
    log.warn({ error: messageOf(error, 200) }, 'a change of the tools of the agent cannot be recorded; retrying');
    return undefined;
  }
}

async function record(
  audit: OperatorAudit | undefined,
  { metadata }: StoredAgent,
  { kind, entry, message }: ToolTransition,
): Promise<void> {
  const { namespace, name, uid } = metadata;
  const { tool, digest, cause, reactivatedAt = '' } = entry;
  const action = ACTIONS[kind];
  const facts = { tool, agent: name, agentUid: uid, namespace, cause, reason: message };
  const once = `${action}/${uid}/${digest}/${kind === 'Deactivated' ? reactivatedAt : entry.since}`;
  await audit?.append(namespace, { action, actor: 'system', evidence: 'observed', subject: digest, facts }, once);
}

/** One Event per tool that left or returned, or that could not. */
export function toolEvents({ transitions }: ToolPlan): ConditionEvent[] {
  return transitions.map(({ kind, entry, message }) => {
    const { tool } = entry;
    if (kind === 'Reactivated')
      return { type: 'Normal', reason: 'ToolReactivated', message: `${tool} is in service again: ${message}` };
    if (kind === 'ReactivationRefused')
      return { type: 'Warning', reason: 'ToolReactivationRefused', message: `${tool} stays deactivated: ${message}` };
    const next = `forge a corrected version, or verify this one again with kubectl temper reactivate`;
    return { type: 'Warning', reason: 'ToolDeactivated', message: `${tool} is deactivated: ${message}; ${next}` };
  });
}

export function countTransitions({ operatorMetrics }: AgentToolsDeps, { transitions }: ToolPlan): void {
  for (const { kind, entry } of transitions) {
    if (kind === 'Deactivated') operatorMetrics?.count('temper_tools_deactivated_total', { cause: entry.cause }, 1);
  }
}
