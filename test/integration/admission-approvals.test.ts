import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ApiAnswer, Caller } from '../cluster/api-client.ts';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { installGuards, refusedBy } from '../cluster/guards.ts';
import { createAll, createNamespace, grant, until } from '../cluster/objects.ts';

const AUTHENTICATED = 'system:authenticated';
const account = (namespace: string, name: string): Caller => ({
  user: `system:serviceaccount:${namespace}:${name}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, AUTHENTICATED],
});
const ALICE: Caller = { user: 'alice', groups: [AUTHENTICATED], uid: 'alice-1' };
/** May write Approvals, holds no verb approve. */
const BOB: Caller = { user: 'bob', groups: [AUTHENTICATED] };
/** May approve one digest. */
const CAROL: Caller = { user: 'carol', groups: [AUTHENTICATED] };
const MERGER = account('flux-system', 'kustomize-controller');
const DEPLOYER = account('team-a', 'deployer');
const OPERATOR = account('temper-system', 'temper-operator');
const COLLECTOR = account('kube-system', 'generic-garbage-collector');

const HARMLESS = `sha256:${'a'.repeat(64)}`;
const OTHER = `sha256:${'b'.repeat(64)}`;
const ALL = ['get', 'list', 'create', 'update', 'patch', 'delete', 'deletecollection'];
const WRITES = { apiGroups: ['temper.dev'], resources: ['approvals'], verbs: ALL };
const PATH = '/apis/temper.dev/v1alpha1/namespaces/team-a/approvals';
const MERGE = 'application/merge-patch+json';

interface Answer {
  readonly by: Caller;
  readonly decision?: string;
  readonly subject?: object;
  readonly approvedBy?: object;
  readonly metadata?: object;
}

const promotion = (digest: string, tool = 'csv_rows') => ({ promotion: { tool, digest, tier: 'Shared' } });
const trust = (agent: string) => ({
  trust: {
    agent,
    agentUid: 'u-1',
    level: 'standard',
    agentSpecDigest: HARMLESS,
    policy: 'standard',
    policyGeneration: 1,
  },
});
const toolCall = (agent: string) => ({
  call: { agent, agentUid: 'u-1', tool: 'git_push', argumentsDigest: HARMLESS, callId: 'call-1' },
});

describe('who may approve', () => {
  let plane: ControlPlane;
  const call: ControlPlane['admin']['call'] = (...args) => plane.admin.call(...args);

  const approval = (
    name: string,
    { by, decision = 'Approve', subject = promotion(HARMLESS), approvedBy, metadata = {} }: Answer,
  ) => ({
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'Approval',
    metadata: { name, namespace: 'team-a', ...metadata },
    spec: {
      decision,
      nonce: 'k4q7pWm2Zc8vN1xRt6Yb',
      approvedBy: approvedBy ?? { username: by.user, ...(by.uid === undefined ? {} : { uid: by.uid }) },
      subject,
    },
  });
  const asked = (answer: Answer): Promise<ApiAnswer> =>
    call('POST', `${PATH}?dryRun=All`, { body: approval('try', answer), as: answer.by });
  const kept = async (name: string, answer: Answer) => {
    const { status, body } = await call('POST', PATH, { body: approval(name, answer), as: answer.by });
    assert.equal(status, 201, JSON.stringify(body));
  };
  const assertRefused = async (answer: Answer, guard = 'approvals') => {
    const got = await asked(answer);
    assert.ok(refusedBy(guard, got), JSON.stringify(got.body));
  };

  before(async () => {
    plane = await startControlPlane();
    await installGuards(plane, '--set', `guards.approvers={${MERGER.user},${DEPLOYER.user}}`);
    await createNamespace(plane, 'team-a');
    const approves = {
      apiGroups: ['temper.dev'],
      resources: ['emergenttools', 'agents', 'trustpolicies'],
      verbs: ['approve'],
    };
    await grant(plane, ALICE, [WRITES, approves], 'team-a');
    await grant(plane, BOB, [WRITES], 'team-a');
    const one = { ...approves, resources: ['emergenttools'], resourceNames: [HARMLESS] };
    await grant(
      plane,
      CAROL,
      [WRITES, one, { ...approves, resources: ['agents', 'trustpolicies'], resourceNames: ['analyst', 'standard'] }],
      'team-a',
    );
    const impersonated = account('team-a', 'does-not-exist');
    for (const wildcard of [MERGER, OPERATOR, COLLECTOR, DEPLOYER, impersonated, account('argocd', 'controller')]) {
      await grant(plane, wildcard, 'cluster-admin');
    }
    await until(
      'rights are seen',
      () => asked({ by: CAROL }),
      ({ status }) => status === 201,
    );
  });

  after(async () => {
    await plane?.[Symbol.asyncDispose]();
  });

  it('lets a person who holds the verb approve, deny and revoke', async () => {
    for (const decision of ['Approve', 'Deny', 'Revoke']) {
      for (const subject of [promotion(HARMLESS), promotion(OTHER), trust('analyst'), toolCall('analyst')]) {
        const { status, body } = await asked({ by: ALICE, decision, subject });
        assert.equal(status, 201, JSON.stringify(body));
      }
    }
  });

  it('refuses one who does not, whatever is decided about', async () => {
    for (const decision of ['Approve', 'Deny', 'Revoke']) {
      for (const subject of [promotion(HARMLESS), trust('analyst'), toolCall('analyst')]) {
        await assertRefused({ by: BOB, decision, subject });
      }
    }
  });

  it('authorises the digest and the agent that are acted on, not a name of the choice of the caller', async () => {
    for (const subject of [promotion(HARMLESS), trust('analyst'), toolCall('analyst')]) {
      assert.equal((await asked({ by: CAROL, subject })).status, 201);
    }
    await assertRefused({ by: CAROL, subject: promotion(OTHER) });
    await assertRefused({ by: CAROL, subject: promotion(OTHER, HARMLESS.slice(0, 6).replace(':', '')) });
    await assertRefused({ by: CAROL, subject: trust('other') });
    await assertRefused({ by: CAROL, subject: toolCall('other') });
  });

  it('refuses an answer in the name of another', async () => {
    await assertRefused({ by: ALICE, approvedBy: { username: 'bob' } });
    await assertRefused({ by: ALICE, approvedBy: { username: 'alice' } });
    await assertRefused({ by: ALICE, approvedBy: { username: 'alice', uid: 'alice-2' } });
    await assertRefused({ by: CAROL, approvedBy: { username: 'carol', uid: 'made-up' } });
  });

  it('refuses a service account, wildcard or not, but a listed one of another namespace', async () => {
    assert.equal((await asked({ by: MERGER })).status, 201);
    await assertRefused({ by: account('argocd', 'controller') });
    await assertRefused({ by: DEPLOYER });
    await assertRefused({ by: account('team-a', 'does-not-exist') });
    await assertRefused({ by: COLLECTOR });
  });

  it('lets the operator take back and nothing else', async () => {
    assert.equal((await asked({ by: OPERATOR, decision: 'Revoke' })).status, 201);
    await assertRefused({ by: OPERATOR });
    await assertRefused({ by: OPERATOR, decision: 'Deny' });
  });

  it('refuses a short digest, another case and a prefix', async () => {
    for (const digest of [HARMLESS.slice(0, 15), HARMLESS.toUpperCase(), 'a'.repeat(64), `${HARMLESS}0`]) {
      const { status } = await asked({ by: ALICE, subject: promotion(digest) });
      assert.ok(status === 422 || status === 403, String(status));
    }
  });

  it('refuses an owner that would take the answer along', async () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: 'u-1' };
    await assertRefused({ by: ALICE, metadata: { ownerReferences: [owner] } });
    await kept('owned-later', { by: ALICE });
    const patch = (body: object, as: Caller) =>
      call('PATCH', `${PATH}/owned-later?dryRun=All`, { body, contentType: MERGE, as });
    assert.ok(refusedBy('approvals', await patch({ metadata: { ownerReferences: [owner] } }, ALICE)));
    assert.ok(refusedBy('approvals', await patch({ metadata: { finalizers: ['a.example/b'] } }, ALICE)));
    assert.equal((await patch({ metadata: { labels: { a: 'b' } } }, ALICE)).status, 200);
  });

  it('refuses a change after the fact, in one step or in two', async () => {
    await kept('settled', { by: ALICE, decision: 'Deny' });
    const changes = [
      { spec: { decision: 'Approve' } },
      { spec: { reason: 'added' } },
      { spec: { approvedBy: { uid: null } } },
      { spec: { subject: { promotion: { digest: OTHER } } } },
      { spec: { subject: { promotion: null, call: toolCall('analyst').call } } },
    ];
    for (const body of changes) {
      for (const as of [ALICE, OPERATOR]) {
        const { status } = await call('PATCH', `${PATH}/settled`, { body, contentType: MERGE, as });
        assert.ok(status === 403 || status === 422, `${JSON.stringify(body)}: ${status}`);
      }
    }
  });

  it('lets only the garbage collector and the operator delete', async () => {
    await kept('no', { by: ALICE, decision: 'Deny' });
    for (const as of [ALICE, BOB, MERGER]) {
      assert.ok(refusedBy('approvals', await call('DELETE', `${PATH}/no?dryRun=All`, { as })));
      assert.ok(refusedBy('approvals', await call('DELETE', `${PATH}?dryRun=All`, { as })));
    }
    assert.ok(refusedBy('approvals', await call('DELETE', `${PATH}/no?dryRun=All`)));
    for (const as of [COLLECTOR, OPERATOR]) {
      assert.equal((await call('DELETE', `${PATH}/no?dryRun=All`, { as })).status, 200);
    }
  });

  it('refuses who took part in the tool', async () => {
    const digest = `sha256:${'c'.repeat(64)}`;
    const artifact = {
      name: 'mine',
      description: 'x',
      inputSchema: '{}',
      outputSchema: '{}',
      implementation: { mode: 'Sandbox', source: 'function execute() { return 1; }' },
      tests: [{ input: '{}' }],
      requires: { apis: [], domains: [], paths: [] },
      limits: { duration: '1s', memory: '64Mi' },
    };
    const tool = (name: string, of: string, contributors: string[]) => ({
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'EmergentTool',
      metadata: { name, namespace: 'team-a' },
      spec: { artifact, digest: of, tier: 'Agent', contributors },
    });
    assert.equal((await asked({ by: ALICE, subject: promotion(digest, 'mine') })).status, 201);
    await createAll(plane, [tool('mine-1', digest, ['analyst', 'alice']), tool('theirs-1', OTHER, ['bob'])]);
    const refused = () => asked({ by: ALICE, subject: promotion(digest, 'mine') });
    await until('the tool is seen', refused, (answer) => refusedBy('contributors', answer));
    assert.equal((await asked({ by: ALICE, subject: promotion(OTHER, 'theirs') })).status, 201);
    const no = await asked({ by: ALICE, decision: 'Deny', subject: promotion(digest, 'mine') });
    assert.equal(no.status, 201, 'a No may come from anybody who may answer');
  });

  it('lets nothing pass when the list of service accounts is gone', async () => {
    const list = '/api/v1/namespaces/temper-system/configmaps/temper-approvers';
    assert.equal((await call('DELETE', list)).status, 200);
    await until(
      'the list is missed',
      () => asked({ by: ALICE }),
      (answer) => refusedBy('approvals', answer),
    );
  });
});
