import type { GatewayClient } from '../../gateway-client/gateway-client.ts';
import { auditModel, engineModels } from '../../gateway-client/model.ts';
import type { ToolAuditResult, ToolAuditWork } from '../../gateway-api/pod-api.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Sandbox } from '../../sandbox/port.ts';
import type { SessionSandbox } from '../../sandbox/session-port.ts';
import { runAuditedTask } from '../../tool-audit/audited-task.ts';
import { ToolCallLimiter } from '../agent/tool-call-limiter.ts';

export interface AuditRunDeps {
  readonly sandbox: Sandbox & SessionSandbox;
  readonly clock: Clock;
  readonly client: GatewayClient;
}

/** Gives the task to a fresh agent. It has no files, no memory and no network but the models behind the gateway, which limits their tokens. */
export async function runAudit(
  { attempt, round, audit }: ToolAuditWork,
  { sandbox, clock, client }: AuditRunDeps,
  signal: AbortSignal,
): Promise<ToolAuditResult> {
  const { agent: assigned, tools, digest, task } = audit;
  const { agent, policy, level, categoryLevels = {}, models } = assigned;
  const { name, namespace, spec } = agent;
  const run = await runAuditedTask(
    {
      agent: { name, namespace, spec, policy, level, categoryLevels },
      models: engineModels(models, auditModel(client, round)),
      ledger: new ToolCallLimiter(clock).ledger(spec.quotas?.toolCallsPerMinute),
      sandbox,
      tools,
      workspace: undefined,
      protectedPaths: [],
      digest,
    },
    task,
    signal,
  );
  return { attempt, round, model: models[spec.model.primary]?.resolved ?? spec.model.primary, run };
}
