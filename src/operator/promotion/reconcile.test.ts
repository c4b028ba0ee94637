import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TesterAnswer } from '../../tempering/examination/testers/ask-tester.ts';
import type { ApprovalRequest } from '../../api/v1alpha1/approvalrequest.ts';
import { AUDIT_HEAD } from '../../review/reviews.testing.ts';
import { unavailablePanel } from '../../tempering/judge/panel.ts';
import { Crash } from './crash.testing.ts';
import { ReviewTurns } from './panel/review-turns.ts';
import {
  aCluster,
  anOperator,
  APPROVED,
  type CreatedTool,
  FEW_ROUNDS,
  aReviewed,
  FIGURES,
  isKilled,
  stateOf,
  untilDecided,
} from './promotion-cluster.testing.ts';

describe('the promotions of an operator', () => {
  it('an operator that is killed at any call leaves a promotion that its successor ends in one decision', async () => {
    let steps = 0;
    for (const isAfterEffect of [false, true]) {
      for (let at = 1; ; at += 1) {
        const cluster = aCluster({}, {}, FEW_ROUNDS);
        const crash = new Crash(at, isAfterEffect);
        const first = anOperator(cluster, crash);
        const killed = await isKilled(async () => {
          await first.accept();
          await first.run();
        });
        if (!killed) break;
        steps += 1;
        const next = anOperator(cluster);
        // NATS delivers a request again that was not acknowledged.
        await next.accept();
        await next.resume();
        await next.run();
        const [record, ...others] = stateOf(cluster);
        const where = `call ${at} ${isAfterEffect ? 'after' : 'before'} its effect`;
        assert.ok(record?.state === 'Promoted' && record.concluded, `${where}: ${JSON.stringify(record)}`);
        assert.equal(others.length, 0, where);
        const objects = cluster.tools.list();
        assert.deepEqual(
          objects.map((one) => [(one as unknown as CreatedTool).spec.digest, one.status?.active]),
          [[cluster.tool.digest, true]],
          where,
        );
        assert.deepEqual(
          [...cluster.memory.records.values()]
            .map(({ action }) => action)
            .filter((action) => action !== 'tool.examined'),
          ['tool.promoted'],
          where,
        );
      }
    }
    assert.ok(steps > 40, `only ${steps} calls`);
  });

  it('a later leader deletes the pods that no promotion uses, and keeps that of a verification', async () => {
    const cluster = aCluster();
    const first = anOperator(cluster);
    await first.accept();
    await first.run(APPROVED, 1);
    const [verifying] = stateOf(cluster);
    assert.ok(verifying?.state === 'Verifying');
    const next = anOperator(cluster);
    assert.equal(next.verifierPods.isInUse('another'), true, 'before the promotions are listed');
    await next.resume();
    assert.equal(next.verifierPods.isInUse(verifying.pod.uid), true);
    assert.equal(next.verifierPods.isInUse('another'), false);
  });

  it('a promotion whose pod ends starts again with another pod, and waits after three', async () => {
    const cluster = aCluster();
    const operator = anOperator(cluster);
    await operator.accept();
    const attempts = new Set<string>();
    for (let round = 0; round < 12; round += 1) {
      const [record] = stateOf(cluster);
      if (record?.state === 'Verifying') {
        attempts.add(record.attempt);
        cluster.pods.delete(`temper-system/${record.pod.name}`);
        cluster.memory.works.clear();
        cluster.memory.sent.clear();
      }
      await operator.step();
    }
    const [record] = stateOf(cluster);
    assert.ok(record?.state === 'Candidate', JSON.stringify(record));
    assert.match(record.missing.join(), /3 verifications ended without a result; the last one: pod v-\d+ was deleted/);
    assert.equal(attempts.size, 3);
    await operator.accept();
    assert.equal(stateOf(cluster)[0]?.state, 'Candidate', 'no attempt before the time');
    await cluster.clock.advance(3_600_001);
    await operator.accept();
    assert.equal(stateOf(cluster)[0]?.state, 'Requested');
  });

  it('a refusal is one decision, with an Event and the time of the next attempt', async () => {
    const cluster = aCluster();
    const operator = anOperator(cluster);
    await operator.accept();
    await operator.run({ ...unavailablePanel('x'), code: 'TEMPER_JUDGE_REFUSED', reasoning: 'leaks' });
    const [record] = stateOf(cluster);
    assert.ok(record?.state === 'Rejected' && record.concluded);
    assert.equal(Date.parse(record.notBefore) - cluster.clock.now().getTime(), 86_400_000);
    assert.deepEqual(
      cluster.events.map(({ type, reason }) => [type, reason]),
      [['Warning', 'ToolPromotionRefused']],
    );
    assert.deepEqual(cluster.tools.list(), []);
  });

  it('the panel sees numbers only, and the pod no expected output', async () => {
    const cluster = aCluster();
    const operator = anOperator(cluster);
    await operator.accept();
    await operator.run(APPROVED, 1);
    const [work] = [...cluster.memory.works.values()];
    assert.doesNotMatch(JSON.stringify(work), /expectedOutput|root-/);
    await operator.run(APPROVED, 20);
    const [review] = cluster.memory.reviewRequests;
    assert.deepEqual(review?.facts, {
      ...FIGURES,
      examinedInputs: review?.facts['examinedInputs'],
      checkCases: review?.facts['checkCases'],
      refusingDisagreements: 0,
      openQuestions: 0,
      failedGeneratedInputs: review?.facts['failedGeneratedInputs'],
      testersWithEvidence: 0,
      testersAgainst: 0,
    });
    assert.ok(Number(review?.facts['examinedInputs']) > 8);
  });

  it('a promotion that a user must approve ends in one decision, at whichever call its operator is killed', async () => {
    let steps = 0;
    for (const decision of ['Approve', 'Deny'] as const) {
      for (let at = 1; ; at += 1) {
        const cluster = aCluster({ promotion: { toAgent: { requireHuman: true } } });
        await cluster.memory.write(aReviewed(cluster), 0);
        const first = anOperator(cluster, new Crash(at, decision === 'Approve'));
        const killed = await isKilled(() => untilDecided(cluster, first, decision));
        if (!killed) break;
        steps += 1;
        const next = anOperator(cluster);
        await untilDecided(cluster, next, decision);
        const [record, ...others] = stateOf(cluster);
        const where = `${decision} at call ${at}: ${JSON.stringify(record)}`;
        assert.equal(record?.state, decision === 'Approve' ? 'Promoted' : 'Rejected', where);
        assert.ok('concluded' in record && record.concluded && others.length === 0, where);
        assert.equal(cluster.requests.list().length, 1, where);
        assert.equal(cluster.tools.list().length, decision === 'Approve' ? 1 : 0, where);
      }
    }
    assert.ok(steps > 20, `only ${steps} calls`);
  });

  it('a request for an approval is removed when the policy ends the promotion before the decision', async () => {
    const cluster = aCluster({ promotion: { toAgent: { requireHuman: true } } });
    const operator = anOperator(cluster);
    await operator.accept();
    await operator.run();
    assert.equal(stateOf(cluster)[0]?.state, 'AwaitingApproval');
    const [request] = cluster.requests.list();
    assert.deepEqual(request?.spec.subject, {
      promotion: { tool: cluster.tool.artifact.name, digest: cluster.tool.digest, tier: 'Agent' },
    });
    const { review } = (request as unknown as ApprovalRequest).spec;
    assert.equal(review?.verification?.successes, FIGURES.successes);
    assert.equal(review.verdicts?.length, 2);
    assert.deepEqual(
      review.usedBy?.map(({ name, uses }) => [name, uses > 0]),
      [['analyst', true]],
    );
    assert.deepEqual(review.auditHead, AUDIT_HEAD);
    cluster.policies.delete('team-a/p');
    await operator.run();
    assert.equal(stateOf(cluster)[0]?.state, 'Candidate');
    assert.deepEqual(cluster.requests.list(), []);
  });

  it('two testers against a tool refuse it, and one asks a user with the cases on the request', async () => {
    const testers = ['test/first', 'test/second'];
    const answer = (model: string, factor: number): TesterAnswer => ({
      model,
      cases: [21, 22, 23].map((value) => ({ input: { value }, expected: { result: value * factor } })),
      dropped: 0,
      promptDigest: 'sha256:p',
    });
    for (const [factors, state] of [
      [[3, 3], 'Rejected'],
      [[2, 3], 'AwaitingApproval'],
      [[2, 2], 'Promoted'],
    ] as const) {
      const cluster = aCluster({}, { testers });
      const operator = anOperator(cluster);
      await operator.accept();
      await operator.run(APPROVED, 20);
      const [waiting] = stateOf(cluster);
      assert.equal(waiting?.state, 'Examining', 'waits for the testers');
      const [request] = cluster.memory.testerRequests;
      assert.equal(request?.attempt, waiting.attempt);
      const [first, second] = factors;
      cluster.memory.answers.set(waiting.attempt, [answer('test/first', first), answer('test/second', second)]);
      await operator.run(APPROVED, 10);
      const [record] = stateOf(cluster);
      assert.equal(record?.state, state, JSON.stringify(record));
      if (record.state !== 'AwaitingApproval') continue;
      assert.deepEqual(record.questions[0]?.cases[0], {
        input: '{"value":21}',
        expected: '{"result":63}',
        got: '{"result":42}',
        reason: 'the tester expects another output',
      });
    }
  });

  it('an agent whose reviewers do not answer has two panels at a time, and its namespace four', async () => {
    const turns = new ReviewTurns();
    const begin = (key: string, uid: string, namespace = 'team-a') => turns.begin(key, { uid, namespace });
    assert.deepEqual(
      [begin('1', 'u-1'), begin('2', 'u-1'), begin('3', 'u-1'), begin('1', 'u-1')],
      [true, true, false, true],
    );
    assert.deepEqual([begin('4', 'u-2'), begin('5', 'u-3'), begin('6', 'u-4')], [true, true, false]);
    assert.equal(begin('7', 'u-5', 'team-b'), true);
    turns.end('1');
    assert.equal(begin('3', 'u-1'), true);
  });
});
