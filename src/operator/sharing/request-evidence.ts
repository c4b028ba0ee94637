import type { PromotionReview } from '../../api/v1alpha1/approvalrequest.ts';
import type { JudgeVerdict } from '../../forge/types.ts';
import { printable } from '../../lib/printable.ts';
import type { StoredAgent } from '../kube/types.ts';
import type { UsedTool } from '../../nats/promotion/evidence.ts';
import type { PromotionStore } from '../promotion/ports.ts';
import type { StoredTool } from '../tool/stored-tool.ts';

export type RequestEvidence = Pick<PromotionReview, 'verification' | 'uses' | 'usedBy' | 'verdicts'>;

type EvidenceStore = Pick<PromotionStore, 'get' | 'statistics'>;

/** Agents whose uses are read. */
const MAX_AGENTS = 20;
const MAX_VERDICTS = 8;
const MAX_LINES = 100;
const MAX_REASONING = 2_048;

/**
 * What the promotion to tier Agent showed: the figures of the operator, the verdicts of the panel, and apart from them what pods reported.
 * Empty for a tool whose promotion NATS has lost. Throws TEMPER_BUS_*.
 */
export async function requestEvidence(
  store: EvidenceStore,
  agent: StoredAgent,
  { facts: { digest }, metadata: { namespace } }: Pick<StoredTool, 'facts' | 'metadata'>,
  holders: readonly StoredAgent[],
): Promise<RequestEvidence> {
  const [{ record }, claimed] = await Promise.all([
    store.get({ agentUid: agent.metadata.uid, digest }),
    claimedUses(store, agent, { digest, namespace }, holders),
  ]);
  return { ...(record?.state === 'Promoted' ? promotionFacts(record) : {}), ...claimed };
}

/** What the pods of the agent reported, and apart from it those of each agent that has the tool. Throws TEMPER_BUS_*. */
export async function claimedUses(
  store: Pick<EvidenceStore, 'statistics'>,
  agent: StoredAgent,
  tool: UsedTool,
  holders: readonly StoredAgent[],
): Promise<Pick<RequestEvidence, 'uses' | 'usedBy'>> {
  const others = holders.filter(({ metadata }) => metadata.uid !== agent.metadata.uid);
  const all = await Promise.all(
    [agent, ...others].slice(0, MAX_AGENTS).map(async ({ metadata: { name, uid } }) => {
      const { totalUses: uses, successes: succeeded, ...statistics } = await store.statistics(uid, tool);
      const { sessions, rootMessages, reportedUses: reported, distinctInputs } = statistics;
      return { usedBy: { name, uses, succeeded, sessions, rootMessages }, reported, distinctInputs };
    }),
  );
  const [own] = all;
  const usedBy = all.map((one) => one.usedBy).filter(({ uses }) => uses > 0);
  return {
    ...(own === undefined || own.usedBy.uses === 0 ? {} : { uses: ownUses(own) }),
    ...(usedBy.length === 0 ? {} : { usedBy }),
  };
}

function ownUses(own: {
  usedBy: NonNullable<RequestEvidence['usedBy']>[number];
  reported: number;
  distinctInputs: number;
}): NonNullable<RequestEvidence['uses']> {
  const { uses: total, succeeded, rootMessages } = own.usedBy;
  return { total, succeeded, reported: own.reported, distinctInputs: own.distinctInputs, rootMessages };
}

/** What the operator and the panel found before tier Agent. */
export function promotionFacts({
  figures,
  verdicts,
}: {
  figures: Omit<NonNullable<RequestEvidence['verification']>, 'rootMessages'> & { distinctInputs: number };
  verdicts: readonly JudgeVerdict[];
}): Pick<RequestEvidence, 'verification' | 'verdicts'> {
  const { tests, failedTests, reruns, successes, distinctInputs, observedAnswers, reportedAnswers } = figures;
  return {
    verification: {
      tests,
      failedTests,
      reruns,
      successes,
      rootMessages: distinctInputs,
      observedAnswers,
      reportedAnswers,
    },
    verdicts: verdicts.slice(0, MAX_VERDICTS).map(verdictFacts),
  };
}

function verdictFacts({ model, approved, confidence, promptDigest, citedLines = [], reasoning }: JudgeVerdict) {
  const percent = Math.round(Math.min(1, Math.max(0, confidence)) * 100);
  return {
    model: printable(model, 253),
    approved,
    confidencePercent: Number.isNaN(percent) ? 0 : percent,
    promptDigest: printable(promptDigest, 128),
    citedLines: citedLines
      .filter((line) => Number.isSafeInteger(line) && line >= 0 && line <= 100_000)
      .slice(0, MAX_LINES),
    reasoning: printable(reasoning, MAX_REASONING),
  };
}
