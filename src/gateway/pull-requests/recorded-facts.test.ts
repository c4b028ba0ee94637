import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { StoredAuditRecord } from '../../nats/audit.ts';
import type { PromotionRecord } from '../../tempering/promotion/promotion-record.ts';
import { type FactSources, recordedFacts } from './recorded-facts.ts';

const DIGEST = `sha256:${'a'.repeat(64)}` as const;
const OF = { namespace: 'team-a', digest: DIGEST, agentUid: 'u-1' };

function aRecord(seq: number, action: string, subject: string = DIGEST): StoredAuditRecord {
  const time = '2031-05-05T12:00:00.000Z';
  return { seq, time, action, actor: 'agent/analyst', evidence: 'observed', subject, facts: {} };
}

const verdict = (model: string, approved: boolean) => ({
  model,
  approved,
  confidence: 0.9,
  reasoning: `${model} has read it`,
  promptDigest: DIGEST,
  citedLines: [3],
});
const PROMOTED = {
  agent: { namespace: 'team-a', name: 'analyst', uid: 'u-1' },
  tool: 'csv_rows',
  digest: DIGEST,
  session: 's-1',
  attempt: 'a-1',
  since: '2031-05-05T12:00:00Z',
  state: 'Promoted',
  note: 'all succeeded',
  concluded: true,
  figures: {
    tests: 10,
    failedTests: 1,
    reruns: 6,
    successes: 5,
    distinctInputs: 4,
    observedAnswers: 0,
    reportedAnswers: 0,
  },
  verdicts: [verdict('one', true), verdict('two', false)],
} satisfies PromotionRecord;

function sourcesWith(record: PromotionRecord | undefined, records: StoredAuditRecord[]): FactSources {
  return {
    states: { get: async ({ agentUid }) => ({ record: agentUid === 'u-1' ? record : undefined, revision: 1 }) },
    audit: {
      read: async (_namespace, _evidence, after, limit) => records.filter(({ seq }) => seq > after).slice(0, limit),
    },
  };
}

describe('what NATS has about a promotion', () => {
  it('the page gets the figures of the verifier, both verdicts with their lines, and the records of the tool', async () => {
    const records = [
      aRecord(3, 'tool.accepted'),
      aRecord(4, 'tool.called'),
      aRecord(5, 'tool.accepted', 'another'),
      aRecord(9, 'tool.promoted'),
    ];
    const facts = await recordedFacts(sourcesWith(PROMOTED, records), OF);
    assert.deepEqual(facts.verification, {
      tests: { passed: 9, failed: 1, problems: [] },
      reruns: { succeeded: 5, total: 6, distinctInputs: 4, rootMessages: 4, observedAnswers: 0, reportedAnswers: 0 },
    });
    assert.deepEqual(
      facts.verdicts.map(({ question, model, approved, citedLines }) => [question, model, approved, citedLines]),
      [
        ['safety', 'one', true, [3]],
        ['correctness', 'two', false, [3]],
      ],
    );
    assert.deepEqual(
      facts.provenance.map(({ action, record }) => `${action} ${record}`),
      ['tool.accepted 3 of the audit stream', 'tool.promoted 9 of the audit stream'],
    );
  });

  it('a promotion that is not decided, or of an agent that is gone, has no figures and no verdicts', async () => {
    const waiting = { ...PROMOTED, state: 'Requested', tries: { failed: 0, lastProblem: '' } } as const;
    for (const [record, of] of [
      [waiting, OF],
      [undefined, OF],
      [PROMOTED, { ...OF, agentUid: undefined }],
    ] as const) {
      assert.deepEqual(await recordedFacts(sourcesWith(record, []), of), { verdicts: [], provenance: [] });
    }
  });

  it('a long stream is read in pages', async () => {
    const records = Array.from({ length: 12_000 }, (_, index) => aRecord(index + 1, 'tool.called'));
    const facts = await recordedFacts(sourcesWith(undefined, [...records, aRecord(12_001, 'tool.promoted')]), OF);
    assert.deepEqual(facts.provenance.length, 1);
  });
});
