import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { promotionRules } from '../../tempering/promotion/promotion-rules.ts';
import { aVerdict } from '../../tempering/tempering.testing.ts';
import type { ObservedPromotion } from './observed.ts';
import { planPromotion } from './plan.ts';

const NOW = new Date('2026-05-04T12:00:00Z');
const SUBJECT = {
  agent: { namespace: 'team-a', name: 'analyst', uid: 'u-1' },
  tool: 'double',
  digest: `sha256:${'1'.repeat(64)}`,
  session: 's1',
  attempt: 'a-1',
  since: '2026-05-04T11:55:00Z',
} as const;
const BASE = { now: NOW, agentExists: true, rules: promotionRules({}), policyGaps: [] };
const FIGURES = {
  tests: 1,
  failedTests: 0,
  reruns: 5,
  successes: 5,
  distinctInputs: 5,
  observedAnswers: 0,
  reportedAnswers: 0,
};
const TRIES = { failed: 0, lastProblem: '' };

type Verifying = Extract<ObservedPromotion, { record: { state: 'Verifying' } }>;
const verifying = (change: Partial<Verifying> = {}): Verifying => ({
  ...BASE,
  record: {
    ...SUBJECT,
    state: 'Verifying',
    tries: TRIES,
    pod: { name: 'v', uid: 'u-v' },
    deadline: '2026-05-04T12:01:00Z',
    recorded: [],
  },
  result: undefined,
  podProblem: undefined,
  ...change,
});
const reviewing = (change: object = {}): ObservedPromotion => ({
  ...BASE,
  record: { ...SUBJECT, state: 'PanelReview', figures: FIGURES, facts: {} },
  review: undefined,
  ...change,
});
const panel = (approved: boolean, change: object = {}) => ({
  approved,
  confidence: 0.9,
  reasoning: 'because',
  verdicts: [aVerdict({ approved }), aVerdict({ approved })] as never,
  ...change,
});

function stageOf(observed: ObservedPromotion) {
  const step = planPromotion(observed);
  return step.step === 'enter' ? step.stage : assert.fail(JSON.stringify(step));
}

describe('the plan of a promotion', () => {
  it('a verification waits for its pod, and starts again with another one, at most three times', () => {
    assert.deepEqual(planPromotion(verifying()), { step: 'wait' });
    const again = stageOf(verifying({ podProblem: 'pod v was deleted' }));
    assert.deepEqual(again, { state: 'Requested', tries: { failed: 1, lastProblem: 'pod v was deleted' } });
    const late = stageOf(verifying({ now: new Date('2026-05-04T12:01:00Z') }));
    assert.equal(late.state, 'Requested');
    const { record } = verifying();
    const last = verifying({ record: { ...record, tries: { failed: 2, lastProblem: '' } }, podProblem: 'x' });
    const given = stageOf(last);
    assert.ok(given.state === 'Candidate' && given.notBefore === '2026-05-04T13:00:00.000Z');
  });

  it('the figures of the re-runs decide: failed, too few, or enough for the panel', () => {
    const figures = (change: object, refusal?: string) =>
      stageOf(
        verifying({
          result: {
            kind: 'figures',
            figures: { ...FIGURES, ...change },
            facts: { 'generated.cases': 7 },
            contradicted: { tests: 0, uses: 0 },
            ...(refusal === undefined ? {} : { refusal }),
          },
        }),
      );
    assert.equal(figures({ failedTests: 1 }).state, 'Rejected');
    assert.equal(figures({ successes: 3 }).state, 'Rejected');
    assert.equal(figures({ reruns: 3, successes: 3, distinctInputs: 3 }).state, 'Candidate');
    assert.deepEqual(figures({}), { state: 'PanelReview', figures: FIGURES, facts: { 'generated.cases': 7 } });
    const result = { kind: 'figures', figures: FIGURES, facts: {}, contradicted: { tests: 0, uses: 1 } } as const;
    const lied = stageOf(verifying({ result }));
    assert.ok(lied.state === 'Rejected' && lied.evidence?.contradicted?.uses === 1, 'one contradicted report refuses');
    const refused = figures({}, 'generated: 3 of 7 inputs failed');
    assert.ok(refused.state === 'Rejected' && refused.reason === 'generated: 3 of 7 inputs failed');
  });

  it('the panel is asked once per ten minutes, and its verdict is the decision', () => {
    assert.deepEqual(planPromotion(reviewing()), { step: 'askPanel', repetition: 0 });
    const later = new Date('2026-05-04T12:16:00Z');
    assert.deepEqual(planPromotion(reviewing({ now: later })), { step: 'askPanel', repetition: 2 });
    assert.equal(stageOf(reviewing({ review: panel(true) })).state, 'Promoted');
    const refused = stageOf(reviewing({ review: panel(false) }));
    assert.ok(refused.state === 'Rejected' && refused.notBefore === '2026-05-05T12:00:00.000Z');
    const away = stageOf(reviewing({ review: panel(false, { code: 'TEMPER_JUDGE_UNAVAILABLE' }) }));
    assert.ok(away.state === 'Rejected' && away.notBefore === '2026-05-04T12:10:00.000Z');
    assert.equal(stageOf(reviewing({ review: panel(true, { confidence: 0.5 }) })).state, 'Rejected');
  });

  it('a policy that permits no promotion any more stops it in every state before the decision', () => {
    const policyGaps = ['TrustPolicy "p" does not exist; create it'];
    for (const observed of [
      verifying({
        policyGaps,
        result: { kind: 'figures', figures: FIGURES, facts: {}, contradicted: { tests: 0, uses: 0 } },
      }),
      reviewing({ policyGaps, review: panel(true) }),
    ]) {
      assert.deepEqual(stageOf(observed), {
        state: 'Candidate',
        missing: policyGaps,
        notBefore: '2026-05-04T12:10:00.000Z',
      });
    }
  });

  it('a decision without its effects is concluded, one with them is done, and one of a deleted agent is forgotten', () => {
    const promoted = (concluded: boolean, agentExists = true): ObservedPromotion => ({
      ...BASE,
      agentExists,
      record: { ...SUBJECT, state: 'Promoted', note: '', concluded, figures: FIGURES, verdicts: [] },
    });
    assert.deepEqual(planPromotion(promoted(false)), { step: 'conclude' });
    assert.deepEqual(planPromotion(promoted(true)), { step: 'done' });
    assert.deepEqual(planPromotion(promoted(false, false)), { step: 'forget' });
  });
});
