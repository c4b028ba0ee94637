import { localModels } from '../../engine/local-models.ts';
import { openLedgerBook } from '../../ledger/ledger.ts';
import { systemClock } from '../../lib/clock.ts';
import { ulids } from '../../lib/ids.ts';
import { memoryRecordStore } from '../../lib/record-store.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { NamedModelSet } from '../../models/named-models.ts';
import { runAuditedTask, withoutTool } from '../../tool-audit/audited-task.ts';
import type { FreshAgentDeps } from '../../tool-audit/fresh-agent.ts';
import type { AuditedTask } from '../../tool-audit/report.ts';

export interface LocalAuditDeps extends Omit<FreshAgentDeps, 'models' | 'ledger' | 'onUse'> {
  readonly models: NamedModelSet;
  readonly digest: Digest;
  readonly maxTokensPerRun: number;
}

/** Gives each task to a fresh agent with the tool, and to one without it. Throws TEMPER_CANCELLED when the user interrupts it. */
export async function auditTool(
  { models: set, maxTokensPerRun, ...shared }: LocalAuditDeps,
  tasks: readonly string[],
  signal: AbortSignal,
): Promise<AuditedTask[]> {
  const others = withoutTool(shared.tools, shared.digest);
  const run = async (tools: FreshAgentDeps['tools'], task: string) => {
    const book = await openLedgerBook(memoryRecordStore(), systemClock);
    const quotas = { tokensPerDay: maxTokensPerRun };
    const ledger = book.ledger([{ name: 'audit', quotas, prefix: '--max-tokens ' }]);
    return runAuditedTask({ ...shared, tools, models: localModels(set, { ledger, ids: ulids }), ledger }, task, signal);
  };
  const audited: AuditedTask[] = [];
  for (const task of tasks)
    audited.push({ task, withTool: await run(shared.tools, task), withoutTool: await run(others, task) });
  return audited;
}
