import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openAudit } from '../audit/recorded.ts';
import { TemperError } from '../lib/errors.ts';
import { memoryRecords, type RecordStore } from '../lib/records.ts';
import type { Approvals, ApprovalDecision, Ask } from '../tools/approvals.ts';
import type { AgentEvent } from '../tools/events.ts';
import { createSchemaCompiler } from '../tools/schemas.ts';
import { createDemotion } from './demotion.ts';
import type { PanelVerdict } from './panel.ts';
import { createPromotion, type Promotion } from './promotion.ts';
import { promotionRules, type PromotionRules } from './promotion-rules.ts';
import { openRegistry, type Registry } from './registry.ts';
import { aCaller, anAcceptance, anArtifact, anOp, aUse, aVerdict, handClock, type HandClock } from './testing.ts';
import type { Verifier } from './types.ts';

const OWNER = { agent: 'analyst', namespace: 'team-a' };
const DAY = 24 * 3_600_000;

interface World {
  registry: Registry;
  promotion: Promotion;
  demotion: ReturnType<typeof createDemotion>;
  events: AgentEvent[];
  clock: HandClock;
  asked: Ask[];
  panelCalls: { count: number };
  decide(decision: ApprovalDecision): void;
}

interface WorldOptions {
  rules?: Partial<PromotionRules>;
  verifier?: Partial<Verifier>;
  panel?: () => Promise<PanelVerdict>;
  persistSource?: boolean;
  records?: RecordStore;
}

/** Outputs of the doubling tool, computed here: what a fresh runner would give. */
const faithful: Verifier = {
  tests: async (artifact) => ({ passed: artifact.tests.length, failed: 0, problems: [] }),
  outputs: async (_artifact, inputs) =>
    inputs.map((input) => ({ ok: true, output: { result: 2 * (input as { value: number }).value } })),
};

function yes(confidence = 0.91): PanelVerdict {
  return {
    approved: true,
    confidence,
    reasoning: 'both agree',
    verdicts: [aVerdict({ confidence }), aVerdict({ confidence: 0.95 })],
  };
}

async function aWorld(options: WorldOptions = {}): Promise<World> {
  const records = options.records ?? memoryRecords();
  const clock = handClock();
  const audit = await openAudit({ records, clock });
  const registry = await openRegistry({ records, audit, clock, builtIn: new Set() });
  const events: AgentEvent[] = [];
  const asked: Ask[] = [];
  const panelCalls = { count: 0 };
  const answer = Promise.withResolvers<ApprovalDecision>();
  const approvals: Approvals = {
    async request(ask) {
      if (!asked.some(({ subject }) => subject === ask.subject)) asked.push(ask);
      return `request-${asked.findIndex(({ subject }) => subject === ask.subject) + 1}`;
    },
    decided: () => answer.promise,
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
    panel: {
      async review() {
        panelCalls.count += 1;
        return options.panel === undefined ? yes() : options.panel();
      },
    },
    approvals,
    audit,
    records,
    clock,
    nonce: () => `nonce-${(nonces += 1)}`,
    limits: () => ({ sessionTools: 10, agentTools: 50 }),
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

/** Five successful uses from as many messages. */
async function usedEnough({ registry }: World, uses = 5): Promise<void> {
  await registry.register(anAcceptance(artifact), aCaller());
  for (let value = 0; value < uses; value += 1) {
    await registry.recordUse(aUse(artifact, { value }, { rootMessage: `m-${value}`, evidence: 'claimed' }));
  }
}

describe('the way to tier Agent', () => {
  it('stays closed until claimed uses open it, and says what is missing', async () => {
    const world = await aWorld();
    await usedEnough(world, 2);
    const state = await world.promotion.evaluate(digest, OWNER, anOp());
    assert.deepEqual(state, {
      state: 'Candidate',
      missing: ['2 of 5 successful uses', '2 of 3 distinct inputs', '2 of 3 root messages'],
    });
    assert.equal(world.panelCalls.count, 0);
  });
  it('goes through verification and panel to a new object', async () => {
    const world = await aWorld();
    await usedEnough(world);
    assert.deepEqual(await world.promotion.evaluate(digest, OWNER, anOp()), { state: 'Promoted', to: 'Agent' });
    assert.equal(world.registry.resolve('analyst', 'team-a', 'another')[0]?.tier, 'Agent');
    assert.deepEqual(
      world.events.map((event) => (event.type === 'promotion' ? event.state : event.type)),
      ['Verifying', 'PanelReview', 'Promoted'],
    );
    assert.equal(world.registry.get(digest)?.verdicts.length, 3);
    assert.deepEqual(await world.promotion.evaluate(digest, OWNER, anOp()), { state: 'Promoted', to: 'Agent' });
    assert.equal(world.panelCalls.count, 1);
  });
  it('is not opened by many uses within one message', async () => {
    const world = await aWorld();
    await world.registry.register(anAcceptance(artifact), aCaller());
    for (let value = 0; value < 20; value += 1) await world.registry.recordUse(aUse(artifact, { value }));
    const state = await world.promotion.evaluate(digest, OWNER, anOp());
    assert.deepEqual(state, { state: 'Candidate', missing: ['1 of 3 root messages'] });
  });
  it('needs strictly more than the percentage', async () => {
    const world = await aWorld();
    await usedEnough(world, 8);
    for (const value of [101, 102]) await world.registry.recordUse(aUse(artifact, { value }, { succeeded: false }));
    const state = await world.promotion.evaluate(digest, OWNER, anOp());
    assert.deepEqual(state, {
      state: 'Candidate',
      missing: ['the success rate is 80 % (8 of 10), more than 80 % needed'],
    });
  });
  it('holds the lower end of the Wilson interval against it when the policy says so', async () => {
    const world = await aWorld({ rules: { confidenceBound: 'Wilson' } });
    await usedEnough(world, 15);
    assert.equal((await world.promotion.evaluate(digest, OWNER, anOp())).state, 'Candidate');
    await world.registry.recordUse(aUse(artifact, { value: 16 }, { rootMessage: 'm-16' }));
    assert.equal((await world.promotion.evaluate(digest, OWNER, anOp())).state, 'Promoted');
  });
  it('needs the confidence of the creation judge', async () => {
    const world = await aWorld();
    const doubtful = anAcceptance(artifact, { verdict: aVerdict({ confidence: 0.75 }) });
    await world.registry.register(doubtful, aCaller());
    for (let value = 0; value < 5; value += 1)
      await world.registry.recordUse(aUse(artifact, { value }, { rootMessage: `m-${value}` }));
    const state = await world.promotion.evaluate(digest, OWNER, anOp());
    assert.deepEqual(state, { state: 'Candidate', missing: ['confidence of the judge is 75 %, 80 % needed'] });
  });
  it('is decided by the re-runs, whatever was claimed', async () => {
    const world = await aWorld({
      verifier: {
        outputs: async (_tool, inputs) =>
          inputs.map(() => ({ ok: false, code: 'TEMPER_SANDBOX_THREW', message: 'no' })),
      },
    });
    await usedEnough(world);
    const state = await world.promotion.evaluate(digest, OWNER, anOp());
    assert.equal(state.state, 'Rejected');
    assert.equal(world.panelCalls.count, 0);
    assert.equal(world.registry.get(digest)?.tier, 'Session');
  });
  it('counts an output that breaks the schema as a failed re-run', async () => {
    const world = await aWorld({
      verifier: { outputs: async (_tool, inputs) => inputs.map(() => ({ ok: true, output: { result: 'four' } })) },
    });
    await usedEnough(world);
    assert.equal((await world.promotion.evaluate(digest, OWNER, anOp())).state, 'Rejected');
  });
  it('ends at a test that fails in a fresh runner', async () => {
    const world = await aWorld({ verifier: { tests: async () => ({ passed: 0, failed: 1, problems: ['case 1'] }) } });
    await usedEnough(world);
    const state = await world.promotion.evaluate(digest, OWNER, anOp());
    assert.ok(state.state === 'Rejected' && state.reason.includes('1 of 1 tests failed'));
  });
  it('waits out the cool-down after a refusal and asks no panel in between', async () => {
    const world = await aWorld({
      panel: async () => ({ ...yes(), approved: false, code: 'TEMPER_JUDGE_REFUSED', reasoning: 'hides a trigger' }),
    });
    await usedEnough(world);
    const first = await world.promotion.evaluate(digest, OWNER, anOp());
    assert.deepEqual(first, {
      state: 'Rejected',
      reason: 'panel: hides a trigger',
      coolDownUntil: '2026-03-02T09:00:00.000Z',
    });
    world.clock.advance(DAY - 1);
    assert.deepEqual(await world.promotion.evaluate(digest, OWNER, anOp()), first);
    assert.equal(world.panelCalls.count, 1);
    world.clock.advance(2);
    await world.promotion.evaluate(digest, OWNER, anOp());
    assert.equal(world.panelCalls.count, 2);
  });
  it('tries a panel that could not be asked again after ten minutes', async () => {
    const world = await aWorld({
      panel: async () => ({ ...yes(0), approved: false, code: 'TEMPER_JUDGE_UNAVAILABLE', reasoning: 'none' }),
    });
    await usedEnough(world);
    const state = await world.promotion.evaluate(digest, OWNER, anOp());
    assert.ok(state.state === 'Rejected' && state.coolDownUntil === '2026-03-01T09:10:00.000Z');
  });
  it('needs the confidence of both reviewers', async () => {
    const world = await aWorld({ panel: async () => yes(0.79) });
    await usedEnough(world);
    assert.equal((await world.promotion.evaluate(digest, OWNER, anOp())).state, 'Rejected');
  });
  it('has one panel in flight for a tool, however many uses end together', async () => {
    const gate = Promise.withResolvers<PanelVerdict>();
    const world = await aWorld({ panel: () => gate.promise });
    await usedEnough(world);
    const first = world.promotion.evaluate(digest, OWNER, anOp());
    const others = await Promise.all([1, 2, 3].map(() => world.promotion.evaluate(digest, OWNER, anOp())));
    for (const state of others) assert.ok(state.state === 'Verifying' || state.state === 'PanelReview');
    gate.resolve(yes());
    assert.equal((await first).state, 'Promoted');
    assert.equal(world.panelCalls.count, 1);
  });
  it('says nothing about a tool that could not be run', async () => {
    const world = await aWorld({
      verifier: {
        tests: async () => {
          throw new TemperError('TEMPER_SANDBOX_UNAVAILABLE', 'no engine');
        },
      },
    });
    await usedEnough(world);
    const state = await world.promotion.evaluate(digest, OWNER, anOp());
    assert.deepEqual(state, { state: 'Candidate', missing: ['TEMPER_SANDBOX_UNAVAILABLE: no engine'] });
  });
  it('is not taken by a tool whose steps call a session tool', async () => {
    const world = await aWorld();
    await world.registry.register(anAcceptance(artifact), aCaller());
    const composed = anArtifact('composed', {
      implementation: {
        mode: 'Compose',
        steps: [{ name: 'one', tool: `double@${digest}`, inputMapping: '{"value":"$input.value"}' }],
      },
    });
    await world.registry.register(anAcceptance(composed), aCaller());
    for (let value = 0; value < 5; value += 1)
      await world.registry.recordUse(aUse(composed, { value }, { rootMessage: `m-${value}` }));
    const state = await world.promotion.evaluate(anAcceptance(composed).digest, OWNER, anOp());
    assert.deepEqual(state, { state: 'Candidate', missing: ['it calls "double", which is at tier Session'] });
  });
  it('waits for a person where the policy requires one, and goes on when they say yes', async () => {
    const world = await aWorld({ rules: { requireHuman: true } });
    await usedEnough(world);
    assert.deepEqual(await world.promotion.evaluate(digest, OWNER, anOp()), {
      state: 'AwaitingApproval',
      request: 'request-1',
    });
    assert.deepEqual(await world.promotion.evaluate(digest, OWNER, anOp()), {
      state: 'AwaitingApproval',
      request: 'request-1',
    });
    assert.equal(world.panelCalls.count, 1);
    const [subject] = await world.promotion.waiting();
    assert.ok(subject);
    world.decide({ decision: 'Approve', by: 'person/ann', reason: 'fine' });
    assert.deepEqual(await world.promotion.settle(subject, anOp()), { state: 'Promoted', to: 'Agent' });
    assert.deepEqual(await world.promotion.waiting(), []);
  });
});

describe('the way to tier Shared', () => {
  async function atAgentTier(options: WorldOptions = {}): Promise<World> {
    const world = await aWorld(options);
    await usedEnough(world);
    await world.promotion.evaluate(digest, OWNER, anOp());
    return world;
  }
  it('always asks a person, about this digest and this once', async () => {
    const world = await atAgentTier();
    const state = await world.promotion.requestShared(digest, OWNER, anOp());
    assert.deepEqual(state, { state: 'AwaitingApproval', request: 'request-1' });
    assert.equal(world.registry.get(digest)?.tier, 'Agent');
    const [subject] = await world.promotion.waiting();
    assert.ok(subject);
    world.decide({ decision: 'Approve', by: 'person/ann', reason: 'fine' });
    assert.deepEqual(await world.promotion.settle(subject, anOp()), { state: 'Promoted', to: 'Shared' });
    assert.equal(world.registry.resolve('writer', 'team-a', 's-9')[0]?.tier, 'Shared');
  });
  it('is gone once, however many wait for the same person', async () => {
    const world = await atAgentTier();
    await world.promotion.requestShared(digest, OWNER, anOp());
    const [subject] = await world.promotion.waiting();
    assert.ok(subject);
    const settled = [1, 2, 3].map(() => world.promotion.settle(subject, anOp()));
    world.decide({ decision: 'Approve', by: 'person/ann', reason: 'fine' });
    for (const state of await Promise.all(settled)) assert.deepEqual(state, { state: 'Promoted', to: 'Shared' });
    assert.equal(world.events.filter(({ type }) => type === 'approval-decided').length, 1);
  });
  it('is closed to a tool of tier Session', async () => {
    const world = await aWorld();
    await usedEnough(world);
    const state = await world.promotion.requestShared(digest, OWNER, anOp());
    assert.equal(state.state, 'Candidate');
    assert.deepEqual(world.asked, []);
  });
  it('ends at a no, and another try waits and is another request', async () => {
    const world = await atAgentTier();
    await world.promotion.requestShared(digest, OWNER, anOp());
    const [subject] = await world.promotion.waiting();
    assert.ok(subject);
    world.decide({ decision: 'Deny', by: 'person/ann', reason: 'not yet' });
    const state = await world.promotion.settle(subject, anOp());
    assert.ok(state.state === 'Rejected' && state.reason.includes('person/ann said no: not yet'));
    assert.equal((await world.promotion.requestShared(digest, OWNER, anOp())).state, 'Rejected');
    world.clock.advance(DAY + 1);
    assert.deepEqual(await world.promotion.requestShared(digest, OWNER, anOp()), {
      state: 'AwaitingApproval',
      request: 'request-2',
    });
  });
  it('is not opened by one who contributed', async () => {
    const world = await atAgentTier();
    await world.promotion.requestShared(digest, OWNER, anOp());
    const [subject] = await world.promotion.waiting();
    assert.ok(subject);
    world.decide({ decision: 'Approve', by: 'agent/analyst', reason: 'mine' });
    assert.equal((await world.promotion.settle(subject, anOp())).state, 'Rejected');
    assert.equal(world.registry.get(digest)?.tier, 'Agent');
  });
  it('ends when the tool is demoted while it waits', async () => {
    const world = await atAgentTier();
    await world.promotion.requestShared(digest, OWNER, anOp());
    const [subject] = await world.promotion.waiting();
    assert.ok(subject);
    await world.demotion.demote(digest, 'wrong', 'person/bob');
    world.decide({ decision: 'Approve', by: 'person/ann', reason: 'fine' });
    assert.equal((await world.promotion.settle(subject, anOp())).state, 'Candidate');
    assert.deepEqual(world.registry.resolve('writer', 'team-a', 's-9'), []);
  });
  it('stays closed to a tool whose source is kept out of the object', async () => {
    const world = await atAgentTier({ persistSource: false });
    const state = await world.promotion.requestShared(digest, OWNER, anOp());
    assert.ok(state.state === 'Candidate' && state.missing[0]?.includes('persistSource'));
  });
  it('asks only when enough agents used it', async () => {
    const world = await atAgentTier({ rules: { minAgents: 2 } });
    const state = await world.promotion.requestShared(digest, OWNER, anOp());
    assert.deepEqual(state, { state: 'Candidate', missing: ['1 of 2 agents used it'] });
  });
});

describe('the way out', () => {
  it('is taken by a tool that fails too often, at once', async () => {
    const world = await aWorld();
    await usedEnough(world, 8);
    await world.promotion.evaluate(digest, OWNER, anOp());
    await world.registry.recordUse(aUse(artifact, { value: 9 }, { succeeded: false }));
    assert.equal(await world.demotion.consider(digest, OWNER), false);
    await world.registry.recordUse(aUse(artifact, { value: 10 }, { succeeded: false }));
    assert.equal(await world.demotion.consider(digest, OWNER), true);
    assert.deepEqual(world.registry.resolve('analyst', 'team-a', 's-1'), []);
    assert.equal(world.events.at(-1)?.type, 'demotion');
  });
  it('is not taken by a session tool, which is only not promoted', async () => {
    const world = await aWorld();
    await world.registry.register(anAcceptance(artifact), aCaller());
    for (let value = 0; value < 12; value += 1)
      await world.registry.recordUse(aUse(artifact, { value }, { succeeded: false }));
    assert.equal(await world.demotion.consider(digest, OWNER), false);
  });
  it('is taken when the tests fail in a fresh runner', async () => {
    let healthy = true;
    const world = await aWorld({
      verifier: {
        tests: async () => (healthy ? { passed: 1, failed: 0, problems: [] } : { passed: 0, failed: 1, problems: [] }),
      },
    });
    await usedEnough(world);
    await world.promotion.evaluate(digest, OWNER, anOp());
    assert.equal(await world.demotion.verifyAgain(digest, OWNER, anOp()), false);
    healthy = false;
    assert.equal(await world.demotion.verifyAgain(digest, OWNER, anOp()), true);
    assert.match(world.registry.get(digest)?.inactiveReason ?? '', /1 of 1 tests failed/);
  });
});
