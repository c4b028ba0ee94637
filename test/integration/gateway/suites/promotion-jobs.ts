import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { ToolCandidate } from '../../../../src/forge/types.ts';
import type { Json } from '../../../../src/lib/json.ts';
import { createPanelReviews } from '../../../../src/nats/promotion/panel-reviews.ts';
import { createPromotionStates } from '../../../../src/nats/promotion/promotion-states.ts';
import { createVerifications } from '../../../../src/nats/promotion/verifications.ts';
import { anArtifact } from '../../../../src/tempering/tempering.testing.ts';
import type { ModelGatewayFixture, ModelGatewayReplica } from '../../../support/gateway/model-gateway-fixture.ts';
import { aCandidate } from '../../../support/gateway/review-answers.ts';
import { pollValue } from '../../../support/poll.ts';

interface Context {
  fixture: ModelGatewayFixture;
  one: ModelGatewayReplica;
  other: ModelGatewayReplica;
  /** Registers the tool for a session of the agent. */
  accept: (agent: string, candidate: ToolCandidate) => Promise<void>;
  createForgingAgent: (name: string, policy?: string) => void;
}

/** What gateways do for promotions: ask models, and exchange work and outputs with verifier pods. */
export function promotionJobTests(context: () => Context): void {
  it('two reviewers review a tool once per attempt, at the cost of its agent', async () => {
    const { fixture, one, accept, createForgingAgent } = context();
    createForgingAgent('pia', 'promoting');
    const candidate = aCandidate('double');
    await accept('pia', candidate);
    const { digest } = candidate;
    const reviews = createPanelReviews(await fixture.nats.connect('operator'));
    const states = createPromotionStates(await fixture.nats.connect('gateway'));
    const verdictOf = (attempt: string, agentUid = 'uid-pia') =>
      pollValue(
        `the verdict of ${attempt}`,
        () => states.review({ agentUid, digest }, attempt),
        (found) => found !== undefined,
      );
    const request = { agentUid: 'uid-pia', session: 's1', digest, facts: { tests: 3 } };
    const before = (await fixture.dailyUsage(one, 'pia')).inputTokens;
    await reviews.request({ ...request, attempt: 'first' }, 0);
    const verdict = await verdictOf('first');
    assert.ok(verdict?.approved, verdict?.reasoning ?? 'no verdict');
    assert.deepEqual(
      verdict.verdicts.map(({ model }) => model),
      ['safety', 'correctness'],
    );
    // Another replica may have charged it.
    const once = await pollValue(
      'the usage of the panel',
      async () => (await fixture.dailyUsage(one, 'pia')).inputTokens,
      (inputTokens) => inputTokens > before,
    );
    await reviews.request({ ...request, attempt: 'first' }, 1);
    await reviews.request({ ...request, attempt: 'second', session: 'closed' }, 0);
    assert.match((await verdictOf('second'))?.reasoning ?? '', /no such tool/);
    assert.equal((await fixture.dailyUsage(one, 'pia')).inputTokens, once, 'a repeated request asks no model');
    createForgingAgent('strict', 'refusing');
    await accept('strict', candidate);
    await reviews.request({ ...request, agentUid: 'uid-strict', attempt: 'third' }, 0);
    assert.equal((await verdictOf('third', 'uid-strict'))?.approved, false, 'one veto refuses');
  });

  it('two testers write cases for a tool once per attempt, at the cost of its agent', async () => {
    const { fixture, one, accept, createForgingAgent } = context();
    createForgingAgent('tess', 'tested');
    const candidate = aCandidate('double');
    await accept('tess', candidate);
    const { digest } = candidate;
    const jobs = createPanelReviews(await fixture.nats.connect('operator'));
    const states = createPromotionStates(await fixture.nats.connect('gateway'));
    const answersTo = (attempt: string) =>
      pollValue(
        `the cases of ${attempt}`,
        () => states.testerAnswers({ agentUid: 'uid-tess', digest }, attempt),
        (found) => found !== undefined,
      );
    const before = (await fixture.dailyUsage(one, 'tess')).inputTokens;
    const request = { agentUid: 'uid-tess', session: 's1', digest };
    await jobs.requestTesters({ ...request, attempt: 'first' }, 0);
    const answers = await answersTo('first');
    assert.deepEqual(
      answers?.map(({ model, cases, dropped }) => [model, cases[0], cases.length, dropped]),
      [
        ['first', { input: { value: 21 }, expected: { result: 42 } }, 4, 0],
        ['second', { input: { value: 21 }, expected: { result: 43 } }, 4, 0],
      ],
    );
    const once = await pollValue(
      'the usage of the testers',
      async () => (await fixture.dailyUsage(one, 'tess')).inputTokens,
      (inputTokens) => inputTokens > before,
    );
    await jobs.requestTesters({ ...request, attempt: 'first' }, 1);
    await jobs.requestTesters({ ...request, attempt: 'second', session: 'closed' }, 0);
    assert.deepEqual(await answersTo('second'), [], 'its session has no such tool');
    assert.equal((await fixture.dailyUsage(one, 'tess')).inputTokens, once, 'a repeated request asks no model');
  });

  it('a verifier pod gets its own work only, and its first outputs stay', async () => {
    const { fixture, one, other } = context();
    const operator = createVerifications(await fixture.nats.connect('operator'));
    const work = {
      attempt: 'a-1',
      round: 0,
      artifact: anArtifact(),
      dependencies: [],
      cases: [{ input: { value: 1 }, fixtures: [] }],
    };
    const waiting = one.call('GET', '/v1/verification?wait=20', { agent: 'pod-one' });
    await operator.assign('pod-one', 0, work as unknown as Json);
    const answer = await waiting;
    assert.deepEqual([answer.status, JSON.parse(answer.text) as Json], [200, work]);
    assert.equal((await other.call('GET', '/v1/verification', { agent: 'pod-two' })).status, 204);
    assert.equal(await operator.assign('pod-one', 0, { ...work, attempt: 'a-2' } as unknown as Json), false);
    const run = (value: number) => ({ ok: true, output: { result: value } });
    const send = (pod: string, outputs: unknown, round = 0) =>
      other.call('POST', '/v1/verification/outputs', { agent: pod, body: { attempt: 'a-1', round, outputs } });
    assert.equal((await send('pod-one', [[run(2)]])).status, 400);
    assert.equal((await send('pod-one', [[run(2), run(2)]])).status, 204);
    assert.equal((await send('pod-one', [[run(3), run(3)]])).status, 204);
    assert.deepEqual(await operator.outputs('pod-one', 0), { attempt: 'a-1', round: 0, outputs: [[run(2), run(2)]] });
    assert.equal(await operator.outputs('pod-two', 0), undefined);
    assert.equal((await send('pod-one', [[run(4), run(4)]], 1)).status, 204);
    assert.equal(await operator.outputs('pod-one', 1), undefined, 'outputs of a round without work are dropped');
    const next = one.call('GET', '/v1/verification?wait=20&round=1', { agent: 'pod-one' });
    await operator.assign('pod-one', 1, { ...work, round: 1 } as unknown as Json);
    assert.deepEqual(JSON.parse((await next).text) as Json, { ...work, round: 1 });
    assert.equal((await send('pod-one', [[run(4), run(4)]], 1)).status, 204);
    assert.notEqual(await operator.outputs('pod-one', 1), undefined);
    await operator.remove('pod-one');
    assert.equal((await one.call('GET', '/v1/verification', { agent: 'pod-one' })).status, 204);
  });
}
