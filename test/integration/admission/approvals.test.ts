import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ApiResponse, ApiUser } from '../../cluster/api-client.ts';
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts';
import { installAdmissionPolicies, isDeniedBy } from '../../support/admission/policies.ts';
import { createAll, createNamespace, grant } from '../../cluster/objects.ts';
import { pollValue } from '../../support/poll.ts';

const AUTHENTICATED = 'system:authenticated';
const account = (namespace: string, name: string): ApiUser => ({
  user: `system:serviceaccount:${namespace}:${name}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, AUTHENTICATED],
});
const ALICE: ApiUser = { user: 'alice', groups: [AUTHENTICATED], uid: 'alice-1' };
/** May write Approvals but does not hold the verb approve. */
const BOB: ApiUser = { user: 'bob', groups: [AUTHENTICATED] };
/** May approve one digest. */
const CAROL: ApiUser = { user: 'carol', groups: [AUTHENTICATED] };
const GITOPS = account('flux-system', 'kustomize-controller');
const DEPLOYER = account('team-a', 'deployer');
const OPERATOR = account('temper-system', 'temper-operator');
const COLLECTOR = account('kube-system', 'generic-garbage-collector');

const HARMLESS = `sha256:${'a'.repeat(64)}`;
const OTHER = `sha256:${'b'.repeat(64)}`;
const ALL = ['get', 'list', 'create', 'update', 'patch', 'delete', 'deletecollection'];
const WRITES = { apiGroups: ['temper.dev'], resources: ['approvals'], verbs: ALL };
const PATH = '/apis/temper.dev/v1alpha1/namespaces/team-a/approvals';
const MERGE = 'application/merge-patch+json';

interface Decision {
  readonly by: ApiUser;
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

describe('the admission policy of Approvals', () => {
  let plane: ControlPlane;
  const call: ControlPlane['admin']['call'] = (...args) => plane.admin.call(...args);

  const approval = (
    name: string,
    { by, decision = 'Approve', subject = promotion(HARMLESS), approvedBy, metadata = {} }: Decision,
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
  const dryRunApproval = (answer: Decision): Promise<ApiResponse> =>
    call('POST', `${PATH}?dryRun=All`, { body: approval('try', answer), as: answer.by });
  const createApproval = async (name: string, answer: Decision) => {
    const { status, body } = await call('POST', PATH, { body: approval(name, answer), as: answer.by });
    assert.equal(status, 201, JSON.stringify(body));
  };
  const assertDenied = async (answer: Decision, policy = 'approvals') => {
    const got = await dryRunApproval(answer);
    assert.ok(isDeniedBy(policy, got), JSON.stringify(got.body));
  };

  before(async () => {
    plane = await startControlPlane();
    await installAdmissionPolicies(plane, '--set', `admissionPolicies.approvers={${GITOPS.user},${DEPLOYER.user}}`);
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
    for (const wildcard of [GITOPS, OPERATOR, COLLECTOR, DEPLOYER, impersonated, account('argocd', 'controller')]) {
      await grant(plane, wildcard, 'cluster-admin');
    }
    await pollValue(
      'the grants of carol',
      () => dryRunApproval({ by: CAROL }),
      ({ status }) => status === 201,
    );
  });

  after(async () => {
    await plane?.[Symbol.asyncDispose]();
  });

  it('a user with the verb approve can approve, deny and revoke', async () => {
    for (const decision of ['Approve', 'Deny', 'Revoke']) {
      for (const subject of [promotion(HARMLESS), promotion(OTHER), trust('analyst'), toolCall('analyst')]) {
        const { status, body } = await dryRunApproval({ by: ALICE, decision, subject });
        assert.equal(status, 201, JSON.stringify(body));
      }
    }
  });

  it('a user without the verb approve is denied for every subject', async () => {
    for (const decision of ['Approve', 'Deny', 'Revoke']) {
      for (const subject of [promotion(HARMLESS), trust('analyst'), toolCall('analyst')]) {
        await assertDenied({ by: BOB, decision, subject });
      }
    }
  });

  it('the policy authorizes the digest or agent of the subject, not a name that the caller chooses', async () => {
    for (const subject of [promotion(HARMLESS), trust('analyst'), toolCall('analyst')]) {
      assert.equal((await dryRunApproval({ by: CAROL, subject })).status, 201);
    }
    await assertDenied({ by: CAROL, subject: promotion(OTHER) });
    await assertDenied({ by: CAROL, subject: promotion(OTHER, HARMLESS.slice(0, 6).replace(':', '')) });
    await assertDenied({ by: CAROL, subject: trust('other') });
    await assertDenied({ by: CAROL, subject: toolCall('other') });
  });

  it('an Approval in the name of another user is denied', async () => {
    await assertDenied({ by: ALICE, approvedBy: { username: 'bob' } });
    await assertDenied({ by: ALICE, approvedBy: { username: 'alice' } });
    await assertDenied({ by: ALICE, approvedBy: { username: 'alice', uid: 'alice-2' } });
    await assertDenied({ by: CAROL, approvedBy: { username: 'carol', uid: 'made-up' } });
  });

  it('a service account is denied even with wildcard rights, unless it is listed and belongs to another namespace', async () => {
    assert.equal((await dryRunApproval({ by: GITOPS })).status, 201);
    await assertDenied({ by: account('argocd', 'controller') });
    await assertDenied({ by: DEPLOYER });
    await assertDenied({ by: account('team-a', 'does-not-exist') });
    await assertDenied({ by: COLLECTOR });
  });

  it('the operator can only revoke', async () => {
    assert.equal((await dryRunApproval({ by: OPERATOR, decision: 'Revoke' })).status, 201);
    await assertDenied({ by: OPERATOR });
    await assertDenied({ by: OPERATOR, decision: 'Deny' });
  });

  it('a shortened, uppercase or unprefixed digest is rejected', async () => {
    for (const digest of [HARMLESS.slice(0, 15), HARMLESS.toUpperCase(), 'a'.repeat(64), `${HARMLESS}0`]) {
      const { status } = await dryRunApproval({ by: ALICE, subject: promotion(digest) });
      assert.ok(status === 422 || status === 403, String(status));
    }
  });

  it('an Approval with an owner or a finalizer is denied', async () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: 'u-1' };
    await assertDenied({ by: ALICE, metadata: { ownerReferences: [owner] } });
    await createApproval('owned-later', { by: ALICE });
    const patch = (body: object, as: ApiUser) =>
      call('PATCH', `${PATH}/owned-later?dryRun=All`, { body, contentType: MERGE, as });
    assert.ok(isDeniedBy('approvals', await patch({ metadata: { ownerReferences: [owner] } }, ALICE)));
    assert.ok(isDeniedBy('approvals', await patch({ metadata: { finalizers: ['a.example/b'] } }, ALICE)));
    assert.equal((await patch({ metadata: { labels: { a: 'b' } } }, ALICE)).status, 200);
  });

  it('a stored Approval is immutable', async () => {
    await createApproval('settled', { by: ALICE, decision: 'Deny' });
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

  it('only the garbage collector and the operator can delete an Approval', async () => {
    await createApproval('no', { by: ALICE, decision: 'Deny' });
    for (const as of [ALICE, BOB, GITOPS]) {
      assert.ok(isDeniedBy('approvals', await call('DELETE', `${PATH}/no?dryRun=All`, { as })));
      assert.ok(isDeniedBy('approvals', await call('DELETE', `${PATH}?dryRun=All`, { as })));
    }
    assert.ok(isDeniedBy('approvals', await call('DELETE', `${PATH}/no?dryRun=All`)));
    for (const as of [COLLECTOR, OPERATOR]) {
      assert.equal((await call('DELETE', `${PATH}/no?dryRun=All`, { as })).status, 200);
    }
  });

  it('a contributor of a tool cannot approve its promotion', async () => {
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
    assert.equal((await dryRunApproval({ by: ALICE, subject: promotion(digest, 'mine') })).status, 201);
    await createAll(plane, [tool('mine-1', digest, ['analyst', 'alice']), tool('theirs-1', OTHER, ['bob'])]);
    const refused = () => dryRunApproval({ by: ALICE, subject: promotion(digest, 'mine') });
    await pollValue('the policy to see the tool', refused, (answer) => isDeniedBy('contributors', answer));
    assert.equal((await dryRunApproval({ by: ALICE, subject: promotion(OTHER, 'theirs') })).status, 201);
    const no = await dryRunApproval({ by: ALICE, decision: 'Deny', subject: promotion(digest, 'mine') });
    assert.equal(no.status, 201, 'a contributor who holds the verb can deny');
  });

  it('every Approval is denied when the list of approving service accounts is missing', async () => {
    const list = '/api/v1/namespaces/temper-system/configmaps/temper-approvers';
    assert.equal((await call('DELETE', list)).status, 200);
    await pollValue(
      'the policy to see the deletion of the list',
      () => dryRunApproval({ by: ALICE }),
      (answer) => isDeniedBy('approvals', answer),
    );
  });
});
