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
  /** All tools of its session. */
  readonly ofSession: readonly RegisteredTool[];
  /** The models that the policy names. */
  readonly testers: readonly string[];
  /** Reads the tools that it must not repeat. */
  readonly inService: () => Promise<ToolsInService>;
  /** What the pod sent for the last round. */
  readonly sent: Json | undefined;
}

/** How far the examination is; undefined while the pod runs its last round. Throws TEMPER_BUS_* and ApiError. */
export async function observeExamination(
  store: PromotionStore,
  { record, tool, ofSession, testers, inService, sent: lastSent }: ExaminedPromotion,
  op: CallOptions,
): Promise<ExaminationProgress | undefined> {
  const { pod, attempt, agent, digest } = record;
  // Most looks happen while the last round runs.
  if (lastSent === undefined) return undefined;
  const [work, rounds, answers] = await Promise.all([
    store.work(pod.uid, 0),
    ranRounds(store, record, lastSent),
    testers.length === 0 ? [] : store.testerAnswers({ agentUid: agent.uid, digest }, attempt),
  ]);
  const recorded = recordedInputs(work, tool);
  if (recorded === undefined) return { kind: 'unusable', problem: 'NATS lost the work of the pod' };
  if (rounds === undefined) return { kind: 'unusable', problem: 'NATS lost outputs of the pod' };
  const replaced = earlierVersion(ofSession, tool);
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

/** What the pod ran so far; undefined when outputs are missing. */
async function ranRounds(
  store: PromotionStore,
  { pod, rounds }: ExaminedPromotion['record'],
  lastSent: Json,
): Promise<RanRound[] | undefined> {
  const ran: RanRound[] = [];
  for (const [index, digest] of rounds.entries()) {
    const sent = index + 1 === rounds.length ? lastSent : await store.outputs(pod.uid, index + 1);
    if (sent === undefined) return undefined;
    ran.push({ digest, sent });
  }
  return ran;
}

/** The latest other version of the tool by its name. */
function earlierVersion(
  ofSession: readonly RegisteredTool[],
  { artifact, digest }: RegisteredTool,
): RegisteredTool | undefined {
  return ofSession
    .filter((other) => other.artifact.name === artifact.name && other.digest !== digest)
    .toSorted((one, other) => (one.acceptedAt < other.acceptedAt ? 1 : -1))[0];
}

/** The inputs of the re-runs after those of the tests. They are read from the work, because further uses may replace them meanwhile. */
function recordedInputs(work: Json | undefined, { artifact }: RegisteredTool): Json[] | undefined {
  if (!isJsonObject(work) || !Array.isArray(work.cases)) return undefined;
  return work.cases.slice(artifact.tests.length).flatMap((one) => (isJsonObject(one) ? (one.input ?? []) : []));
}
