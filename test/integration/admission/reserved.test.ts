import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Json, isJsonObject } from '../../../src/lib/json.ts';
import { digestOf } from '../../../src/lib/canonical.ts';
import type { ApiUser } from '../../cluster/api-client.ts';
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts';
import { admissionObjects, installAdmissionPolicies, isDeniedBy } from '../../support/admission/policies.ts';
import { collectionOf, createAll, createNamespace, grant } from '../../cluster/objects.ts';
import { pollValue } from '../../support/poll.ts';
import { buildAgent, buildTrustPolicy } from '../../support/builders.ts';

const OPERATOR: ApiUser = {
  user: 'system:serviceaccount:temper-system:temper-operator',
  groups: ['system:serviceaccounts', 'system:authenticated'],
};
const WRITER: ApiUser = { user: 'walter', groups: ['system:authenticated'] };
const MERGE = 'application/merge-patch+json';
const everything = [
  {
    apiGroups: ['*'],
    resources: ['*'],
    verbs: ['get', 'list', 'create', 'update', 'patch', 'delete', 'deletecollection'],
  },
];

describe('the admission policy of reserved objects', () => {
  let plane: ControlPlane;
  const call: ControlPlane['admin']['call'] = (...args) => plane.admin.call(...args);
  const patch = (path: string, body: object, as?: ApiUser) =>
    call('PATCH', path, { body, contentType: MERGE, ...(as === undefined ? {} : { as }) });

  before(async () => {
    plane = await startControlPlane();
    await installAdmissionPolicies(plane);
    await createNamespace(plane, 'team-a');
    await grant(plane, OPERATOR, 'cluster-admin');
    await grant(plane, WRITER, everything);
    await createAll(plane, [policy('standard'), agent('analyst', 'standard')]);
    const endpoints = {
      body: configMap('temper-endpoints', { 'app.kubernetes.io/managed-by': 'temper-operator' }),
      as: OPERATOR,
    };
    assert.equal((await call('POST', '/api/v1/namespaces/team-a/configmaps', endpoints)).status, 201);
  });

  after(async () => {
    await plane?.[Symbol.asyncDispose]();
  });

  it('every admission policy carries the digest of its stored spec', async () => {
    const policies = (await admissionObjects()).filter(({ kind }) => kind.startsWith('Validating'));
    assert.equal(policies.length, 28);
    for (const policy of policies) {
      const { body } = await call('GET', `${collectionOf(policy)}/${policy.metadata.name}`);
      const spec = body['spec'] as Json;
      assert.ok(isJsonObject(spec));
      const { annotations } = body['metadata'] as { annotations: Record<string, string> };
      assert.equal(
        annotations['temper.dev/admission-policy-digest'],
        digestOf(spec),
        `${policy.kind} ${policy.metadata.name}`,
      );
    }
  });

  it('only the operator can write a status', async () => {
    const path = '/apis/temper.dev/v1alpha1/namespaces/team-a/agents/analyst/status';
    const status = { status: { pod: { name: 'mine', uid: 'mine' } } };
    assert.ok(isDeniedBy('reserved', await patch(path, status)));
    assert.ok(isDeniedBy('reserved', await patch(path, status, WRITER)));
    const ofPolicy = '/apis/temper.dev/v1alpha1/namespaces/team-a/trustpolicies/standard/status';
    assert.ok(isDeniedBy('reserved', await patch(ofPolicy, { status: { observedGeneration: 1 } }, WRITER)));
    assert.equal((await patch(path, status, OPERATOR)).status, 200);
    // The API server drops the status of a new object, and adds the default.
    const created = await call('POST', '/apis/temper.dev/v1alpha1/namespaces/team-a/agents?dryRun=All', {
      body: { ...agent('other', 'standard'), ...status },
    });
    assert.equal(created.status, 201);
    assert.deepEqual(Object.keys(created.body['status'] as object).toSorted(), ['conditions', 'observedGeneration']);
  });

  it("only a user with the verb manage can change a namespace's agents label", async () => {
    const label = (value: string | null) => ({ metadata: { labels: { 'temper.dev/agents': value } } });
    const path = '/api/v1/namespaces/team-a?dryRun=All';
    await pollValue(
      'the policy temper-namespaces',
      () => patch(path, label('true'), WRITER),
      (answer) => isDeniedBy('namespaces', answer),
    );
    assert.ok(isDeniedBy('namespaces', await patch('/api/v1/namespaces/probe?dryRun=All', label(null), WRITER)));
    assert.ok(isDeniedBy('namespaces', await patch('/api/v1/namespaces/probe?dryRun=All', label('false'), WRITER)));
    const other = await patch('/api/v1/namespaces/probe?dryRun=All', { metadata: { labels: { other: 'x' } } }, WRITER);
    assert.equal(other.status, 200, JSON.stringify(other.body));
    const made = { metadata: { name: 'mine', labels: { 'temper.dev/agents': 'true' } } };
    assert.ok(
      isDeniedBy('namespaces', await call('POST', '/api/v1/namespaces?dryRun=All', { body: made, as: WRITER })),
    );
    // Status and finalize write the whole object too.
    const { body: probe } = await call('GET', '/api/v1/namespaces/probe');
    const metadata = probe['metadata'] as { labels: Record<string, string> };
    const { 'temper.dev/agents': _, ...others } = metadata.labels;
    const bare = { ...probe, metadata: { ...metadata, labels: others } };
    for (const subresource of ['status', 'finalize']) {
      const at = `/api/v1/namespaces/probe/${subresource}?dryRun=All`;
      const replaced = await call('PUT', at, { body: bare, as: WRITER });
      assert.ok(isDeniedBy('namespaces', replaced), `${subresource}: ${JSON.stringify(replaced.body)}`);
      const unchanged = await call('PUT', at, { body: probe, as: WRITER });
      assert.equal(unchanged.status, 200, `${subresource}: ${JSON.stringify(unchanged.body)}`);
    }
    assert.ok(isDeniedBy('namespaces', await patch('/api/v1/namespaces/probe/status?dryRun=All', label(null), WRITER)));
    assert.equal((await patch(path, label('true'))).status, 200);
    await grant(plane, WRITER, [{ apiGroups: ['temper.dev'], resources: ['admissionpolicies'], verbs: ['manage'] }]);
    await pollValue(
      'the grant of the verb',
      () => patch(path, label('true'), WRITER),
      ({ status }) => status === 200,
    );
  });

  it('only the operator can change the endpoints and the list of approvers', async () => {
    const path = '/api/v1/namespaces/team-a/configmaps';
    for (const as of [undefined, WRITER]) {
      const with_ = as === undefined ? {} : { as };
      assert.ok(
        isDeniedBy('config-maps', await patch(`${path}/temper-endpoints`, { data: { gateway: 'https://evil' } }, as)),
      );
      const deleted = await call('DELETE', `${path}/temper-endpoints`, with_);
      // Both policies deny it, and the API server names one of them.
      const isDenied = ['config-maps', 'config-map-collections'].some((policy) => isDeniedBy(policy, deleted));
      assert.ok(isDenied, JSON.stringify(deleted.body));
      // deletecollection has no object name.
      assert.ok(isDeniedBy('config-map-collections', await call('DELETE', path, with_)));
    }
    assert.equal((await call('GET', `${path}/temper-endpoints`)).status, 200);
    assert.equal((await call('POST', path, { body: configMap('other'), as: WRITER })).status, 201);
    const approvers = '/api/v1/namespaces/temper-system/configmaps/temper-approvers';
    const mine = { data: { serviceAccounts: 'system:serviceaccount:team-a:mine' } };
    const unprivileged = { user: 'unprivileged', groups: ['system:authenticated'] };
    await grant(plane, unprivileged, everything);
    const refused = () => patch(approvers, mine, unprivileged);
    await pollValue('the grants of the user', refused, ({ body }) => !String(body['message']).includes('cannot patch'));
    assert.ok(isDeniedBy('config-maps', await refused()));
  });

  it('only the operator can create and delete ApprovalRequests', async () => {
    const path = '/apis/temper.dev/v1alpha1/namespaces/team-a/approvalrequests';
    const body = {
      metadata: { name: 'forged' },
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'ApprovalRequest',
      spec: {
        type: 'PromoteTool',
        agent: { name: 'analyst', uid: 'u-1' },
        nonce: 'forgedforgedforged',
        summary: 'harmless',
        risk: 'low',
        subject: { promotion: { tool: 'x', digest: `sha256:${'1'.repeat(64)}`, tier: 'Shared' } },
      },
    };
    assert.ok(isDeniedBy('reserved', await call('POST', path, { body })));
    assert.equal((await call('POST', path, { body, as: OPERATOR })).status, 201);
    assert.ok(isDeniedBy('reserved', await call('DELETE', `${path}/forged`)));
    assert.ok(isDeniedBy('reserved', await call('DELETE', path)));
  });

  it('writing an Agent needs the verb use on its TrustPolicy', async () => {
    const author: ApiUser = { user: 'ada', groups: ['system:authenticated'] };
    const writes = [
      { apiGroups: ['temper.dev'], resources: ['agents', 'trustpolicies'], verbs: ['create', 'patch', 'get'] },
    ];
    const uses = [
      { apiGroups: ['temper.dev'], resources: ['trustpolicies'], resourceNames: ['standard'], verbs: ['use'] },
    ];
    await grant(plane, author, writes, 'team-a');
    await grant(plane, author, uses, 'team-a');
    const path = '/apis/temper.dev/v1alpha1/namespaces/team-a/agents';
    const create = (under: string) => call('POST', `${path}?dryRun=All`, { body: agent('hers', under), as: author });
    await pollValue(
      'the grants of ada',
      () => create('standard'),
      ({ status }) => status === 201,
    );
    const refused = await create('generous');
    assert.ok(isDeniedBy('use-policy', refused));
    assert.match(String(refused.body['message']), /takes the verb use on it; ask who owns the policy/);
    const move = { spec: { trustPolicyRef: { name: 'generous' } } };
    assert.ok(isDeniedBy('use-policy', await patch(`${path}/analyst?dryRun=All`, move, author)));
    // Under another policy she can change neither the prompt nor the rules of an agent; labels grant nothing, so she can change them.
    await createAll(plane, [agent('rich', 'generous')]);
    const prompt = { spec: { prompt: { system: 'obey me' } } };
    assert.ok(isDeniedBy('use-policy', await patch(`${path}/rich?dryRun=All`, prompt, author)));
    assert.equal((await patch(`${path}/rich?dryRun=All`, { metadata: { labels: { a: 'b' } } }, author)).status, 200);
  });

  it('only the operator can make an agent the child of another one, or end that', async () => {
    const path = '/apis/temper.dev/v1alpha1/namespaces/team-a/agents';
    const label = (value: string | null) => ({ metadata: { labels: { 'temper.dev/parent-agent-uid': value } } });
    const child = (name: string) => {
      const object = agent(name, 'standard');
      return { ...object, metadata: { ...object.metadata, labels: { 'temper.dev/parent-agent-uid': 'u-1' } } };
    };
    await createAll(plane, [agent('alone', 'standard')]);
    // An administrator may use every policy, so no other rule denies this.
    const made = await call('POST', path, { body: child('mine') });
    assert.ok(isDeniedBy('child-agents', made), JSON.stringify(made.body));
    assert.equal((await call('POST', path, { body: child('mine'), as: WRITER })).status, 403);
    for (const as of [undefined, WRITER]) {
      assert.ok(isDeniedBy('child-agents', await patch(`${path}/alone`, label('u-1'), as)));
    }
    assert.equal((await call('POST', path, { body: child('hired'), as: OPERATOR })).status, 201);
    for (const value of ['u-2', null]) {
      assert.ok(isDeniedBy('child-agents', await patch(`${path}/hired`, label(value), WRITER)));
    }
    const described = await patch(`${path}/hired`, { spec: { description: 'x' } });
    assert.equal(described.status, 200, JSON.stringify(described.body));
    assert.equal((await patch(`${path}/hired`, label('u-2'), OPERATOR)).status, 200);
  });

  it('clearing a kill switch needs the verb resume', async () => {
    const keeper: ApiUser = { user: 'kim', groups: ['system:authenticated'] };
    const rules = [
      {
        apiGroups: ['temper.dev'],
        resources: ['trustpolicies'],
        verbs: ['patch', 'delete', 'deletecollection', 'get', 'list'],
      },
    ];
    await grant(plane, keeper, rules, 'team-a');
    await createAll(plane, [policy('killed')]);
    const path = '/apis/temper.dev/v1alpha1/namespaces/team-a/trustpolicies';
    const suspend = (suspend: boolean | null) => patch(`${path}/killed`, { spec: { suspend } }, keeper);
    await pollValue(
      'the grants of kim',
      () => suspend(true),
      ({ status }) => status === 200,
    );
    assert.ok(isDeniedBy('resume', await suspend(false)));
    assert.ok(isDeniedBy('resume', await suspend(null)));
    assert.ok(isDeniedBy('resume', await call('DELETE', `${path}/killed`, { as: keeper })));
    assert.ok(isDeniedBy('resume', await call('DELETE', path, { as: keeper })));
    const described = await patch(`${path}/killed`, { spec: { description: 'x' } }, keeper);
    assert.equal(described.status, 200, JSON.stringify(described.body));
    await grant(
      plane,
      keeper,
      [{ apiGroups: ['temper.dev'], resources: ['trustpolicies'], verbs: ['resume'] }],
      'team-a',
    );
    await pollValue(
      'the grant of the verb',
      () => suspend(false),
      ({ status }) => status === 200,
    );
  });
});

function configMap(name: string, labels: object = {}) {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels }, data: { a: 'b' } };
}

function policy(name: string) {
  return buildTrustPolicy('team-a', { level: { initial: 'restricted', ceiling: 'restricted' } }, name);
}

function agent(name: string, policyName: string) {
  return buildAgent('team-a', name, { trustPolicyRef: { name: policyName }, model: { primary: 'default/default' } });
}
