import type { CallOptions } from '../../../lib/call-options.ts';
import { isJsonObject, type Json } from '../../../lib/json.ts';
import type { PromotionRecord } from '../../../tempering/promotion/promotion-record.ts';
import type { ExaminationSubject } from '../../../tempering/examination/types.ts';
import type { ToolsInService } from '../../../tempering/examination/redundancy/compared-tool.ts';
import type { RegisteredTool } from '../../../tempering/types.ts';
import type { PromotionStore } from '../ports.ts';
import { type ExaminationProgress, type RanRound, replayExamination } from './replayed-examination.ts';

export interface ExaminedPromotion {
  readonly record: Extract<PromotionRecord, { state: 'Examining' }>;
  readonly tool: RegisteredTool;
  /** The models that the policy names. */
  readonly testers: readonly string[];
  /** Reads the tools that it must not repeat. */
  readonly inService: () => Promise<ToolsInService>;
}

/** How far the examination is; undefined while the pod runs its last round. Throws TEMPER_BUS_* and ApiError. */
export async function observeExamination(
  store: PromotionStore,
  { record, tool, testers, inService }: ExaminedPromotion,
  op: CallOptions,
): Promise<ExaminationProgress | undefined> {
  const { pod, attempt, agent, digest } = record;
  // First: most looks happen while the last round runs.
  const last = record.rounds.length;
  const lastSent = await store.outputs(pod.uid, last);
  if (lastSent === undefined) return undefined;
  const recorded = recordedInputs(await store.work(pod.uid, 0), tool);
  if (recorded === undefined) return { kind: 'unusable', problem: 'NATS lost the work of the pod' };
  const rounds: RanRound[] = [];
  for (const [index, ran] of record.rounds.entries()) {
    const sent = index + 1 === last ? lastSent : await store.outputs(pod.uid, index + 1);
    if (sent === undefined) return { kind: 'unusable', problem: 'NATS lost outputs of the pod' };
    rounds.push({ digest: ran, sent });
  }
  const answers = testers.length === 0 ? [] : await store.testerAnswers({ agentUid: agent.uid, digest }, attempt);
  const replaced = await store.earlierVersion(agent.uid, record.session, tool);
  const { artifact, authorModel } = tool;
  const subject: ExaminationSubject = {
    artifact,
    digest,
    authorModel,
    recorded,
    inService,
    // The tools that another composed version calls are not in the work.
    ...(replaced?.artifact.implementation.source === undefined ? {} : { replaced: replaced.artifact }),
  };
  return replayExamination(subject, { attempt, rounds, testers, answers }, op);
}

/** The inputs of the re-runs after those of the tests. They are read from the work, because further uses may replace them meanwhile. */
function recordedInputs(work: Json | undefined, { artifact }: RegisteredTool): Json[] | undefined {
  if (!isJsonObject(work) || !Array.isArray(work.cases)) return undefined;
  return work.cases.slice(artifact.tests.length).flatMap((one) => (isJsonObject(one) ? (one.input ?? []) : []));
}
