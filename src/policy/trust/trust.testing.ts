import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import type { TrustStatus } from '../../api/v1alpha1/trust/status.ts';
import type { TrustInput } from './evaluate.ts';
import { evidenceMarks } from './evaluate.ts';
import { type TaskEvidence, foldEvidence, type TaskRecord } from './evidence.ts';

export const DAY_MS = 24 * 3_600_000;
export const NOW = new Date('2026-11-22T12:00:00Z');
export const CREATED = new Date(NOW.getTime() - 60 * DAY_MS);
export const BINDING = { agentUid: 'agent-1', agentGeneration: 1, policyUid: 'policy-1', policyGeneration: 1 };

/** Tasks of the last hour. */
export function manyTasks(count: number, change: Partial<TaskRecord>): TaskRecord[] {
  const task = { endedAt: NOW.getTime() - 3_600_000, outcome: 'completed' as const, deliveries: 1, categories: [] };
  return Array.from({ length: count }, () => ({ ...task, ...change }));
}

export function foldedFor(records: readonly TaskRecord[], trust?: TrustStatus): TaskEvidence {
  return foldEvidence(records, evidenceMarks(trust, CREATED));
}

/** An agent of 60 days without records. */
export function aTrustInput(policy: TrustPolicySpec): TrustInput {
  const evidence = foldedFor([]);
  return {
    policy,
    binding: BINDING,
    trust: undefined,
    evidence,
    now: NOW,
    createdAt: CREATED,
    approvalOf: () => undefined,
  };
}
