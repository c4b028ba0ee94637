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
    const accounts = ['temper-agent', 'default'].map((name) => ({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name, namespace: 'team-a' },
    }));
    await createAll(plane, accounts);
    const endpoints = { body: configMap('temper-endpoints'), as: OPERATOR };
    assert.equal((await call('POST', '/api/v1/namespaces/team-a/configmaps', endpoints)).status, 201);
  });

  after(async () => {
    await plane?.[Symbol.asyncDispose]();
  });

  it('every admission policy carries the digest of its stored spec', async () => {
    const policies = (await admissionObjects()).filter(({ kind }) => kind.startsWith('Validating'));
    assert.equal(policies.length, 12);
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

  it('only the operator can set or change the agent-pod label', async () => {
    const pods = '/api/v1/namespaces/team-a/pods';
    const dryRunPod = (as: ApiUser | undefined, change: object = {}) =>
      call('POST', `${pods}?dryRun=All`, {
        body: pod('p', { 'temper.dev/agent-pod': 'true' }, change),
        ...(as === undefined ? {} : { as }),
      });
    assert.equal((await dryRunPod(OPERATOR)).status, 201);
    assert.ok(isDeniedBy('reserved', await dryRunPod(undefined)));
    assert.ok(isDeniedBy('reserved', await dryRunPod(WRITER)));
    assert.equal((await call('POST', pods, { body: pod('plain', {}) })).status, 201);
    assert.equal(
      (await call('POST', pods, { body: pod('agents', { 'temper.dev/agent-pod': 'true' }), as: OPERATOR })).status,
      201,
    );
    const label = { metadata: { labels: { 'temper.dev/agent-pod': 'true' } } };
    const unlabel = { metadata: { labels: { 'temper.dev/agent-pod': null } } };
    const relabel = { metadata: { labels: { 'temper.dev/agent-pod': 'no' } } };
    assert.ok(isDeniedBy('reserved', await patch(`${pods}/plain`, label, WRITER)));
    assert.ok(isDeniedBy('reserved', await patch(`${pods}/agents`, unlabel, WRITER)));
    assert.ok(isDeniedBy('reserved', await patch(`${pods}/agents`, relabel, WRITER)));
    assert.equal((await patch(`${pods}/agents`, { metadata: { annotations: { note: 'x' } } }, WRITER)).status, 200);
    const ephemeral = { spec: { ephemeralContainers: [{ name: 'debug', image: 'example.com/x' }] } };
    assert.ok(isDeniedBy('reserved', await patch(`${pods}/agents/ephemeralcontainers`, ephemeral, WRITER)));
    assert.ok(isDeniedBy('reserved', await patch(`${pods}/agents/ephemeralcontainers`, ephemeral, OPERATOR)));
  });

  it('an agent pod cannot mount a secret, even when the operator creates it', async () => {
    const dryRunPod = (spec: object) =>
      call('POST', '/api/v1/namespaces/team-a/pods?dryRun=All', {
        body: pod('p', { 'temper.dev/agent-pod': 'true' }, spec),
        as: OPERATOR,
      });
    const tokenFor = (audience: string | undefined, expirationSeconds: number) => ({
      volumes: [
        {
          name: 'v',
          projected: {
            sources: [
              {
                serviceAccountToken: { ...(audience === undefined ? {} : { audience }), expirationSeconds, path: 't' },
              },
            ],
          },
        },
      ],
    });
    const good = [
      {},
      { volumes: [{ name: 'v', emptyDir: { medium: 'Memory' } }] },
      { volumes: [{ name: 'v', configMap: { name: 'temper-endpoints' } }] },
      { volumes: [{ name: 'v', configMap: { name: 'other' } }] },
      tokenFor('temper-gateway', 3600),
      {
        containers: [
          {
            name: 'c',
            image: 'example.com/x',
            env: [
              { name: 'A', value: 'b' },
              { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
            ],
          },
        ],
      },
    ];
    for (const spec of good) {
      const answer = await dryRunPod(spec);
      assert.equal(answer.status, 201, JSON.stringify(answer.body));
    }
    const container = { name: 'c', image: 'example.com/x' };
    const secretEnv = { env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] };
    const bad = [
      { volumes: [{ name: 'v', secret: { secretName: 's' } }] },
      { volumes: [{ name: 'v', hostPath: { path: '/' } }] },
      { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] },
      { volumes: [{ name: 'v', projected: { sources: [{ secret: { name: 's' } }] } }] },
      tokenFor(undefined, 3600),
      tokenFor('https://kubernetes.default.svc', 3600),
      tokenFor('temper-gateway', 7200),
      { containers: [{ ...container, ...secretEnv }] },
      { initContainers: [{ ...container, name: 'i', ...secretEnv }] },
      { containers: [{ ...container, envFrom: [{ secretRef: { name: 's' } }] }] },
    ];
    for (const spec of bad) {
      const answer = await dryRunPod(spec);
      assert.ok(isDeniedBy('reserved', answer), `${JSON.stringify(spec)}: ${JSON.stringify(answer.body)}`);
    }
    // These two rules apply only to stored pods: the operator's dry run happens before the ServiceAccount exists.
    for (const spec of [{ serviceAccountName: 'default' }, { automountServiceAccountToken: true }]) {
      const body = pod('p', { 'temper.dev/agent-pod': 'true' }, spec);
      const answer = await call('POST', '/api/v1/namespaces/team-a/pods', { body, as: OPERATOR });
      assert.ok(isDeniedBy('reserved', answer), `${JSON.stringify(spec)}: ${JSON.stringify(answer.body)}`);
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
    // The API server drops the status of a new object.
    const created = await call('POST', '/apis/temper.dev/v1alpha1/namespaces/team-a/agents?dryRun=All', {
      body: { ...agent('other', 'standard'), ...status },
    });
    assert.equal(created.status, 201);
    assert.equal(created.body['status'], undefined);
  });

  it("only a user with the verb manage can change a namespace's agents label", async () => {
    const label = (value: string | null) => ({ metadata: { labels: { 'temper.dev/agents': value } } });
    const path = '/api/v1/namespaces/team-a?dryRun=All';
    assert.ok(isDeniedBy('reserved', await patch(path, label('true'), WRITER)));
    assert.ok(isDeniedBy('reserved', await patch('/api/v1/namespaces/probe?dryRun=All', label(null), WRITER)));
    assert.ok(isDeniedBy('reserved', await patch('/api/v1/namespaces/probe?dryRun=All', label('false'), WRITER)));
    const other = await patch('/api/v1/namespaces/probe?dryRun=All', { metadata: { labels: { other: 'x' } } }, WRITER);
    assert.equal(other.status, 200, JSON.stringify(other.body));
    const made = { metadata: { name: 'mine', labels: { 'temper.dev/agents': 'true' } } };
    assert.ok(isDeniedBy('reserved', await call('POST', '/api/v1/namespaces?dryRun=All', { body: made, as: WRITER })));
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
        isDeniedBy('reserved', await patch(`${path}/temper-endpoints`, { data: { gateway: 'https://evil' } }, as)),
      );
      assert.ok(isDeniedBy('reserved', await call('DELETE', `${path}/temper-endpoints`, with_)));
      // deletecollection has no object name.
      assert.ok(isDeniedBy('reserved', await call('DELETE', path, with_)));
    }
    assert.equal((await call('GET', `${path}/temper-endpoints`)).status, 200);
    assert.equal((await call('POST', path, { body: configMap('other'), as: WRITER })).status, 201);
    const approvers = '/api/v1/namespaces/temper-system/configmaps/temper-approvers';
    const mine = { data: { serviceAccounts: 'system:serviceaccount:team-a:mine' } };
    const unprivileged = { user: 'unprivileged', groups: ['system:authenticated'] };
    await grant(plane, unprivileged, everything);
    const refused = () => patch(approvers, mine, unprivileged);
    await pollValue('the grants of the user', refused, ({ body }) => !String(body['message']).includes('cannot patch'));
    assert.ok(isDeniedBy('reserved', await refused()));
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

function configMap(name: string) {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { a: 'b' } };
}

function pod(name: string, labels: object, spec: object = {}) {
  const containers = [{ name: 'c', image: 'example.com/x' }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels },
    spec: { serviceAccountName: 'temper-agent', automountServiceAccountToken: false, containers, ...spec },
  };
}

function policy(name: string) {
  return buildTrustPolicy('team-a', { level: { initial: 'restricted', ceiling: 'restricted' } }, name);
}

function agent(name: string, policyName: string) {
  return buildAgent('team-a', name, { trustPolicyRef: { name: policyName }, model: { primary: 'default/default' } });
}
