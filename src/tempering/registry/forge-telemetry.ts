import type { ChainedRecord } from '../../audit/port.ts';
import type { RejectionClass } from '../../forge/types.ts';
import { member } from '../../lib/json.ts';

/** Forge statistics of one agent, counted from the audit chain. */
export interface ForgeTelemetry {
  /** Rejected attempts by class. */
  rejections: Partial<Record<RejectionClass, number>>;
  /** Tool names with at least one accepted attempt. */
  uniqueApproved: number;
  /** Tool names with rejected attempts only. */
  uniqueTerminalRejections: number;
}

export function forgeTelemetry(records: readonly ChainedRecord[], agent: string): ForgeTelemetry {
  const approved = new Set<string>();
  const refused = new Set<string>();
  const rejections: Partial<Record<RejectionClass, number>> = {};
  for (const { action, actor, facts } of records) {
    const tool = member(facts, 'tool');
    if (actor !== `agent/${agent}` || typeof tool !== 'string') continue;
    if (action === 'tool.accepted') approved.add(tool);
    if (action !== 'tool.refused') continue;
    refused.add(tool);
    const kind = member(facts, 'class') as RejectionClass;
    rejections[kind] = (rejections[kind] ?? 0) + 1;
  }
  return {
    rejections,
    uniqueApproved: approved.size,
    uniqueTerminalRejections: [...refused].filter((name) => !approved.has(name)).length,
  };
}
