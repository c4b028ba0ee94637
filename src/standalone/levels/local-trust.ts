import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { TrustStatus } from '../../api/v1alpha1/trust/status.ts';
import type { Audit, AuditRecord } from '../../audit/port.ts';
import { digestOf } from '../../lib/canonical.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { type EffectiveLevels, effectiveLevels, type TrustBinding } from '../../policy/trust/effective.ts';
import { evaluateTrust, evidenceMarks, type TrustRequest, type TrustTransition } from '../../policy/trust/evaluate.ts';
import { foldEvidence } from '../../policy/trust/evidence.ts';
import type { ExplainInput } from '../../policy/trust/explain.ts';
import { type LocalAgent, localTaskRecords } from './local-tasks.ts';
import { approvedRaises, raiseRequestName, requestRaises, useApproval } from './raise-requests.ts';

interface LocalTrustInput {
  readonly records: RecordStore;
  readonly agent: Agent;
  readonly policy: TrustPolicy;
  readonly namespace: string;
  readonly now: Date;
}

export interface LocalTrust {
  readonly levels: EffectiveLevels;
  /** Writes the audit records of what changed, then the result, and then the requests of what an approver decides. */
  store(audit: Pick<Audit, 'append'>, ids: IdGenerator): Promise<void>;
}

const levelsOf = ({ namespace }: LocalAgent): string => `levels/${namespace}`;

/** Evaluates the agent once, as the operator does. A run keeps the level that it starts with. */
export async function evaluateLocalTrust(input: LocalTrustInput): Promise<LocalTrust> {
  const { records, agent, policy, namespace, now } = input;
  const own = { name: agent.metadata.name, namespace };
  const explained = await localTrustInput(input);
  const { binding } = explained;
  const evidence = foldEvidence(explained.records, evidenceMarks(explained.trust, explained.createdAt));
  const raised = { agent, policy, namespace, binding, loweredAt: explained.trust?.loweredAt };
  const { requests } = evaluateTrust({ ...explained, evidence, approvalOf: () => undefined });
  const approved = await approvedRaises(records, raised, requests);
  const approvalOf = (request: TrustRequest): string | undefined => {
    const name = raiseRequestName(raised, request);
    return approved.has(name) ? name : undefined;
  };
  const evaluation = evaluateTrust({ ...explained, evidence, approvalOf });
  const { trust, transitions } = evaluation;
  const createdAt = explained.createdAt.toISOString();
  return {
    levels: effectiveLevels(trust, binding, policy.spec),
    async store(audit, ids) {
      for (const transition of transitions) await audit.append(auditRecord(own, transition));
      for (const name of approved.keys()) await useApproval(records, name, now);
      const value = trust === undefined ? { createdAt } : { createdAt, trust };
      await records.put(levelsOf(own), own.name, value as unknown as Json);
      const open = { ...raised, loweredAt: trust?.loweredAt };
      await requestRaises(records, open, evaluation.requests, { audit, ids, now });
    },
  };
}

function auditRecord({ name }: LocalAgent, { kind, ...facts }: TrustTransition): AuditRecord {
  const action = `trust.${kind.toLowerCase()}`;
  return { action, actor: 'system', evidence: 'observed', subject: `agent/${name}`, facts: { ...facts } };
}

/** What the rules of trust read of a state folder. */
export async function localTrustInput(input: LocalTrustInput): Promise<ExplainInput> {
  const { records, agent, policy, namespace, now } = input;
  const own = { name: agent.metadata.name, namespace };
  const stored = await records.get(levelsOf(own), own.name);
  const tasks = await localTaskRecords(records, own);
  const first = tasks.reduce((oldest, { endedAt }) => Math.min(oldest, endedAt), now.getTime());
  const createdAt =
    isJsonObject(stored) && typeof stored['createdAt'] === 'string' ? Date.parse(stored['createdAt']) : first;
  return {
    policy: policy.spec,
    binding: localBinding(own, agent, policy),
    trust:
      isJsonObject(stored) && isJsonObject(stored['trust']) ? (stored['trust'] as unknown as TrustStatus) : undefined,
    records: tasks,
    now,
    createdAt: new Date(Number.isFinite(createdAt) ? createdAt : first),
  };
}

/** A state folder has no generations: the digest of a spec takes the place of its generation. */
function localBinding({ name, namespace }: LocalAgent, agent: Agent, policy: TrustPolicy): TrustBinding {
  return {
    agentUid: `${namespace}-${name}`,
    agentGeneration: versionOf(agent.spec as unknown as Json),
    policyUid: `${namespace}-${policy.metadata.name}`,
    policyGeneration: versionOf(policy.spec as unknown as Json),
  };
}

/** The first 48 bits of the digest. */
function versionOf(spec: Json): number {
  return Number.parseInt(digestOf(spec).slice('sha256:'.length, 'sha256:'.length + 12), 16);
}
