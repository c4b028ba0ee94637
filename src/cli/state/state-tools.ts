import { type Digest, isDigest } from '../../lib/canonical.ts';
import { isJsonObject, type Json, type JsonObject, member, textAt } from '../../lib/json.ts';
import type { RecordStore, StoredRecord } from '../../lib/record-store.ts';
import { explainStoredPromotion } from '../../tempering/lifecycle/explain-stored-promotion.ts';
import type { PromotionExplanation } from '../../tempering/promotion/explain-promotion.ts';
import { unrecordedCauses } from '../../tempering/promotion/recording-rules.ts';
import { IMPORTS_SESSION } from '../../tempering/registry/visibility.ts';
import { storedAudit } from '../../standalone/tool-audit/stored-audit.ts';
import { toolOutcomes } from './tool-outcomes.ts';
import { sessionPath } from '../../tools/session-path.ts';
import { emptyUseRecord, statisticsOf, type UseRecord } from '../../tempering/use/use-record.ts';

/** A forged tool of any tier in the state folder. */
export interface StateTool extends StoredRecord {
  /** Collection of its evidence. */
  evidence: string;
}

/** Tools of tier Agent and Shared, then the imported ones of each agent and those of each session. */
export async function listStateTools(records: RecordStore): Promise<StateTool[]> {
  const [agents, sessions] = await Promise.all([records.list('agents'), records.list('sessions')]);
  const imports = agents.map(({ name: agent, value }) => {
    const namespace = textAt(value, ['metadata', 'namespace'], 'default');
    return sessionPath({ agent, namespace, session: IMPORTS_SESSION });
  });
  const collections = [
    { tools: 'tools', evidence: 'evidence' },
    ...[...imports, ...sessions.map(({ name }) => `sessions/${name}`)].map((path) => ({
      tools: `${path}/tools`,
      evidence: `${path}/evidence`,
    })),
  ];
  const found = await Promise.all(
    collections.map(async ({ tools, evidence }) =>
      (await records.list(tools)).map((record) => ({ ...record, evidence })),
    ),
  );
  return found.flat();
}

/** Does `target` identify this tool: as object name, digest, or the name that models use? */
export function matchesTool({ name, value }: StoredRecord, target: string): boolean {
  return [name, textAt(value, ['spec', 'digest']), toolName(value)].includes(target);
}

export function toolName(value: Json): string {
  return textAt(value, ['spec', 'artifact', 'name']);
}

/** Everything a reviewer needs about one tool: the object, its evidence, its use statistics, its examination, how the tasks ended that called it, and what its promotions wait for. */
export async function toolWithEvidence(records: RecordStore, tool: StateTool): Promise<JsonObject> {
  const evidence = await records.get(tool.evidence, tool.name);
  const namespace = textAt(tool.value, ['metadata', 'namespace'], 'default');
  const digest = textAt(tool.value, ['spec', 'digest']);
  const uses = isDigest(digest) ? await records.get(`uses/${namespace}`, digest.slice('sha256:'.length)) : undefined;
  const examination = isDigest(digest)
    ? await records.get(`examinations/${namespace}`, digest.slice('sha256:'.length))
    : undefined;
  const outcomes = isDigest(digest) ? await toolOutcomes(records, digest, namespace) : [];
  const audit = isDigest(digest) ? await storedAudit(records, namespace, digest) : undefined;
  const promotion = await promotionOf(records, tool, evidence ?? null);
  return {
    object: tool.value,
    ...(evidence === undefined ? {} : { evidence }),
    ...(isJsonObject(uses) ? { uses: summaryOf(uses, digest as Digest, namespace) } : {}),
    ...(examination === undefined ? {} : { examination: findingsOf(examination) }),
    ...(outcomes.length === 0 ? {} : { outcomes }),
    ...(audit === undefined ? {} : { audit: audit as unknown as JsonObject }),
    ...(promotion === undefined ? {} : { promotion: { ...promotion } }),
  };
}

/** The report of an examination: the checks without a disagreement by name only. */
function findingsOf(report: Json): JsonObject {
  const checks = member(report, 'checks');
  const all = Array.isArray(checks) ? checks : [];
  const hasFindings = (check: Json): boolean => member(check, 'disagreements') !== 0;
  return {
    inputs: member(report, 'inputs') ?? 0,
    claims: member(report, 'claims') ?? [],
    passed: all.filter((check) => !hasFindings(check)).map((check) => textAt(check, ['check'])),
    findings: all.filter(hasFindings),
    testers: member(report, 'testers') ?? [],
  };
}

/** Why the tool does not have the next tier, and the next step. */
async function promotionOf(
  records: RecordStore,
  tool: StateTool,
  evidence: Json,
): Promise<PromotionExplanation | undefined> {
  const all = await Promise.all(
    (await listStateTools(records)).map(async (other) => ({
      tool: other.value,
      evidence: (await records.get(other.evidence, other.name)) ?? null,
    })),
  );
  return explainStoredPromotion(records, { tool: tool.value, evidence }, all, new Date());
}

function summaryOf(uses: JsonObject, digest: Digest, namespace: string): JsonObject {
  const record = { ...emptyUseRecord(digest, namespace), ...(uses as unknown as Partial<UseRecord>) };
  const { totalUses, recordedInputs, unrecorded, ...rest } = statisticsOf(record);
  return {
    total: totalUses,
    observed: totalUses - rest.reportedUses,
    reported: rest.reportedUses,
    successes: rest.successes,
    distinctInputs: rest.distinctInputs,
    rootMessages: rest.rootMessages,
    storedInputs: {
      withoutRecordedAnswers: recordedInputs.none,
      withObservedAnswers: recordedInputs.observed,
      withReportedAnswers: recordedInputs.reported,
    },
    ...(Object.keys(unrecorded).length === 0 ? {} : { notStored: unrecordedCauses(unrecorded) }),
    averageMilliseconds: rest.averageMilliseconds,
    lastUsedAt: rest.lastUsedAt ?? 'never',
  };
}
