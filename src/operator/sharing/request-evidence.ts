import type { PromotionReview } from '../../api/v1alpha1/approvalrequest.ts';
import type { JudgeVerdict } from '../../forge/types.ts';
import { printable } from '../../lib/printable.ts';
import type { StoredAgent } from '../kube/types.ts';
import type { PromotionStore } from '../promotion/ports.ts';
import type { StoredTool } from '../tool/stored-tool.ts';

export type RequestEvidence = Pick<PromotionReview, 'verification' | 'uses' | 'verdicts'>;

const MAX_VERDICTS = 8;
const MAX_LINES = 100;
const MAX_REASONING = 2_048;

/**
 * What the promotion to tier Agent showed: the figures of the operator, the verdicts of the panel, and apart from them what pods reported.
 * Empty for a tool whose promotion NATS has lost. Throws TEMPER_BUS_*.
 */
export async function requestEvidence(
  store: Pick<PromotionStore, 'get' | 'statistics'>,
  agent: StoredAgent,
  { facts: { digest }, metadata: { namespace } }: StoredTool,
): Promise<RequestEvidence> {
  const { uid } = agent.metadata;
  const [{ record }, uses] = await Promise.all([
    store.get({ agentUid: uid, digest }),
    store.statistics(uid, { digest, namespace }),
  ]);
  return {
    ...(record?.state === 'Promoted' ? promotionFacts(record) : {}),
    ...(uses.totalUses === 0
      ? {}
      : {
          uses: {
            total: uses.totalUses,
            succeeded: uses.successes,
            reported: uses.reportedUses,
            distinctInputs: uses.distinctInputs,
            rootMessages: uses.rootMessages,
          },
        }),
  };
}

/** The figures of the operator and the verdicts of the panel. Pure. */
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
