import type { JudgeVerdict } from '../../forge/types.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { NatsAudit, StoredAuditRecord } from '../../nats/audit.ts';
import type { PromotionStates } from '../../nats/promotion/promotion-states.ts';
import { isListedAction } from '../../review/listed-actions.ts';
import type { ProvenanceReference, ReviewVerdict, ToolReview, Verification } from '../../review/tool-review.ts';
import type { RerunFigures } from '../../tempering/promotion/promotion-rules.ts';

/** What NATS has about a promotion, for the page of its pull request. */
export type RecordedFacts = Pick<ToolReview, 'verdicts' | 'provenance'> & Partial<Pick<ToolReview, 'verification'>>;

export interface FactSources {
  readonly states: Pick<PromotionStates, 'get'>;
  readonly audit: Pick<NatsAudit, 'read'>;
}

/** The panel of a promotion answers these questions in this order. */
const QUESTIONS = ['safety', 'correctness'];
const PAGE_RECORDS = 5_000;
/** A namespace with more records has them all in the audit stream; the page has the oldest ones of the tool. */
const MAX_RECORDS = 100_000;
const MAX_REFERENCES = 1_000;

/** The verification, verdicts and records of a tool that an agent forged. Without a decided promotion only the records. Throws TEMPER_BUS_*. */
export async function recordedFacts(
  { states, audit }: FactSources,
  { namespace, digest, agentUid }: { namespace: string; digest: Digest; agentUid: string | undefined },
): Promise<RecordedFacts> {
  const provenance = await referencesTo(audit, namespace, digest);
  const record = agentUid === undefined ? undefined : (await states.get({ agentUid, digest })).record;
  if (record?.state !== 'Promoted') return { verdicts: [], provenance };
  return { verification: verificationOf(record.figures), verdicts: record.verdicts.map(verdictOf), provenance };
}

function verificationOf(figures: RerunFigures): Verification {
  const { tests, failedTests, reruns, successes, distinctInputs, observedAnswers, reportedAnswers } = figures;
  return {
    tests: { passed: tests - failedTests, failed: failedTests, problems: [] },
    // The verifier counts an input once per root message.
    reruns: {
      succeeded: successes,
      total: reruns,
      distinctInputs,
      rootMessages: distinctInputs,
      observedAnswers,
      reportedAnswers,
    },
  };
}

function verdictOf(verdict: JudgeVerdict, index: number): ReviewVerdict {
  const { model, approved, confidence, reasoning, citedLines, judgeIsAuthor } = verdict;
  const question = QUESTIONS[index];
  return {
    ...(question === undefined ? {} : { question }),
    model,
    approved,
    confidence,
    reasoning,
    ...(citedLines === undefined ? {} : { citedLines }),
    ...(judgeIsAuthor === undefined ? {} : { judgeIsAuthor }),
  };
}

async function referencesTo(
  audit: FactSources['audit'],
  namespace: string,
  digest: Digest,
): Promise<ProvenanceReference[]> {
  const found: ProvenanceReference[] = [];
  let after = 0;
  for (let read = 0; read < MAX_RECORDS && found.length < MAX_REFERENCES; read += PAGE_RECORDS) {
    const page = await audit.read(namespace, 'observed', after, PAGE_RECORDS);
    found.push(...page.filter(({ subject, action }) => subject === digest && isListedAction(action)).map(referenceOf));
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE_RECORDS) break;
    after = last.seq;
  }
  return found;
}

function referenceOf({ time, action, actor, seq }: StoredAuditRecord): ProvenanceReference {
  return { time, action, actor, record: `${seq} of the audit stream` };
}
