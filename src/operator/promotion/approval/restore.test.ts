import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManifestLoader } from '../../../api/manifests.ts';
import type { Json } from '../../../lib/json.ts';
import { Crash } from '../crash.testing.ts';
import {
  aCluster,
  anOperator,
  APPROVED,
  type Cluster,
  aReviewed,
  FIGURES,
  isKilled,
  stateOf,
  untilDecided,
} from '../promotion-cluster.testing.ts';
import type { RequestObject } from './restored-promotion.ts';

const SUPERVISED = { promotion: { toAgent: { requireHuman: true } } };

/** A promotion whose request waits for a user, after its re-runs and its examination. */
async function aWaiting(policy: object = SUPERVISED, tainted = false) {
  const cluster = aCluster(policy);
  cluster.memory.tainted = tainted;
  await cluster.memory.write(aReviewed(cluster), 0);
  const operator = anOperator(cluster);
  await operator.resume();
  await operator.run(APPROVED, 5);
  const [record] = stateOf(cluster);
  assert.ok(record?.state === 'AwaitingApproval', JSON.stringify(record));
  return { cluster, record };
}

function loseStore({ memory }: Cluster): void {
  memory.states.clear();
  memory.registered = undefined;
  memory.inputs = [];
  memory.uses = undefined;
  memory.tainted = false;
}

const requestOf = ({ requests }: Cluster) => requests.list()[0] as unknown as RequestObject;

describe('a promotion that waits for a user when NATS loses its store', () => {
  it('the request has the tool, the figures and the verdicts, and is valid', async () => {
    const { cluster } = await aWaiting();
    const { metadata, spec } = requestOf(cluster);
    assert.deepEqual(
      [spec.review?.verification?.successes, spec.review?.verdicts?.map(({ model }) => model)],
      [5, ['replay/safety', 'replay/correctness']],
    );
    const request = { apiVersion: 'temper.dev/v1alpha1', kind: 'ApprovalRequest', metadata, spec };
    assert.deepEqual(createManifestLoader().validate(request as unknown as Json), []);
  });

  it('the decision of the user takes effect once, before and after the loss, at whichever call the operator is killed', async () => {
    let steps = 0;
    for (const decision of ['Approve', 'Deny'] as const) {
      for (let at = 1; ; at += 1) {
        const { cluster, record: waiting } = await aWaiting();
        loseStore(cluster);
        if (at % 2 === 0) cluster.decide(waiting, decision);
        const first = anOperator(cluster, new Crash(at, decision === 'Approve'));
        const killed = await isKilled(() => untilDecided(cluster, first, decision));
        steps += 1;
        await untilDecided(cluster, anOperator(cluster), decision);
        const [record, ...others] = stateOf(cluster);
        const where = `${decision} at call ${at}: ${JSON.stringify(record)}`;
        assert.equal(record?.state, decision === 'Approve' ? 'Promoted' : 'Rejected', where);
        assert.ok('concluded' in record && record.concluded && others.length === 0, where);
        assert.ok(record.state !== 'Promoted' || record.figures.successes === FIGURES.successes, where);
        assert.deepEqual(
          cluster.tools.list().map(({ status }) => status?.active),
          decision === 'Approve' ? [true] : [],
          where,
        );
        assert.equal(cluster.requests.list().length, 1, where);
        if (!killed) break;
      }
    }
    assert.ok(steps > 12, `only ${steps} calls`);
  });

  it('a later request for the same tool starts no second attempt', async () => {
    const { cluster, record } = await aWaiting();
    const { registered } = cluster.memory;
    loseStore(cluster);
    cluster.memory.registered = registered;
    await anOperator(cluster).accept();
    const [restored] = stateOf(cluster);
    assert.ok(restored?.state === 'AwaitingApproval', JSON.stringify(restored));
    assert.deepEqual([restored.nonce, restored.request], [record.nonce, record.request]);
  });

  it('a promotion that had its effect is not restored', async () => {
    const { cluster, record } = await aWaiting();
    cluster.decide(record, 'Approve');
    await anOperator(cluster).resume();
    const before = anOperator(cluster);
    await before.resume();
    await before.run();
    assert.equal(cluster.tools.list().length, 1);
    loseStore(cluster);
    const after = anOperator(cluster);
    await after.resume();
    await after.run();
    assert.deepEqual(stateOf(cluster), []);
  });

  it('a request without the evidence, or older than the admission policies, expires with the next step', async () => {
    for (const change of ['evidence', 'age'] as const) {
      const { cluster } = await aWaiting();
      const { metadata, spec } = requestOf(cluster);
      const { verification: _, ...review } = spec.review ?? assert.fail();
      const creationTimestamp = change === 'age' ? '1969-12-31T00:00:00Z' : metadata.creationTimestamp;
      const changed = { ...spec, review: change === 'evidence' ? review : spec.review };
      const newer = { ...metadata, creationTimestamp, resourceVersion: 'changed' };
      cluster.requests.set({ metadata: newer, spec: changed } as never);
      loseStore(cluster);
      const operator = anOperator(cluster);
      await operator.resume();
      await operator.run();
      assert.deepEqual(stateOf(cluster), []);
      const { status } = requestOf(cluster);
      assert.deepEqual([status?.decision, status?.conditions?.[0]?.reason], ['Expired', 'Expired']);
      assert.match(status?.conditions?.[0]?.message ?? '', /has to forge and use the tool again/);
      const expired = cluster.events.filter(({ reason }) => reason === 'Expired');
      assert.equal(expired.length, 1);
    }
  });

  it('a session that was tainted stays tainted, also under a policy that is edited after the loss', async () => {
    const { cluster } = await aWaiting({ ...SUPERVISED, tainted: { deny: [] } }, true);
    assert.equal(requestOf(cluster).spec.review?.tainted, true);
    loseStore(cluster);
    const operator = anOperator(cluster);
    await operator.resume();
    await operator.run(APPROVED, 5);
    assert.equal(stateOf(cluster)[0]?.state, 'AwaitingApproval');
    const [policy = assert.fail()] = cluster.policies.list();
    const metadata = { ...policy.metadata, resourceVersion: '2', generation: 2 };
    cluster.policies.set({ ...policy, metadata, spec: { ...policy.spec, tainted: { deny: ['promote'] } } });
    await operator.run(APPROVED, 5);
    const [record] = stateOf(cluster);
    assert.ok(record?.state === 'Candidate', JSON.stringify(record));
    assert.match(record.missing.join(), /untrusted content/);
    assert.deepEqual(cluster.requests.list(), []);
  });

  it('a request that an operator left when an attempt ended is removed', async () => {
    const { cluster, record } = await aWaiting();
    const { agent, tool, digest, session, attempt, since } = record;
    const ended = { state: 'Candidate', missing: ['a use'], notBefore: since } as const;
    const { revision } = await cluster.memory.get({ agentUid: agent.uid, digest });
    await cluster.memory.write({ agent, tool, digest, session, attempt, since, ...ended }, revision);
    const operator = anOperator(cluster);
    await operator.resume();
    await operator.run(APPROVED, 1);
    assert.deepEqual(cluster.requests.list(), []);
  });

  it('a request that was deleted after the loss ends the promotion', async () => {
    const { cluster, record } = await aWaiting();
    loseStore(cluster);
    const operator = anOperator(cluster);
    await operator.accept();
    cluster.requests.delete(`${record.agent.namespace}/${record.request}`);
    await operator.run(APPROVED, 5);
    const [ended] = stateOf(cluster);
    assert.ok(ended?.state === 'Candidate', JSON.stringify(ended));
    assert.match(ended.missing.join(), /was deleted before the decision; forge it again/);
  });
});
