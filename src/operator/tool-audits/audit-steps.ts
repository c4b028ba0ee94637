import { Check } from 'typebox/value';
import type { AuditedTool } from '../../api/v1alpha1/emergenttool.ts';
import { type ToolAuditOrder, ToolAuditResult } from '../../gateway-api/verification/tool-audit-schemas.ts';
import type { Json } from '../../lib/json.ts';
import { auditedTasks, type ToolAudit } from '../../nats/promotion/tool-audits.ts';
import { toAuditReport, tokensPerRun } from '../../tool-audit/report.ts';

/** Of a task in the status of an object. */
const MAX_STATUS_TASK = 200;

/** The session that follows: each task with the tool, then without it. */
export function orderOf(audit: ToolAudit): ToolAuditOrder {
  const { id, runs, tasks, digest, agent, maxTokens } = audit;
  const round = runs.length;
  return {
    attempt: id,
    round,
    audit: {
      agentUid: agent.uid,
      digest,
      task: tasks[Math.floor(round / 2)] ?? '',
      withTool: round % 2 === 0,
      maxTokens: tokensPerRun(maxTokens, tasks.length),
    },
  };
}

/** The audit after one more session. Undefined for a result of another form or of another session, which says nothing. */
export function afterResult(audit: ToolAudit, sent: Json, now: Date): ToolAudit | undefined {
  if (!Check(ToolAuditResult, sent)) return undefined;
  if (sent.attempt !== audit.id || sent.round !== audit.runs.length) return undefined;
  const runs = [...audit.runs, sent.run];
  const state = runs.length >= 2 * audit.tasks.length ? 'Completed' : 'Running';
  return { ...audit, state, runs, model: sent.model, since: now.toISOString() };
}

export function failed(audit: ToolAudit, problem: string, now: Date): ToolAudit {
  return { ...audit, state: 'Failed', problem, since: now.toISOString() };
}

/** What the object of the tool shows. */
export function auditStatus(audit: ToolAudit): AuditedTool {
  const { agent, model = '', since } = audit;
  const { evidence, tasks } = toAuditReport({ time: since, agent: agent.name, model }, auditedTasks(audit));
  const short = tasks.map(({ task, withTool, withoutTool }) => ({
    task: task.slice(0, MAX_STATUS_TASK).toWellFormed(),
    withTool: { ...withTool },
    withoutTool: { ...withoutTool },
  }));
  return { auditedAt: since, agent: agent.name, model, evidence, tasks: short };
}
