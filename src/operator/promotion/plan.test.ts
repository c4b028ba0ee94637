import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { promotionRules } from '../../tempering/promotion/promotion-rules.ts';
import { anArtifact, aVerdict } from '../../tempering/tempering.testing.ts';
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
const BASE = { now: NOW, agentExists: true, rules: promotionRules({}), tainted: false, policyGaps: [] };
const FIGURES = {
  tests: 1,
  failedTests: 0,
  reruns: 5,
  successes: 5,
  distinctInputs: 5,
  observedAnswers: 0,
  reportedAnswers: 0,
};
const NONE = { tests: 0, uses: 0 };
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
  record: { ...SUBJECT, state: 'PanelReview', figures: FIGURES, facts: {}, questions: [] },
  review: undefined,
  sourceWithheld: false,
  ...change,
});
const examining = (change: Partial<Extract<ObservedPromotion, { record: { state: 'Examining' } }>>) =>
  ({
    ...BASE,
    record: {
      ...SUBJECT,
      state: 'Examining',
      tries: TRIES,
      pod: { name: 'v', uid: 'u-v' },
      deadline: '2026-05-04T12:10:00Z',
      figures: FIGURES,
      rounds: [],
    },
    progress: undefined,
    podProblem: undefined,
    testers: [],
    toolGaps: [],
    dependencies: new Map(),
    sourceWithheld: false,
    ...change,
  }) satisfies ObservedPromotion;
const awaiting = (change: object): ObservedPromotion => ({
  ...BASE,
  record: {
    ...SUBJECT,
    state: 'AwaitingApproval',
    request: 'double-1',
    nonce: 'nonce-0123456789abcdef',
    verdicts: [],
    figures: FIGURES,
    facts: {},
    questions: [],
  },
  verdict: { decision: 'Pending', ignored: [] },
  hasRequest: false,
  timeout: 'None',
  pendingOfAgent: 0,
  toolExists: true,
  ...change,
});
const AN_APPROVAL = {
  name: 'yes',
  createdAt: '2026-05-04T11:59:00Z',
  nonce: 'nonce-0123456789abcdef',
  subject: { promotion: { tool: 'double', digest: SUBJECT.digest, tier: 'Agent' } },
  by: 'alice',
} as const;
/** A report with a check that found two disagreements. */
const reportOf = (consequence?: 'Refuse' | 'Ask') => ({
  kind: 'report' as const,
  report: {
    digest: SUBJECT.digest,
    claims: [],
    checks:
      consequence === undefined
        ? []
        : [
            {
              check: 'determinism' as const,
              consequence,
              cases: 9,
              disagreements: 2,
              examples: [{ input: '{}', got: '1', reason: 'two outputs' }],
            },
          ],
    testers: [],
    inputs: 9,
  },
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
    const figures = (change: object) =>
      stageOf(verifying({ result: { kind: 'figures', figures: { ...FIGURES, ...change }, contradicted: NONE } }));
    assert.equal(figures({ failedTests: 1 }).state, 'Rejected');
    assert.equal(figures({ successes: 3 }).state, 'Rejected');
    assert.equal(figures({ reruns: 3, successes: 3, distinctInputs: 3 }).state, 'Candidate');
    assert.deepEqual(figures({}), {
      state: 'Examining',
      tries: TRIES,
      pod: { name: 'v', uid: 'u-v' },
      deadline: '2026-05-04T12:10:00.000Z',
      figures: FIGURES,
      rounds: [],
    });
    const result = { kind: 'figures', figures: FIGURES, contradicted: { tests: 0, uses: 1 } } as const;
    const lied = stageOf(verifying({ result }));
    assert.ok(lied.state === 'Rejected' && lied.evidence?.contradicted?.uses === 1, 'one contradicted report refuses');
  });

  it('the report of an examination refuses, asks a user after the panel, or leads to the panel', () => {
    const clean = stageOf(examining({ progress: reportOf() }));
    assert.ok(clean.state === 'PanelReview' && clean.questions.length === 0);
    const refused = stageOf(examining({ progress: reportOf('Refuse') }));
    assert.ok(refused.state === 'Rejected' && /examination: determinism: 2 of 9 cases/.test(refused.reason));
    assert.equal(refused.notBefore, '2026-05-05T12:00:00.000Z');
    const asked = stageOf(examining({ progress: reportOf('Ask') }));
    assert.ok(asked.state === 'PanelReview');
    assert.deepEqual(
      asked.questions.map(({ topic, cases }) => [topic, cases.length]),
      [['determinism', 1]],
    );
    const { questions } = asked;
    const record = { ...SUBJECT, state: 'PanelReview', figures: FIGURES, facts: {}, questions } as const;
    assert.equal(planPromotion(reviewing({ record, review: panel(true) })).step, 'awaitApproval');
    assert.equal(stageOf(reviewing({ record, review: panel(false) })).state, 'Rejected');
  });

  it('an examination waits for its round, goes on with the next one, and starts again without usable outputs', () => {
    assert.deepEqual(planPromotion(examining({})), { step: 'wait' });
    const run = { artifact: anArtifact(), inputs: [] };
    assert.deepEqual(planPromotion(examining({ progress: { kind: 'round', run } })), { step: 'runRound' });
    assert.deepEqual(planPromotion(examining({ progress: { kind: 'testers' } })), {
      step: 'askTesters',
      repetition: 0,
    });
    for (const change of [
      { podProblem: 'pod v was deleted' },
      { progress: { kind: 'unusable', problem: 'x' } as const },
      { now: new Date('2026-05-04T12:10:00Z') },
      { progress: { kind: 'round', run } as const, now: new Date('2026-05-04T12:10:00Z') },
    ])
      assert.equal(stageOf(examining(change)).state, 'Requested', JSON.stringify(change));
    assert.equal(stageOf(examining({ toolGaps: ['it calls "x"'] })).state, 'Candidate');
  });

  it('a user decides where the policy, a disagreement of the reviewers or the examination asks for it', () => {
    const rules = promotionRules({ promotion: { toAgent: { requireHuman: true } } });
    assert.equal(planPromotion(reviewing({ rules, review: panel(true) })).step, 'awaitApproval');
    const disagreement = panel(false, { userDecides: 'the two reviewers disagree' });
    assert.equal(planPromotion(reviewing({ review: disagreement })).step, 'awaitApproval');
    const by = (decision: 'Approve' | 'Deny' | 'Revoke') => ({
      decision,
      approval: { ...AN_APPROVAL, decision },
    });
    assert.deepEqual(planPromotion(awaiting({})), { step: 'requestApproval' });
    assert.deepEqual(planPromotion(awaiting({ pendingOfAgent: 5 })), { step: 'wait', forMs: 60_000 });
    assert.deepEqual(planPromotion(awaiting({ hasRequest: true })), { step: 'wait', forMs: 60_000 });
    const approved = stageOf(awaiting({ verdict: by('Approve') }));
    assert.ok(approved.state === 'Promoted' && /approved by alice/.test(approved.note));
    for (const decision of ['Deny', 'Revoke'] as const) {
      const denied = stageOf(awaiting({ verdict: by(decision) }));
      assert.ok(denied.state === 'Rejected' && denied.notBefore === '2026-05-05T12:00:00.000Z');
    }
    assert.equal(stageOf(awaiting({ toolExists: false })).state, 'Candidate');
  });

  it('a timeout of the policy denies a promotion as a user does, and the status of its request decides when', () => {
    const approved = { verdict: { decision: 'Approve', approval: { ...AN_APPROVAL, decision: 'Approve' } } };
    for (const verdict of [{}, approved]) {
      const due = awaiting({ hasRequest: true, timeout: 'Due', ...verdict });
      assert.deepEqual(planPromotion(due), { step: 'wait' });
      const denied = stageOf(awaiting({ hasRequest: true, timeout: 'Denied', ...verdict }));
      assert.ok(denied.state === 'Rejected' && denied.notBefore === '2026-05-05T12:00:00.000Z');
      assert.match(denied.reason, /no approver decided before its timeout/);
    }
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
      verifying({ policyGaps, result: { kind: 'figures', figures: FIGURES, contradicted: NONE } }),
      examining({ policyGaps, progress: reportOf() }),
      awaiting({ policyGaps }),
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
