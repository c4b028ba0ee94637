import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openAudit } from '../../audit/recorded-trail.ts';
import { TemperError } from '../../lib/errors.ts';
import { type Json, textAt } from '../../lib/json.ts';
import { memoryRecordStore, type RecordStore } from '../../lib/record-store.ts';
import type { ApprovalDecision, ApprovalInput, PromotionApprovals } from '../../tools/approvals.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { createDemotion } from './demotion.ts';
import type { Examiner } from '../examination/types.ts';
import type { PanelVerdict } from '../judge/panel.ts';
import { createPromotion, type Promotion } from './promotion.ts';
import { promotionRules, type PromotionRules } from './promotion-rules.ts';
import type { FakeClock } from '../../lib/fake-clock.testing.ts';
import { openRegistry, type Registry } from '../registry/registry.ts';
import {
  aCaller,
  anAcceptance,
  anArtifact,
  anOp,
  aUse,
  aVerdict,
  anExaminer,
  createFakeClock,
  aSourceStore,
} from '../tempering.testing.ts';
import type { Evidence, RerunOutcome, Verifier } from '../types.ts';

const OWNER = { agent: 'analyst', namespace: 'team-a' };
const DAY = 24 * 3_600_000;

interface Fixture {
  registry: Registry;
  promotion: Promotion;
  demotion: ReturnType<typeof createDemotion>;
  events: AgentEvent[];
  clock: FakeClock;
  asked: ApprovalInput[];
  panelCalls: { count: number };
  decide(decision: ApprovalDecision): void;
}

interface FixtureOptions {
  rules?: Partial<PromotionRules>;
  verifier?: Partial<Verifier>;
  examiner?: Examiner;
  panel?: () => Promise<PanelVerdict>;
  persistSource?: boolean;
  agentTools?: number;
  records?: RecordStore;
}

/** A verifier that computes the outputs of the doubling tool, like a fresh runner. */
const faithful: Verifier = {
  tests: async (artifact) => ({ passed: artifact.tests.length, failed: 0, problems: [] }),
  outputs: async (_artifact, inputs) => inputs.map(doubled),
  replay: async (_artifact, uses) => uses.map(({ input }) => doubled(input)),
};

function doubled(input: Json): RerunOutcome {
  return { ok: true, output: { result: 2 * (input as { value: number }).value } };
}

function approval(confidence = 0.91): PanelVerdict {
  return {
    approved: true,
    confidence,
    reasoning: 'both agree',
    verdicts: [aVerdict({ confidence }), aVerdict({ confidence: 0.95 })],
  };
}

async function createFixture(options: FixtureOptions = {}): Promise<Fixture> {
  const records = options.records ?? memoryRecordStore();
  const clock = createFakeClock();
  const audit = await openAudit({ records, clock });
  const sources = await aSourceStore(records);
  const registry = await openRegistry({ records, audit, clock, builtIn: new Set(), sources });
  const events: AgentEvent[] = [];
  const asked: ApprovalInput[] = [];
  const panelCalls = { count: 0 };
  const answer = Promise.withResolvers<ApprovalDecision>();
  const approvals: PromotionApprovals = {
    async request(ask) {
      if (!asked.some(({ subject }) => subject === ask.subject)) asked.push(ask);
      return `request-${asked.findIndex(({ subject }) => subject === ask.subject) + 1}`;
    },
    waitForDecision: () => answer.promise,
  };
  const verifier = { ...faithful, ...options.verifier };
  const rules = (): PromotionRules => ({ ...promotionRules({}), ...options.rules });
  const shared = {
    registry,
    verifier,
    schemas: createSchemaCompiler(),
    events: (event: AgentEvent) => events.push(event),
    rules,
  };
  let nonces = 0;
  const promotion = createPromotion({
    ...shared,
    examiner: options.examiner ?? anExaminer(),
    panel: {
      async review() {
        panelCalls.count += 1;
        return options.panel === undefined ? approval() : options.panel();
      },
    },
    approvals,
    audit,
    records,
    clock,
    nonce: () => `nonce-${(nonces += 1)}`,
    limits: () => ({ sessionTools: 10, agentTools: options.agentTools ?? 50 }),
    persistSource: () => options.persistSource ?? true,
  });
  return {
    registry,
    promotion,
    demotion: createDemotion(shared),
    events,
    clock,
    asked,
    panelCalls,
    decide: answer.resolve,
  };
}

const artifact = anArtifact();
const { digest } = anAcceptance(artifact);

/** Registers the tool and records successful uses from different messages. */
async function useOften({ registry }: Fixture, uses = 5): Promise<void> {
  await registry.register(anAcceptance(artifact), aCaller());
  for (let value = 0; value < uses; value += 1) {
    await registry.recordUse(aUse(artifact, { value }, { rootMessage: `m-${value}`, evidence: 'reported' }));
  }
}

describe('promotion to tier Agent', () => {
  it('a tool stays a candidate until its uses suffice, and the state lists the missing requirements', async () => {
    const fixture = await createFixture();
    await useOften(fixture, 2);
    const state = await fixture.promotion.evaluate(digest, OWNER, anOp());
    assert.deepEqual(state, {
      state: 'Candidate',
      missing: ['2 of 5 successful uses', '2 of 3 distinct inputs', '2 of 3 root messages'],
    });
    assert.equal(fixture.panelCalls.count, 0);
  });
  it('a tool passes verification and panel and becomes a new object', async () => {
    const fixture = await createFixture();
    await useOften(fixture);
    assert.deepEqual(await fixture.promotion.evaluate(digest, OWNER, anOp()), { state: 'Promoted', to: 'Agent' });
    assert.equal(fixture.registry.resolve('analyst', 'team-a', 'another')[0]?.tier, 'Agent');
    assert.deepEqual(
      fixture.events.map((event) => (event.type === 'promotion' ? event.state : event.type)),
      ['Verifying', 'PanelReview', 'Promoted'],
    );
    assert.equal(fixture.registry.get(digest)?.verdicts.length, 3);
    assert.deepEqual(await fixture.promotion.evaluate(digest, OWNER, anOp()), { state: 'Promoted', to: 'Agent' });
    assert.equal(fixture.panelCalls.count, 1);
  });
  it('a promotion beyond the limit waits, or deactivates the least used tool, which it names before', async () => {
    const other = anArtifact('other', { description: 'Doubles it.' });
    const fill = async (fixture: Fixture): Promise<void> => {
      await fixture.registry.register(anAcceptance(other), aCaller());
      const order = { owner: OWNER, verdicts: [], actor: 'system', limits: { sessionTools: 9, agentTools: 9 } };
      const { digest: otherDigest } = anAcceptance(other);
      await fixture.registry.promote({ ...order, digest: otherDigest, to: 'Agent', sourceWithheld: false });
      await useOften(fixture);
    };
    const strict = await createFixture({ agentTools: 1 });
    await fill(strict);
    const waits = await strict.promotion.evaluate(digest, OWNER, anOp());
    assert.match(JSON.stringify(waits), /has 1 of 1 forged tools/);

    const open = await createFixture({ agentTools: 1, rules: { whenFull: 'DeactivateLeastUseful' } });
    await fill(open);
    assert.deepEqual(await open.promotion.evaluate(digest, OWNER, anOp()), { state: 'Promoted', to: 'Agent' });
    const [first] = open.events;
    assert.match(first?.type === 'promotion' ? first.note : '', /"other".* is deactivated for it/);
    const names = open.registry.resolve('analyst', 'team-a', 's-1').map((tool) => tool.artifact.name);
    assert.deepEqual(names, ['double']);
    assert.ok(open.events.some((event) => event.type === 'demotion' && event.tool === 'other'));
  });
  it('answers that only a pod reported carry no promotion by default, tier Agent with the policy, and never tier Shared', async () => {
    const useWithAnswers = async ({ registry }: Fixture, evidence: Evidence, from = 0): Promise<void> => {
      for (let value = from; value < from + 5; value += 1) {
        const call = { name: 'fetch', input: {}, answer: { ok: true, value: 'a lie' }, evidence } as const;
        const recording = { ok: true as const, recording: { calls: [call] } };
        await registry.recordUse(aUse(artifact, { value }, { rootMessage: `m-${value}`, evidence, recording }));
      }
    };
    const strict = await createFixture();
    await strict.registry.register(anAcceptance(artifact), aCaller());
    await useWithAnswers(strict, 'reported');
    const denied = await strict.promotion.evaluate(digest, OWNER, anOp());
    assert.ok(denied.state === 'Candidate');
    assert.match(denied.missing.join(), /0 of 5 recorded uses .*5 have answers that only the pod reported.*is Deny/);
    assert.equal(strict.events.length, 0, 'no verification starts');
    const open = await createFixture({ rules: { reportedEvidence: 'Allow' } });
    await open.registry.register(anAcceptance(artifact), aCaller());
    await useWithAnswers(open, 'reported');
    assert.equal((await open.promotion.evaluate(digest, OWNER, anOp())).state, 'Promoted');
    const notes = open.events.map((event) => (event.type === 'promotion' ? event.note : ''));
    assert.match(notes.join(), /recorded answers: 0 observed, 5 reported by the pod/);
    const shared = await open.promotion.requestShared(digest, OWNER, anOp());
    assert.ok(shared.state === 'Candidate');
    assert.match(shared.missing.join(), /tier Shared needs observed answers/);
    await useWithAnswers(open, 'observed', 5);
    assert.equal((await open.promotion.requestShared(digest, OWNER, anOp())).state, 'AwaitingApproval');
  });
  it('observed answers do not carry a tool to tier Shared when their replay fails', async () => {
    const isReplayed = { fails: false };
    const fixture = await createFixture({
      verifier: {
        replay: async (_artifact, uses) =>
          uses.map(({ input }) =>
            isReplayed.fails ? { ok: false, code: 'TEMPER_REPLAY_MISMATCH', message: 'other' } : doubled(input),
          ),
      },
    });
    await fixture.registry.register(anAcceptance(artifact), aCaller());
    for (let value = 0; value < 5; value += 1) {
      const recording = { ok: true as const, recording: { calls: [] } };
      await fixture.registry.recordUse(aUse(artifact, { value }, { rootMessage: `m-${value}`, recording }));
    }
    assert.equal((await fixture.promotion.evaluate(digest, OWNER, anOp())).state, 'Promoted');
    isReplayed.fails = true;
    assert.equal((await fixture.promotion.requestShared(digest, OWNER, anOp())).state, 'Rejected');
    assert.equal(fixture.asked.length, 0);
  });
  it('many uses within one message do not start a promotion', async () => {
    const fixture = await createFixture();
    await fixture.registry.register(anAcceptance(artifact), aCaller());
    for (let value = 0; value < 20; value += 1) await fixture.registry.recordUse(aUse(artifact, { value }));
    const state = await fixture.promotion.evaluate(digest, OWNER, anOp());
    assert.deepEqual(state, { state: 'Candidate', missing: ['1 of 3 root messages'] });
  });
  it('the success rate must exceed the percentage', async () => {
    const fixture = await createFixture();
    await useOften(fixture, 8);
    for (const value of [101, 102]) await fixture.registry.recordUse(aUse(artifact, { value }, { succeeded: false }));
    const state = await fixture.promotion.evaluate(digest, OWNER, anOp());
    assert.deepEqual(state, {
      state: 'Candidate',
      missing: ['the success rate is 80 % (8 of 10), more than 80 % needed'],
    });
  });
  it('the Wilson lower bound replaces the success rate when the policy configures it', async () => {
    const fixture = await createFixture({ rules: { confidenceBound: 'Wilson' } });
    await useOften(fixture, 15);
    assert.equal((await fixture.promotion.evaluate(digest, OWNER, anOp())).state, 'Candidate');
    await fixture.registry.recordUse(aUse(artifact, { value: 16 }, { rootMessage: 'm-16' }));
    assert.equal((await fixture.promotion.evaluate(digest, OWNER, anOp())).state, 'Promoted');
  });
  it('a promotion needs the minimum confidence of the creation judge', async () => {
    const fixture = await createFixture();
    const doubtful = anAcceptance(artifact, { verdict: aVerdict({ confidence: 0.75 }) });
    await fixture.registry.register(doubtful, aCaller());
    for (let value = 0; value < 5; value += 1)
      await fixture.registry.recordUse(aUse(artifact, { value }, { rootMessage: `m-${value}` }));
    const state = await fixture.promotion.evaluate(digest, OWNER, anOp());
    assert.deepEqual(state, { state: 'Candidate', missing: ['confidence of the judge is 75 %, 80 % needed'] });
  });
  it('the re-runs decide, regardless of the reported uses', async () => {
    const fixture = await createFixture({
      verifier: {
        replay: async (_tool, inputs) =>
          inputs.map(() => ({ ok: false, code: 'TEMPER_SANDBOX_EXCEPTION', message: 'no' })),
      },
    });
    await useOften(fixture);
    const state = await fixture.promotion.evaluate(digest, OWNER, anOp());
    assert.equal(state.state, 'Rejected');
    assert.equal(fixture.panelCalls.count, 0);
    assert.equal(fixture.registry.get(digest)?.tier, 'Session');
  });
  it('an output that violates its schema counts as a failed re-run', async () => {
    const fixture = await createFixture({
      verifier: { replay: async (_tool, inputs) => inputs.map(() => ({ ok: true, output: { result: 'four' } })) },
    });
    await useOften(fixture);
    assert.equal((await fixture.promotion.evaluate(digest, OWNER, anOp())).state, 'Rejected');
  });
  it('a test that fails in a fresh runner ends the promotion', async () => {
    const fixture = await createFixture({
      verifier: { tests: async () => ({ passed: 0, failed: 1, problems: ['case 1'] }) },
    });
    await useOften(fixture);
    const state = await fixture.promotion.evaluate(digest, OWNER, anOp());
    assert.ok(state.state === 'Rejected' && state.reason.includes('1 of 1 tests failed'));
  });
  it('a rejected tool gets no new panel review before the cool-down ends', async () => {
    const fixture = await createFixture({
      panel: async () => ({
        ...approval(),
        approved: false,
        code: 'TEMPER_JUDGE_REFUSED',
        reasoning: 'hides a trigger',
      }),
    });
    await useOften(fixture);
    const first = await fixture.promotion.evaluate(digest, OWNER, anOp());
    assert.deepEqual(first, {
      state: 'Rejected',
      reason: 'panel: hides a trigger',
      coolDownUntil: '2026-03-02T09:00:00.000Z',
    });
    fixture.clock.skip(DAY - 1);
    assert.deepEqual(await fixture.promotion.evaluate(digest, OWNER, anOp()), first);
    assert.equal(fixture.panelCalls.count, 1);
    fixture.clock.skip(2);
    await fixture.promotion.evaluate(digest, OWNER, anOp());
    assert.equal(fixture.panelCalls.count, 2);
  });
  it('an unavailable panel is retried after ten minutes', async () => {
    const fixture = await createFixture({
      panel: async () => ({ ...approval(0), approved: false, code: 'TEMPER_JUDGE_UNAVAILABLE', reasoning: 'none' }),
    });
    await useOften(fixture);
    const state = await fixture.promotion.evaluate(digest, OWNER, anOp());
    assert.ok(state.state === 'Rejected' && state.coolDownUntil === '2026-03-01T09:10:00.000Z');
  });
  it('an examination that refuses ends the promotion before the panel, and its report is stored', async () => {
    const records = memoryRecordStore();
    const examples = [{ input: '{"value":1}', got: '{"result":3}', reason: 'learned' }];
    const check = { check: 'memorized-tests', consequence: 'Refuse', cases: 2, disagreements: 2 } as const;
    const examiner = anExaminer({ checks: [{ ...check, examples }] });
    const fixture = await createFixture({ examiner, records });
    await useOften(fixture);
    const state = await fixture.promotion.evaluate(digest, OWNER, anOp());
    assert.ok(state.state === 'Rejected' && state.reason === 'examination: memorized-tests: 2 of 2 cases: learned');
    assert.equal(fixture.panelCalls.count, 0);
    const [stored] = await records.list('examinations/team-a');
    assert.equal(textAt(stored?.value, ['digest']), digest);
  });
  it('a question of the examination goes to a user after the panel has approved', async () => {
    const tester = { model: 'a/b', cases: 5, dropped: 0, disagreements: 1, examples: [], promptDigest: '' };
    const examiner = anExaminer({
      testers: [
        { ...tester, verdict: 'Disagrees' },
        { ...tester, verdict: 'Agrees', disagreements: 0 },
      ],
    });
    const fixture = await createFixture({ examiner });
    await useOften(fixture);
    const state = await fixture.promotion.evaluate(digest, OWNER, anOp());
    assert.deepEqual(state, { state: 'AwaitingApproval', request: 'request-1' });
    assert.equal(fixture.panelCalls.count, 1);
    assert.match(fixture.asked[0]?.reason ?? '', /its examination leaves questions \(testers\)/);
    const [subject] = await fixture.promotion.awaitingApproval();
    assert.ok(subject);
    fixture.decide({ decision: 'Approve', by: 'user/ann', reason: 'the case is wrong' });
    assert.deepEqual(await fixture.promotion.awaitDecision(subject, anOp()), { state: 'Promoted', to: 'Agent' });
  });
  it('an examination gets the other version of the same name that its agent forged', async () => {
    const replaced: (string | undefined)[] = [];
    const examiner: Examiner = {
      examine: (subject, op) => {
        replaced.push(subject.replaced?.description);
        return anExaminer().examine(subject, op);
      },
    };
    const fixture = await createFixture({ examiner });
    const earlier = anArtifact('double', { description: 'The earlier version.' });
    await fixture.registry.register(anAcceptance(earlier), aCaller());
    await fixture.registry.demote(anAcceptance(earlier).digest, 'replaced', 'user/ann');
    await useOften(fixture);
    await fixture.promotion.evaluate(digest, OWNER, anOp());
    assert.deepEqual(replaced, ['The earlier version.']);
  });
  it('a promotion needs the minimum confidence of both reviewers', async () => {
    const fixture = await createFixture({ panel: async () => approval(0.79) });
    await useOften(fixture);
    assert.equal((await fixture.promotion.evaluate(digest, OWNER, anOp())).state, 'Rejected');
  });
  it('concurrent uses of one tool start only one panel review', async () => {
    const gate = Promise.withResolvers<PanelVerdict>();
    const fixture = await createFixture({ panel: () => gate.promise });
    await useOften(fixture);
    const first = fixture.promotion.evaluate(digest, OWNER, anOp());
    const others = await Promise.all([1, 2, 3].map(() => fixture.promotion.evaluate(digest, OWNER, anOp())));
    for (const state of others) assert.ok(state.state === 'Verifying' || state.state === 'PanelReview');
    gate.resolve(approval());
    assert.equal((await first).state, 'Promoted');
    assert.equal(fixture.panelCalls.count, 1);
  });
  it('an unavailable sandbox leaves the tool a candidate', async () => {
    const fixture = await createFixture({
      verifier: {
        tests: async () => {
          throw new TemperError('TEMPER_SANDBOX_UNAVAILABLE', 'no engine');
        },
      },
    });
    await useOften(fixture);
    const state = await fixture.promotion.evaluate(digest, OWNER, anOp());
    assert.deepEqual(state, { state: 'Candidate', missing: ['TEMPER_SANDBOX_UNAVAILABLE: no engine'] });
  });
  it('a composed tool that calls a session tool is not promoted', async () => {
    const fixture = await createFixture();
    await fixture.registry.register(anAcceptance(artifact), aCaller());
    const composed = anArtifact('composed', {
      implementation: {
        mode: 'Compose',
        steps: [{ name: 'one', tool: `double@${digest}`, inputMapping: '{"value":"$input.value"}' }],
      },
    });
    await fixture.registry.register(anAcceptance(composed), aCaller());
    for (let value = 0; value < 5; value += 1)
      await fixture.registry.recordUse(aUse(composed, { value }, { rootMessage: `m-${value}` }));
    const state = await fixture.promotion.evaluate(anAcceptance(composed).digest, OWNER, anOp());
    assert.deepEqual(state, { state: 'Candidate', missing: ['it calls "double", which is at tier Session'] });
  });
  it('a promotion awaits an approval when the policy requires one and continues once it is approved', async () => {
    const fixture = await createFixture({ rules: { requireHuman: true } });
    await useOften(fixture);
    assert.deepEqual(await fixture.promotion.evaluate(digest, OWNER, anOp()), {
      state: 'AwaitingApproval',
      request: 'request-1',
    });
    assert.deepEqual(await fixture.promotion.evaluate(digest, OWNER, anOp()), {
      state: 'AwaitingApproval',
      request: 'request-1',
    });
    assert.equal(fixture.panelCalls.count, 1);
    const [subject] = await fixture.promotion.awaitingApproval();
    assert.ok(subject);
    fixture.decide({ decision: 'Approve', by: 'user/ann', reason: 'fine' });
    assert.deepEqual(await fixture.promotion.awaitDecision(subject, anOp()), { state: 'Promoted', to: 'Agent' });
    assert.deepEqual(await fixture.promotion.awaitingApproval(), []);
  });
});

describe('promotion to tier Shared', () => {
  async function atAgentTier(options: FixtureOptions = {}): Promise<Fixture> {
    const fixture = await createFixture(options);
    await useOften(fixture);
    await fixture.promotion.evaluate(digest, OWNER, anOp());
    return fixture;
  }
  it('a promotion to tier Shared always needs an approval for this digest and request', async () => {
    const fixture = await atAgentTier();
    const state = await fixture.promotion.requestShared(digest, OWNER, anOp());
    assert.deepEqual(state, { state: 'AwaitingApproval', request: 'request-1' });
    assert.equal(fixture.registry.get(digest)?.tier, 'Agent');
    const [subject] = await fixture.promotion.awaitingApproval();
    assert.ok(subject);
    fixture.decide({ decision: 'Approve', by: 'user/ann', reason: 'fine' });
    assert.deepEqual(await fixture.promotion.awaitDecision(subject, anOp()), { state: 'Promoted', to: 'Shared' });
    assert.equal(fixture.registry.resolve('writer', 'team-a', 's-9')[0]?.tier, 'Shared');
  });
  it('concurrent waiters for one approval apply the decision once', async () => {
    const fixture = await atAgentTier();
    await fixture.promotion.requestShared(digest, OWNER, anOp());
    const [subject] = await fixture.promotion.awaitingApproval();
    assert.ok(subject);
    const settled = [1, 2, 3].map(() => fixture.promotion.awaitDecision(subject, anOp()));
    fixture.decide({ decision: 'Approve', by: 'user/ann', reason: 'fine' });
    for (const state of await Promise.all(settled)) assert.deepEqual(state, { state: 'Promoted', to: 'Shared' });
    assert.equal(fixture.events.filter(({ type }) => type === 'approval-decided').length, 1);
  });
  it('a tool of tier Session cannot be shared', async () => {
    const fixture = await createFixture();
    await useOften(fixture);
    const state = await fixture.promotion.requestShared(digest, OWNER, anOp());
    assert.equal(state.state, 'Candidate');
    assert.deepEqual(fixture.asked, []);
  });
  it('a denial rejects the promotion, and a retry after the cool-down is a new request', async () => {
    const fixture = await atAgentTier();
    await fixture.promotion.requestShared(digest, OWNER, anOp());
    const [subject] = await fixture.promotion.awaitingApproval();
    assert.ok(subject);
    fixture.decide({ decision: 'Deny', by: 'user/ann', reason: 'not yet' });
    const state = await fixture.promotion.awaitDecision(subject, anOp());
    assert.ok(state.state === 'Rejected' && state.reason.includes('user/ann denied it: not yet'));
    assert.equal((await fixture.promotion.requestShared(digest, OWNER, anOp())).state, 'Rejected');
    fixture.clock.skip(DAY + 1);
    assert.deepEqual(await fixture.promotion.requestShared(digest, OWNER, anOp()), {
      state: 'AwaitingApproval',
      request: 'request-2',
    });
  });
  it('a contributor cannot approve the promotion', async () => {
    const fixture = await atAgentTier();
    await fixture.promotion.requestShared(digest, OWNER, anOp());
    const [subject] = await fixture.promotion.awaitingApproval();
    assert.ok(subject);
    fixture.decide({ decision: 'Approve', by: 'agent/analyst', reason: 'mine' });
    assert.equal((await fixture.promotion.awaitDecision(subject, anOp())).state, 'Rejected');
    assert.equal(fixture.registry.get(digest)?.tier, 'Agent');
  });
  it('a demotion ends a promotion that awaits approval', async () => {
    const fixture = await atAgentTier();
    await fixture.promotion.requestShared(digest, OWNER, anOp());
    const [subject] = await fixture.promotion.awaitingApproval();
    assert.ok(subject);
    await fixture.demotion.demote(digest, 'wrong', 'user/bob');
    fixture.decide({ decision: 'Approve', by: 'user/ann', reason: 'fine' });
    assert.equal((await fixture.promotion.awaitDecision(subject, anOp())).state, 'Candidate');
    assert.deepEqual(fixture.registry.resolve('writer', 'team-a', 's-9'), []);
  });
  it('a tool without a stored source cannot be shared', async () => {
    const fixture = await atAgentTier({ persistSource: false });
    const state = await fixture.promotion.requestShared(digest, OWNER, anOp());
    assert.ok(state.state === 'Candidate' && state.missing[0]?.includes('persistSource'));
  });
  it('an approval is requested only when enough agents have the tool at tier Agent', async () => {
    const fixture = await atAgentTier({ rules: { minAgents: 2 } });
    const state = await fixture.promotion.requestShared(digest, OWNER, anOp());
    assert.deepEqual(state, { state: 'Candidate', missing: ['1 of 2 agents have it at tier Agent'] });
  });
});

describe('demotion of tools', () => {
  it('a tool that fails too often is demoted immediately', async () => {
    const fixture = await createFixture();
    await useOften(fixture, 8);
    await fixture.promotion.evaluate(digest, OWNER, anOp());
    await fixture.registry.recordUse(aUse(artifact, { value: 9 }, { succeeded: false }));
    assert.equal(await fixture.demotion.demoteIfFailing(digest, OWNER), false);
    await fixture.registry.recordUse(aUse(artifact, { value: 10 }, { succeeded: false }));
    assert.equal(await fixture.demotion.demoteIfFailing(digest, OWNER), true);
    assert.deepEqual(fixture.registry.resolve('analyst', 'team-a', 's-1'), []);
    assert.equal(fixture.events.at(-1)?.type, 'demotion');
  });
  it('a failing session tool is not demoted', async () => {
    const fixture = await createFixture();
    await fixture.registry.register(anAcceptance(artifact), aCaller());
    for (let value = 0; value < 12; value += 1)
      await fixture.registry.recordUse(aUse(artifact, { value }, { succeeded: false }));
    assert.equal(await fixture.demotion.demoteIfFailing(digest, OWNER), false);
  });
  it('a tool is demoted when its tests fail in a fresh runner', async () => {
    let healthy = true;
    const fixture = await createFixture({
      verifier: {
        tests: async () => (healthy ? { passed: 1, failed: 0, problems: [] } : { passed: 0, failed: 1, problems: [] }),
      },
    });
    await useOften(fixture);
    await fixture.promotion.evaluate(digest, OWNER, anOp());
    assert.equal(await fixture.demotion.demoteIfTestsFail(digest, OWNER, anOp()), false);
    healthy = false;
    assert.equal(await fixture.demotion.demoteIfTestsFail(digest, OWNER, anOp()), true);
    assert.match(fixture.registry.get(digest)?.inactiveReason ?? '', /1 of 1 tests failed/);
  });
});
