import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ApprovalRequest } from '../../api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import { reviewOfObjects } from '../../review/gitops/review-of-objects.ts';
import { renderMarkdown } from '../../review/render/markdown.ts';
import { reviewDocument } from '../../review/review-document.ts';
import type { PromotionRecord } from '../../tempering/promotion/promotion-record.ts';
import { artifactDigest } from '../../tempering/registry/serialization.ts';
import { anArtifact, aVerdict } from '../../tempering/tempering.testing.ts';
import type { ToolStatistics } from '../../tempering/types.ts';
import type { StoredAgent } from '../kube/types.ts';
import { MemoryPromotions } from '../promotion/memory-promotions.testing.ts';
import { aTool, NONCE } from '../tool/tool.testing.ts';
import { requestEvidence } from './request-evidence.ts';
import { requestObject } from './request-object.ts';

const ARTIFACT = anArtifact('csv_rows');
const DIGEST = artifactDigest(ARTIFACT);
const TOOL = aTool({ tier: 'Agent', agent: 'analyst', digest: DIGEST });
const AGENT = { metadata: { name: 'analyst', uid: 'u-1', namespace: 'team-a' } } as StoredAgent;
const FIGURES = {
  tests: 3,
  failedTests: 0,
  reruns: 6,
  successes: 5,
  distinctInputs: 4,
  observedAnswers: 2,
  reportedAnswers: 1,
};

function aStatistics(): ToolStatistics {
  return {
    totalUses: 40,
    successes: 38,
    failures: 2,
    reportedUses: 40,
    distinctInputs: 9,
    rootMessages: 7,
    agents: 1,
    sessions: 3,
    averageMilliseconds: 1,
    successRate: 0.95,
    recent: { uses: 20, failures: 0 },
    recordedInputs: { none: 9, observed: 0, reported: 0 },
    unrecorded: {},
  };
}

async function aStore(verdicts: Partial<ReturnType<typeof aVerdict>>[] = []): Promise<MemoryPromotions> {
  const store = new MemoryPromotions();
  store.uses = aStatistics();
  const promoted = {
    state: 'Promoted',
    note: 'n',
    concluded: true,
    figures: FIGURES,
    verdicts: verdicts.map(aVerdict),
  };
  const subject = { agent: { namespace: 'team-a', name: 'analyst', uid: 'u-1' }, tool: 'csv_rows', digest: DIGEST };
  const record = { ...subject, session: 's', attempt: 'a', since: '2031-05-05T00:00:00Z', ...promoted };
  await store.write(record as PromotionRecord, 0);
  return store;
}

function requestWith(evidence: Awaited<ReturnType<typeof requestEvidence>>): ApprovalRequest {
  const facts = { tool: TOOL, agent: AGENT, nonce: NONCE, attempt: ' 0', agents: ['analyst'], replaced: undefined };
  return requestObject({ ...facts, evidence, times: {} });
}

/** The page that `kubectl temper requests NAME` prints. */
function pageOf(request: ApprovalRequest): string {
  const metadata = { name: TOOL.metadata.name, namespace: 'team-a' };
  const spec = { artifact: ARTIFACT, digest: DIGEST, tier: 'Agent' } as const;
  const tool = { apiVersion: 'temper.dev/v1alpha1', kind: 'EmergentTool', metadata, spec } as EmergentTool;
  const options = { namespace: 'team-a', nonce: NONCE, approvedBy: 'undecided' };
  return renderMarkdown(reviewDocument(reviewOfObjects({ tool, request, approvals: [], tools: [tool] }, options)));
}

describe('the facts of a request for tier Shared', () => {
  it('figures of the operator, claims of pods and verdicts stand apart, in the object and on the page', async () => {
    const verdict = {
      model: 'replay/safety',
      confidence: 0.876,
      citedLines: [2, 5],
      reasoning: 'line 2 splits the text',
    };
    const evidence = await requestEvidence(await aStore([verdict]), AGENT, TOOL, [AGENT]);
    const { review } = requestWith(evidence).spec;
    assert.deepEqual(review?.verification, {
      tests: 3,
      failedTests: 0,
      reruns: 6,
      successes: 5,
      rootMessages: 4,
      observedAnswers: 2,
      reportedAnswers: 1,
    });
    assert.deepEqual(review.uses, { total: 40, succeeded: 38, reported: 40, distinctInputs: 9, rootMessages: 7 });
    assert.deepEqual(
      review.verdicts?.map(({ confidencePercent, citedLines }) => [confidencePercent, citedLines]),
      [[88, [2, 5]]],
    );
    const page = pageOf(requestWith(evidence));
    for (const text of [
      /3 passed, 0 failed/,
      /5 of 6/,
      /Signed by a gateway that carried them: in 2 of/,
      /Only reported by a pod: in 1 of/,
      /Only claimed: 40 of 40/,
      /` analyst `: 40 uses, of which 38 succeeded, in 3 sessions, 7 root messages/,
      /confidence 88 %/,
      /2, 5/,
    ])
      assert.match(page, text);
    assert.match(page, /line 2 splits the text/);
  });

  it('each agent that has the tool is listed once, and one without uses is not', async () => {
    const store = await aStore();
    const byAgent: Record<string, number> = { 'u-1': 4, 'u-2': 0, 'u-3': 6 };
    store.statistics = async (uid: string) => ({ ...aStatistics(), totalUses: byAgent[uid] ?? 0 });
    const holders = Object.keys(byAgent).map(
      (uid) => ({ metadata: { ...AGENT.metadata, name: uid, uid } }) as StoredAgent,
    );
    const { usedBy, uses } = await requestEvidence(store, AGENT, TOOL, holders);
    assert.deepEqual(
      usedBy?.map(({ name, uses: count }) => [name, count]),
      [
        ['analyst', 4],
        ['u-3', 6],
      ],
    );
    assert.equal(uses?.total, 4);
  });

  it('a hostile reviewer fills no object and prints no control character', async () => {
    const hostile = {
      reasoning: `\u001b]52;c;x\u0007${'x'.repeat(100_000)}`,
      model: 'm'.repeat(5_000),
      confidence: Number.NaN,
      citedLines: [-1, 1.5, 1e9, ...Array.from({ length: 10_000 }, (_, line) => line)],
    };
    const evidence = await requestEvidence(await aStore(Array.from({ length: 50 }, () => hostile)), AGENT, TOOL, [
      AGENT,
    ]);
    const text = JSON.stringify(requestWith(evidence));
    assert.ok(text.length < 64 * 1_024, `${text.length} bytes`);
    assert.ok(!text.includes('\\u001b') && !text.includes('\\u0007'));
    assert.deepEqual([evidence.verdicts?.length, evidence.verdicts?.[0]?.citedLines.length], [8, 100]);
  });

  it('a promotion that NATS lost leaves the facts out instead of inventing them', async () => {
    const store = await aStore();
    store.states.clear();
    const evidence = await requestEvidence(store, AGENT, TOOL, [AGENT]);
    assert.deepEqual(Object.keys(evidence), ['uses', 'usedBy']);
  });
});
