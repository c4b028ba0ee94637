import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../../../src/lib/json.ts';
import type { ToolCandidate, ForgeResult } from '../../../src/forge/types.ts';
import { POD_API_PATHS } from '../../../src/gateway-api/pod-api.ts';
import { RemoteTools } from '../../../src/gateway-client/tools.ts';
import type { Digest } from '../../../src/lib/canonical.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { textAt } from '../../../src/lib/json.ts';
import type { RegisteredTool, ToolUse } from '../../../src/tempering/types.ts';
import { createToolUseReports } from '../../../src/gateway/pods/tool-use-reports.ts';
import { ReportLimits } from '../../../src/gateway/storage/report-limits.ts';
import { createSessionReports } from '../../../src/gateway/pods/session-reports.ts';
import { openSessionRegistry } from '../../../src/nats/sessions/session-registry.ts';
import { STREAMS } from '../../../src/nats/jetstream/names.ts';
import { pollValue } from '../../support/poll.ts';
import { createToolEvidence } from '../../../src/nats/promotion/evidence.ts';
import type { UsedSessionTool } from '../../../src/gateway/pods/tool-use-reports.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import { createSessionEvents } from '../../../src/nats/session-events.ts';
import { callOptions } from '../../support/call-options.ts';
import { ModelGatewayFixture, errorOf, type ModelGatewayReplica } from '../../support/gateway/model-gateway-fixture.ts';
import {
  aCandidate,
  judgeAnswer,
  reviewerAnswer,
  reviewModels,
  testerAnswer,
} from '../../support/gateway/review-answers.ts';
import { forgedEventTests } from './suites/forged-events.ts';
import { promotionJobTests } from './suites/promotion-jobs.ts';
import { toolAuditTests } from './suites/tool-audits.ts';

const DOUBLE_CALL = { id: 'c1', name: 'double', arguments: { value: 21 } };

describe('review of forged tools', () => {
  let fixture: ModelGatewayFixture;
  let one: ModelGatewayReplica;
  let other: ModelGatewayReplica;

  before(async () => {
    fixture = await ModelGatewayFixture.open({
      rules: [
        { when: { model: 'judge' }, answer: { text: judgeAnswer(true) } },
        { when: { model: 'easy' }, answer: { text: judgeAnswer(true) } },
        { when: { model: 'strict' }, answer: { text: judgeAnswer(false) } },
        { when: { model: 'failing' }, answer: { error: { status: 429, type: 'insufficient_quota', message: 'no' } } },
        { when: { model: 'safety' }, answer: { text: reviewerAnswer(true) } },
        { when: { model: 'correctness' }, answer: { text: reviewerAnswer(true) } },
        { when: { model: 'first' }, answer: { text: testerAnswer() } },
        { when: { model: 'second' }, answer: { text: testerAnswer(1) } },
        { when: { model: 'veto' }, answer: { text: reviewerAnswer(false) } },
        { when: { model: 'fresh', tools: ['double'], turn: 1 }, answer: { toolCalls: [DOUBLE_CALL] } },
        { when: { model: 'fresh', turn: 2 }, answer: { text: 'It is 42.' } },
        { when: { model: 'fresh' }, answer: { text: 'I cannot.', stopReason: 'refusal' } },
        { answer: { text: 'hello' } },
      ],
    });
    const policy = { level: { initial: 'restricted', ceiling: 'restricted' }, forge: { limits: { minTestCases: 1 } } };
    fixture.setPolicy('standard', { ...policy, models: { judge: 'default/judge' } });
    fixture.setPolicy('strict', { ...policy, models: { judge: 'default/strict' } });
    fixture.setPolicy('failing', { ...policy, models: { judge: 'default/failing' } });
    fixture.setPolicy('easy', { ...policy, models: { judge: 'default/easy' } });
    fixture.setPolicy('unjudged', policy);
    const panel = (...reviewers: string[]) => ({ ...policy, models: { judge: 'default/judge', reviewers } });
    fixture.setPolicy('promoting', panel('replay/safety', 'replay/correctness'));
    const testers = ['replay/first', 'replay/second'];
    fixture.setPolicy('tested', { ...policy, models: { judge: 'default/judge', testers } });
    fixture.setPolicy('refusing', panel('replay/safety', 'replay/veto'));
    const small = { ...policy, forge: { limits: { minTestCases: 1, sessionTools: 2 } } };
    fixture.setPolicy('small', { ...small, models: { judge: 'default/judge' } });
    const models = reviewModels(fixture.replay.url);
    [one, other] = await Promise.all([fixture.startReplica(models), fixture.startReplica(models)]);
  });
  after(async () => {
    await fixture?.[Symbol.asyncDispose]();
  });

  function createForgingAgent(name: string, policy = 'standard'): void {
    fixture.setAgent(name, { forge: { enabled: true, modes: ['Sandbox', 'Compose'] } }, policy);
  }

  async function submit(
    agent: string,
    candidate: unknown,
    options: { replica?: ModelGatewayReplica; session?: string; key?: string } = {},
  ) {
    const { replica = one, session = 's1', key } = options;
    const body = { deliveryToken: fixture.deliveryToken(agent, session), candidate, authorModel: 'replay/judge' };
    return replica.call('POST', '/v1/forge/review', { agent, body, ...(key === undefined ? {} : { key }) });
  }

  async function result(...given: Parameters<typeof submit>): Promise<ForgeResult> {
    const answer = await submit(...given);
    assert.equal(answer.status, 200, answer.text);
    return JSON.parse(answer.text) as ForgeResult;
  }

  async function tools(agent: string, session = 's1', replica = one): Promise<RegisteredTool[]> {
    return JSON.parse((await replica.call('GET', `/v1/sessions/${session}/tools`, { agent })).text) as RegisteredTool[];
  }

  it('an accepted tool is registered, visible on every replica, and the judge is charged to the agent', async () => {
    createForgingAgent('anna');
    const candidate = aCandidate('double');
    const accepted = await result('anna', candidate);
    assert.ok(accepted.accepted, JSON.stringify(accepted));
    assert.deepEqual(
      accepted.gates.map(({ gate }) => gate),
      ['build', 'policy', 'judge', 'registration'],
    );
    const [tool] = await tools('anna', 's1', other);
    assert.deepEqual(
      [tool?.digest, tool?.tier, tool?.active, tool?.authorModel, tool?.owner.session],
      [candidate.digest, 'Session', true, 'replay/scripted', 's1'],
    );
    assert.deepEqual(await tools('anna', 's2'), []);
    assert.ok((await fixture.dailyUsage(one, 'anna')).inputTokens > 0);
    const bus = await fixture.nats.connect('gateway');
    const events = await createSessionEvents(bus).read('uid-anna', 's1', 0, 100);
    assert.ok(events.some((line) => line.kind === 'event' && line.event.type === 'forge-accepted'));
    const audit = await createNatsAudit(bus).all('team-a', 100);
    assert.ok(
      audit.some(
        (record) =>
          record.action === 'tool.accepted' && record.evidence === 'observed' && record.subject === candidate.digest,
      ),
    );
  });

  it('an agent that submits more tools than its rate is refused, and no other agent is', async () => {
    const unlimited = fixture.reviewLimits;
    fixture.reviewLimits = new ReportLimits(systemClock, { perSecond: 0.001, burst: 1, unit: 'tools for review' });
    try {
      createForgingAgent('busy');
      createForgingAgent('calm');
      await result('busy', aCandidate('double'));
      const refused = await submit('busy', aCandidate('triple'));
      assert.equal(refused.status, 429, refused.text);
      assert.match(refused.text, /TEMPER_RATE_LIMITED.*tools for review/);
      await result('calm', aCandidate('double'));
    } finally {
      fixture.reviewLimits = unlimited;
    }
  });

  it('a repeated review of an accepted tool returns the same verdict without asking the judge', async () => {
    createForgingAgent('gert');
    const first = await result('gert', aCandidate('double'));
    const requestsBefore = fixture.replay.requests.length;
    const second = await result('gert', aCandidate('double'), { replica: other });
    assert.ok(first.accepted && second.accepted);
    assert.deepEqual(second.verdict, first.verdict);
    assert.equal(fixture.replay.requests.length, requestsBefore, 'the judge is not asked again');
    assert.equal((await tools('gert')).length, 1);
  });

  it('a review publishes its events once and in order, however often it is repeated', async () => {
    createForgingAgent('greta');
    for (const replica of [one, other, one]) {
      assert.ok((await result('greta', aCandidate('double'), { replica, key: 'the-same' })).accepted);
    }
    const bus = await fixture.nats.connect('gateway');
    const events = await createSessionEvents(bus).read('uid-greta', 's1', 0, 100);
    assert.deepEqual(
      events.map(
        (line) => line.kind === 'event' && (line.event.type === 'forge-gate' ? line.event.result : line.event.type),
      ),
      [
        { gate: 'policy', passed: true, note: '' },
        { gate: 'judge', passed: true, note: '0.90' },
        { gate: 'registration', passed: true, note: 'Session' },
        'forge-accepted',
      ],
    );
    const audit = await createNatsAudit(bus).all('team-a', 1_000);
    const records = audit.filter(({ actor }) => actor === 'agent/greta');
    assert.deepEqual(
      records.map(({ action, evidence }) => [action, evidence]),
      [['tool.accepted', 'observed']],
    );
    assert.ok((await result('greta', aCandidate('triple'), { key: 'the-same' })).accepted);
    const more = await createSessionEvents(bus).read('uid-greta', 's1', 0, 100);
    const names = more.flatMap((line) =>
      line.kind === 'event' && line.event.type === 'forge-accepted' ? [line.event.tool] : [],
    );
    assert.deepEqual(names, ['double', 'triple'], 'one key does not hide a second tool');
    const all = (await createNatsAudit(bus).all('team-a', 1_000)).filter(({ actor }) => actor === 'agent/greta');
    assert.equal(all.length, 2);
  });

  it('a demoted tool, and a composition that uses it, is neither registered nor listed', async () => {
    createForgingAgent('dirk');
    const [double, triple] = [aCandidate('double'), aCandidate('triple')];
    for (const candidate of [double, triple]) assert.ok((await result('dirk', candidate)).accepted);
    const step = { name: 'first', tool: `double@${double.digest}`, inputMapping: '{"value":"$input.value"}' };
    const chain = await result('dirk', aCandidate('chain', { implementation: { mode: 'Compose', steps: [step] } }));
    assert.ok(chain.accepted, JSON.stringify(chain));
    assert.equal((await tools('dirk')).length, 3);
    fixture.demoted.set(double.digest, 'demoted by alice');
    const left = (await tools('dirk', 's1', other)).map(({ artifact }) => artifact.name);
    assert.deepEqual(left, ['triple']);
    const refused = await result('dirk', double, { session: 's2' });
    fixture.demoted.clear();
    assert.ok(!refused.accepted);
    assert.deepEqual([refused.gate, refused.code], ['registration', 'TEMPER_TOOL_DEMOTED']);
    assert.match(refused.message, /demoted by alice/);
  });

  it('a reported tool use is counted once for a tool of the session', async () => {
    createForgingAgent('uwe');
    const candidate = aCandidate('double');
    assert.ok((await result('uwe', candidate)).accepted);
    const bus = await fixture.nats.connect('gateway');
    const [audit, registry, evidence] = [createNatsAudit(bus), openSessionRegistry(bus), createToolEvidence(bus)];
    const counted: number[] = [];
    const onCounted = async ({ statistics }: UsedSessionTool) => void counted.push(statistics.successes);
    const uses = createToolUseReports({ audit, registry, evidence, onCounted });
    const use = (value: number, digest = candidate.digest): ToolUse => ({
      agent: 'uwe',
      namespace: 'team-a',
      session: 's1',
      digest,
      evidence: 'reported',
      rootMessage: `m-${value}`,
      input: { value },
      succeeded: value !== 3,
      milliseconds: 4,
      time: '2026-01-01T00:00:00Z',
    });
    const invented = use(9, `sha256:${'1'.repeat(64)}`);
    await Promise.all([1, 2].map(() => uses.record('uid-uwe', [use(1), use(1), use(2), invented], 'first', true)));
    await uses.record('uid-uwe', [use(3)], 'second', true);
    await uses.record('uid-uwe', [use(4)], 'third', false);
    assert.deepEqual(new Set(counted), new Set([3]), 'a failed use, and one without a delivery, request nothing');
    const statistics = await evidence.statistics('uid-uwe', use(1));
    const { totalUses, successes, reportedUses: claimed, distinctInputs, rootMessages } = statistics;
    assert.deepEqual([totalUses, successes, claimed, distinctInputs, rootMessages], [4, 3, 4, 3, 3]);
    const promotionOf = async () => ({ state: 'Candidate', reason: '', next: '' }) as const;
    const demotions = { reason: () => 'revoked' };
    const reports = createSessionReports({ bus, registry, evidence, promotionOf, demotions });
    for (const session of ['s1', undefined]) {
      const [tool, ...more] = await reports.tools('uid-uwe', session);
      assert.deepEqual([tool?.name, tool?.session, tool?.uses, more.length], ['double', 's1', 4, 0]);
      assert.equal(tool?.outOfService, 'revoked');
    }
    const records = (await audit.all('team-a', 1_000)).filter(({ facts }) => facts['agentUid'] === 'uid-uwe');
    assert.deepEqual(
      records.map(({ action, facts }) => [action, textAt(facts, ['inputDigest']).slice(0, 7), 'input' in facts]),
      [1, 2, 3, 4, 5, 6].map(() => ['tool.used', 'sha256:', false]),
    );
    assert.equal((await one.call('DELETE', '/v1/sessions/s1', { agent: 'uwe' })).status, 204);
    assert.equal((await evidence.statistics('uid-uwe', use(1))).totalUses, 4, 'the evidence outlives the session');
    const inputs = await evidence.recordedInputs('uid-uwe', use(1), 1_000_000);
    assert.deepEqual(
      inputs.map(({ input }) => input),
      [{ value: 1 }, { value: 2 }, { value: 3 }],
    );
  });

  /** A report of one use, as a pod sends it. */
  const report = (agent: string, digest: Digest, root: string, deliveryToken?: string) => {
    const use = {
      agent: 'x',
      namespace: 'x',
      session: 'invented',
      digest,
      evidence: 'observed',
      rootMessage: `lie-${root}`,
    };
    const input = { value: Number(root), text: 'x'.repeat(40_000) };
    const uses = [{ ...use, input, succeeded: true, milliseconds: 1, time: '2026-01-01T00:00:00Z' }];
    const body = { ...(deliveryToken === undefined ? {} : { deliveryToken }), uses };
    return one.call('POST', '/v1/reports', { agent, body });
  };

  it('uses count for the message that the gateway delivered, and one request is stored when they meet the policy', async () => {
    createForgingAgent('petra', 'promoting');
    const candidate = aCandidate('double');
    assert.ok((await result('petra', candidate)).accepted);
    const { digest } = candidate;
    const foreign = fixture.deliveryToken('anna', 's1', 'root-9');
    for (const token of [undefined, foreign, 'd1.x.y']) {
      for (const root of ['1', '2', '3', '4', '5'])
        assert.equal((await report('petra', digest, root, token)).status, 204);
    }
    const bus = await fixture.nats.connect('gateway');
    const evidence = createToolEvidence(bus);
    const tool = { digest, namespace: 'team-a' };
    assert.equal(
      (await evidence.statistics('uid-petra', tool)).totalUses,
      0,
      'no delivery, another agent, a forged token',
    );
    for (let repeated = 0; repeated < 5; repeated += 1) {
      await report('petra', digest, String(100 + repeated), fixture.deliveryToken('petra', 's1', 'root-0'));
    }
    assert.equal((await evidence.statistics('uid-petra', tool)).rootMessages, 1, 'calls within one message count once');
    const operator = await fixture.nats.connect('operator');
    const requests = async () => (await operator.manager.streams.info(STREAMS.promotions)).state.messages;
    const before = await requests();
    for (const root of ['1', '2', '3', '4', '5']) {
      await report('petra', digest, root, fixture.deliveryToken('petra', 's1', `root-${root}`));
    }
    assert.equal((await requests()) - before, 1);
    const inputs = await evidence.recordedInputs('uid-petra', tool, 1_000_000);
    assert.ok(inputs.length === 10 && inputs.every(({ input }) => JSON.stringify(input).length > 32 * 1_024));
    assert.equal(
      new Set(inputs.slice(0, 6).map(({ root }) => root)).size,
      6,
      'inputs of different messages come first',
    );
  });

  promotionJobTests(() => ({
    fixture,
    one,
    other,
    accept: async (agent, candidate) => assert.ok((await result(agent, candidate)).accepted),
    createForgingAgent,
  }));
  toolAuditTests(() => ({ fixture, one }));
  forgedEventTests(() => ({ fixture, replicas: [one, other] }));

  const TAMPERED: Record<string, [candidate: () => ToolCandidate, gate: string]> = {
    'another digest than its own': [() => ({ ...aCandidate('wrong'), digest: `sha256:${'0'.repeat(64)}` }), 'build'],
    'source that reaches for the host': [
      () =>
        aCandidate('reach', {
          implementation: { mode: 'Sandbox', source: 'function execute(input) { return process.env; }' },
        }),
      'static',
    ],
    'a schema that refers outside itself': [
      () =>
        aCandidate('outside', {
          inputSchema: '{"properties":{"a":{"$ref":"https://evil.example/schema.json"}},"type":"object"}',
        }),
      'schemas',
    ],
    'tests without results': [
      () => ({ ...aCandidate('unrun'), evidence: { tests: [], milliseconds: 0, heapBytes: 0, warnings: [] } }),
      'tests',
    ],
    'a host API that the policy does not allow': [
      () => aCandidate('wide', { requires: { apis: ['fetch'], domains: ['example.com'], paths: [] } }),
      'policy',
    ],
    'the name of a built-in tool': [() => aCandidate('file_read'), 'registration'],
  };
  for (const [what, [candidate, gate]] of Object.entries(TAMPERED)) {
    it(`a review rejects ${what}, regardless of the judge`, async () => {
      createForgingAgent('bert');
      const refused = await result('bert', candidate());
      assert.ok(!refused.accepted);
      assert.equal(refused.gate, gate, refused.message);
      assert.deepEqual(await tools('bert'), []);
    });
  }

  it('a review rejects a tool that the judge rejects, that has no judge, or whose author is the judge', async () => {
    createForgingAgent('carl', 'strict');
    createForgingAgent('cleo', 'unjudged');
    fixture.setAgent('cora', { model: { primary: 'replay/judge' }, forge: { enabled: true, modes: ['Sandbox'] } });
    for (const [agent, code] of [
      ['carl', 'TEMPER_JUDGE_REFUSED'],
      ['cleo', 'TEMPER_JUDGE_UNAVAILABLE'],
      ['cora', 'TEMPER_JUDGE_UNAVAILABLE'],
    ] as const) {
      const refused = await result(agent, aCandidate('double'));
      assert.ok(!refused.accepted);
      assert.deepEqual([refused.gate, refused.code], ['judge', code]);
      assert.deepEqual(await tools(agent), []);
    }
    const counted = (await Promise.all([one, other].map((replica) => replica.metrics()))).join('\n');
    assert.match(counted, /^temper_forge_reviews_total\{outcome="accepted"\} [1-9]/m);
    assert.match(counted, /^temper_forge_reviews_total\{outcome="judge"\} [3-9]/m);
  });

  it('a judge that fails for the tools of one agent judges those of other agents', async () => {
    createForgingAgent('vera');
    assert.ok((await result('vera', aCandidate('before'))).accepted);
    createForgingAgent('evil', 'failing');
    for (let times = 0; times < 4; times += 1) {
      const refused = await result('evil', aCandidate('double'));
      assert.ok(!refused.accepted);
      assert.deepEqual([refused.gate, refused.code], ['judge', 'TEMPER_JUDGE_UNAVAILABLE']);
    }
    assert.ok((await result('vera', aCandidate('after'))).accepted);
  });

  it('a session keeps one of two tools with the same name that are submitted to two replicas at once', async () => {
    createForgingAgent('dora');
    for (let round = 0; round < 5; round += 1) {
      const session = `race-${round}`;
      const second = aCandidate('double', { description: 'Doubles a number, otherwise.' });
      const results = await Promise.all([
        result('dora', aCandidate('double'), { session }),
        result('dora', second, { session, replica: other }),
      ]);
      assert.ok(
        results.every(({ accepted }) => accepted),
        'the later one replaces the earlier one',
      );
      const kept = await tools('dora', session);
      assert.equal(kept.length, 1);
      assert.ok(results.some(({ digest }) => digest === kept[0]?.digest));
    }
  });

  it('a session replaces and drops its own tools on every replica, with their uses, and those of no other session', async () => {
    createForgingAgent('rita', 'small');
    const bus = await fixture.nats.connect('gateway');
    const evidence = createToolEvidence(bus);
    const [first, second] = [aCandidate('double'), aCandidate('double', { description: 'Doubles it, corrected.' })];
    const digests = async (session = 's1') => (await tools('rita', session, other)).map(({ digest }) => digest);
    for (const session of ['s1', 's2']) assert.ok((await result('rita', first, { session })).accepted);
    assert.ok((await result('rita', aCandidate('triple'))).accepted);
    assert.ok((await result('rita', second)).accepted, 'a replacement needs no place within the limit of two tools');
    assert.deepEqual([new Set(await digests()).has(first.digest), (await digests()).length], [false, 2]);
    assert.deepEqual(await digests('s2'), [first.digest]);
    await report('rita', second.digest, '1', fixture.deliveryToken('rita', 's1', 'root-1'));
    const uses = async () => (await evidence.statistics('uid-rita', { ...second, namespace: 'team-a' })).totalUses;
    assert.equal(await uses(), 1);
    const drop = (agent: string, digest: Digest, replica = one) => {
      const body = { deliveryToken: fixture.deliveryToken(agent, 's1'), digest };
      return replica.call('POST', POD_API_PATHS.forgeDrop, { agent, body });
    };
    createForgingAgent('rolf');
    assert.equal((await drop('rolf', second.digest)).status, 204, 'another agent removes nothing');
    assert.equal((await digests()).length, 2);
    for (const replica of [one, other, one]) assert.equal((await drop('rita', second.digest, replica)).status, 204);
    assert.equal((await digests()).includes(second.digest), false);
    assert.equal(await uses(), 0);
    assert.deepEqual(await digests('s2'), [first.digest]);
    assert.ok((await result('rita', first)).accepted, 'the name is free again');
    assert.ok((await digests()).includes(first.digest));
    const records = (await createNatsAudit(bus).all('team-a', 1_000)).filter(({ actor }) => actor === 'agent/rita');
    assert.deepEqual(
      records.filter(({ action }) => action === 'tool.dropped').map(({ subject, evidence: kind }) => [subject, kind]),
      [[second.digest, 'observed']],
    );
    const replacing = records.find(({ subject }) => subject === second.digest);
    assert.match(JSON.stringify(replacing?.facts['supersedes']), /double-/);
  });

  it('the same review at two replicas at once registers the tool once and accepts both', async () => {
    createForgingAgent('edda');
    for (let round = 0; round < 5; round += 1) {
      const [session, key, candidate] = [`twice-${round}`, `review-${round}`, aCandidate('double')];
      const results = await Promise.all([
        result('edda', candidate, { session, key }),
        result('edda', candidate, { session, key, replica: other }),
      ]);
      assert.deepEqual(
        results.map(({ accepted, digest }) => [accepted, digest]),
        [
          [true, candidate.digest],
          [true, candidate.digest],
        ],
      );
      assert.equal((await tools('edda', session)).length, 1);
    }
  });

  it('a pod whose registration lost its response submits it again and has the tool once', async () => {
    createForgingAgent('fred');
    const problems: string[] = [];
    const remote = new RemoteTools({
      client: await fixture.connect('fred', one),
      clock: systemClock,
      deliveryToken: () => fixture.deliveryToken('fred'),
      builtIn: new Set(),
      flush: async () => undefined,
      onUnusable: (name, problem) => problems.push(`${name}: ${problem}`),
    });
    await remote.open('s1', callOptions());
    let reviews = 0;
    fixture.losesResponse = (url) => url === POD_API_PATHS.forgeReview && (reviews += 1) === 1;
    const caller = { agent: 'fred', namespace: 'team-a', session: 's1', rootMessage: 'm', authorModel: '' };
    const submitted = await remote.review.submit(aCandidate('double'), caller, callOptions());
    fixture.losesResponse = () => false;
    // The model forges the same tool again after the pod has listed the tools of its session.
    await remote.open('s1', callOptions());
    const again = await remote.review.submit(aCandidate('double'), caller, callOptions());
    assert.deepEqual([reviews, submitted.accepted, again.accepted, problems], [2, true, true, []]);
    assert.deepEqual(
      remote.resolve('fred', 'team-a', 's1').map(({ digest }) => digest),
      [aCandidate('double').digest],
    );
  });

  it('concurrent reviews stay within the tool limit of the session', async () => {
    createForgingAgent('emil', 'small');
    const names = ['first', 'second', 'third', 'fourth'];
    const results = await Promise.all(
      names.map((name, index) => result('emil', aCandidate(name), { replica: index % 2 === 0 ? one : other })),
    );
    assert.equal(results.filter(({ accepted }) => accepted).length, 2);
    assert.equal((await tools('emil')).length, 2);
    assert.equal((await one.call('DELETE', '/v1/sessions/s1', { agent: 'emil' })).status, 204);
    assert.deepEqual(await tools('emil'), []);
  });

  it('the observed refusal of a review is stored, also when the pod reported another one under the same key before', async () => {
    createForgingAgent('gina', 'strict');
    const candidate = aCandidate('double');
    const refused = {
      accepted: false,
      name: 'double',
      digest: candidate.digest,
      gate: 'shape',
      code: 'TEMPER_FORGE_SHAPE',
      class: 'other',
      message: 'a typo of mine',
      details: {},
      gates: [],
    };
    const body = { deliveryToken: fixture.deliveryToken('gina'), refused };
    for (const key of ['K', `K/${candidate.digest}`, `observed/K/${candidate.digest}`]) {
      assert.equal((await one.call('POST', '/v1/forge/rejected', { agent: 'gina', body, key })).status, 204);
    }
    const verdict = await result('gina', candidate, { key: 'K' });
    assert.ok(!verdict.accepted && verdict.gate === 'judge', JSON.stringify(verdict));
    const audit = await createNatsAudit(await fixture.nats.connect('gateway')).all('team-a', 1_000);
    const evidence = audit.filter(({ actor }) => actor === 'agent/gina').map((record) => record.evidence);
    assert.deepEqual(evidence, ['reported', 'reported', 'reported', 'observed']);
  });

  it('a rejection reported by a pod is stored as claimed, and an invalid candidate is rejected', async () => {
    createForgingAgent('finn');
    const refused = {
      accepted: false,
      name: 'bad\u202etool',
      gate: 'static',
      code: 'TEMPER_FORGE_STATIC',
      class: 'other',
      message: 'uses eval',
      details: {},
      gates: [],
    };
    const body = { deliveryToken: fixture.deliveryToken('finn'), refused, authorModel: 'replay/judge' };
    assert.equal((await one.call('POST', '/v1/forge/rejected', { agent: 'finn', body })).status, 204);
    const audit = await createNatsAudit(await fixture.nats.connect('gateway')).all('team-a', 100);
    const kept = audit.find((record) => record.actor === 'agent/finn');
    assert.equal(kept?.evidence, 'reported');
    assert.ok(!JSON.stringify(kept).includes('\u202e'));
    assert.deepEqual(errorOf(await submit('finn', { artifact: {}, digest: 'x' })), [400, 'TEMPER_REQUEST_INVALID']);
    const empty = await result('finn', { ...aCandidate('x'), artifact: {} });
    assert.ok(!empty.accepted && empty.gate === 'shape');
  });

  it('a judge that approves a canary is suspended on every replica, until a user lifts the suspension', async () => {
    createForgingAgent('easy', 'easy');
    const supervised = (judges: JsonObject) => fixture.startReplica({ ...reviewModels(fixture.replay.url), judges });
    /** The result at a replica that has just started, or at another, once it is not overloaded. */
    const reviewedAt = async (replica: ModelGatewayReplica): Promise<ForgeResult> => {
      const review = () => submit('easy', aCandidate('twice'), { replica });
      const answer = await pollValue('a gateway that is not overloaded', review, ({ status }) => status === 200);
      return JSON.parse(answer.text) as ForgeResult;
    };
    const always = await supervised({ canaryPercent: 100 });
    const refused = await reviewedAt(always);
    assert.ok(!refused.accepted, JSON.stringify(refused));
    assert.equal(refused.code, 'TEMPER_JUDGE_SUSPENDED');
    const id = /suspension-[a-z0-9]+/.exec(refused.message)?.[0] ?? '';
    for (const replica of [always, one]) {
      const again = await reviewedAt(replica);
      assert.equal('code' in again ? again.code : '', 'TEMPER_JUDGE_SUSPENDED');
    }
    const accepted = await reviewedAt(await supervised({ canaryPercent: 0, resumed: [id] }));
    assert.ok(accepted.accepted, JSON.stringify(accepted));
  });
});
