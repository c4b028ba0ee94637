import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import { API_VERSION } from '../../api/names.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import type { Clock } from '../../lib/clock.ts';
import type { JsonObject } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { PromotionRecord } from '../../tempering/promotion/promotion-record.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { ContradictedReports } from '../../tempering/verification/contradicted-reports.ts';
import type { OperatorMetrics } from '../../telemetry/temper-metrics.ts';
import { FIELD_MANAGER, type StoredAgent, TYPES } from '../kube/types.ts';
import { formatFigures } from '../../tempering/promotion/promotion-messages.ts';
import type { WithheldStore } from '../withheld/ports.ts';
import type { ReportedTools } from '../sharing/reported-tools.ts';
import type { LeavingTool } from '../hygiene/leaving-tool.ts';
import type { PromotionStore } from './ports.ts';
import { agentToolObject, verifiedStatus } from './tool-object.ts';

export interface ConcludeDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly store: PromotionStore;
  readonly events: EventRecorder;
  /** Undefined without NATS. */
  readonly withheld: Pick<WithheldStore, 'put'> | undefined;
  readonly reportedTools: Pick<ReportedTools, 'add' | 'remove'>;
  readonly metrics?: Pick<OperatorMetrics, 'count'> | undefined;
}

type Promoted = Extract<PromotionRecord, { state: 'Promoted' }>;
type Rejected = Extract<PromotionRecord, { state: 'Rejected' }>;
type WrittenTool = KubeObject & Pick<EmergentTool, 'spec' | 'status'> & { metadata: { generation?: number } };

const MAX_REASON_CHARACTERS = 1_000;

/**
 * The effects of a promotion, which can be repeated: the object, then its status, then audit record and Event. Throws ApiError when the
 * API server refuses the object; the reconcile then tries again.
 */
export async function concludePromoted(
  deps: ConcludeDeps,
  record: Promoted,
  { agent, tool, leaving }: { agent: StoredAgent; tool: RegisteredTool; leaving: LeavingTool | undefined },
  signal: AbortSignal,
): Promise<void> {
  const object = await ensureObject(deps, agentToolObject(agent, tool, leaving), signal);
  await keepSource(deps, agent, tool);
  const ofNamespace = { namespace: agent.metadata.namespace, digest: record.digest };
  // Before the tool is in service, so that a crash in between leaves no promotion that nothing remembers.
  const isReported = record.figures.reportedAnswers > 0;
  if (isReported) await deps.reportedTools.add(ofNamespace, signal);
  if (object.status?.active === undefined) {
    const { namespace = '', name, generation = 1 } = object.metadata;
    const note = printable(record.note, MAX_REASON_CHARACTERS);
    const status = verifiedStatus(note, record.figures, {
      generation,
      sourceWithheld: tool.sourceWithheld,
      now: deps.clock.now(),
    });
    await deps.client.patch(TYPES.emergentTools, { namespace, name }, { status }, signal, { subresource: 'status' });
  }
  if (!isReported) await deps.reportedTools.remove(ofNamespace, signal);
  const facts = {
    ...factsOf(record),
    object: object.metadata.name,
    note: printable(record.note, MAX_REASON_CHARACTERS),
    ...(leaving === undefined ? {} : { replaces: leaving.tool }),
  };
  await appendAudit(deps, record, 'tool.promoted', facts);
  const replaces = leaving === undefined ? '' : `; ${leaving.tool} leaves for it`;
  const message = `${record.tool} is at tier Agent as EmergentTool ${object.metadata.name}: ${record.note}${replaces}`;
  deps.events.record(subjectOf(agent), { type: 'Normal', reason: 'ToolPromoted', message });
}

/** Its session may have been closed meanwhile, and its source deleted. */
async function keepSource({ withheld }: ConcludeDeps, { metadata }: StoredAgent, tool: RegisteredTool): Promise<void> {
  const { source } = tool.artifact.implementation;
  if (tool.sourceWithheld && source !== undefined) await withheld?.put(metadata.uid, tool.digest, source);
}

export async function concludeRejected(deps: ConcludeDeps, record: Rejected, agent: StoredAgent): Promise<void> {
  const reason = printable(record.reason, MAX_REASON_CHARACTERS);
  const facts = { ...factsOf(record), reason, coolDownUntil: record.notBefore };
  await appendAudit(deps, record, 'tool.promotion-refused', facts);
  const contradicted = record.evidence?.contradicted;
  if (contradicted !== undefined) await concludeContradicted(deps, record, contradicted);
  const message = `${record.tool} stays at tier Session until ${record.notBefore}: ${reason}`;
  deps.events.record(subjectOf(agent), { type: 'Warning', reason: 'ToolPromotionRefused', message });
}

/** Each contradicted report is an observed failure of the agent, as a failed task is. */
async function concludeContradicted(
  deps: ConcludeDeps,
  record: Rejected,
  { tests, uses }: ContradictedReports,
): Promise<void> {
  const { agent, tool, attempt, session } = record;
  const facts = { tool, agent: agent.name, agentUid: agent.uid, attempt, tests, uses };
  await appendAudit(deps, record, 'tool.reports-contradicted', facts);
  const failure = { session, endedAt: Date.parse(record.since) };
  await deps.store.recordFailures(agent.uid, attempt, tests + uses, failure);
  deps.metrics?.count('temper_reports_contradicted_total', {}, tests + uses);
}

/** Creates the object, or returns the one that an earlier leader created: its name has the digest and the owner. */
async function ensureObject(
  { client }: ConcludeDeps,
  object: ReturnType<typeof agentToolObject>,
  signal: AbortSignal,
): Promise<WrittenTool> {
  const { namespace, name } = object.metadata;
  try {
    return await client.create<WrittenTool>(TYPES.emergentTools, object, signal, { manager: FIELD_MANAGER });
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
    const existing = await client.get<WrittenTool>(TYPES.emergentTools, { namespace, name }, signal);
    if (existing?.spec.digest === object.spec.digest) return existing;
    throw error;
  }
}

function appendAudit(
  { store }: ConcludeDeps,
  record: PromotionRecord,
  action: string,
  facts: JsonObject,
): Promise<void> {
  const { namespace, uid } = record.agent;
  const entry = { action, actor: 'system', evidence: 'observed', subject: record.digest, facts } as const;
  return store.audit({ namespace, agentUid: uid }, entry, `promotion/${record.attempt}/${action}`);
}

function factsOf(record: Promoted | Rejected): JsonObject {
  const evidence = record.state === 'Promoted' ? record : record.evidence;
  const verdicts = (evidence?.verdicts ?? []).map(({ approved, confidence, model, promptDigest }) => ({
    approved,
    confidence,
    model,
    promptDigest,
  }));
  return {
    tool: record.tool,
    agent: record.agent.name,
    agentUid: record.agent.uid,
    tier: 'Agent',
    attempt: record.attempt,
    ...(evidence === undefined ? {} : { figures: formatFigures(evidence.figures), verdicts }),
  };
}

function subjectOf({ metadata: { namespace, name, uid } }: StoredAgent) {
  return { apiVersion: API_VERSION, kind: 'Agent', metadata: { namespace, name, uid } };
}
