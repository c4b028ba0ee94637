import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { LABELS } from '../../../src/api/cluster.ts';
import { verifierTemplate } from '../../../src/operator/verifier/pod-template.ts';
import type { ApiUser } from '../../cluster/api-client.ts';
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts';
import { createAll, createNamespace, grant } from '../../cluster/objects.ts';
import { agentContainer, agentPod, RELEASE_IMAGE } from '../../support/admission/agent-pod.ts';
import { admissionObjects, installAdmissionPolicies, isDeniedBy } from '../../support/admission/policies.ts';
import { OPERATOR_CONFIG } from '../../support/operator/start-operator.ts';
import { pollValue } from '../../support/poll.ts';

const OPERATOR: ApiUser = {
  user: 'system:serviceaccount:temper-system:temper-operator',
  groups: ['system:serviceaccounts', 'system:authenticated'],
};
const COLLECTOR: ApiUser = {
  user: 'system:serviceaccount:kube-system:generic-garbage-collector',
  groups: ['system:serviceaccounts', 'system:authenticated'],
};
const WRITER: ApiUser = { user: 'walter', groups: ['system:authenticated'] };
const MERGE = 'application/merge-patch+json';
const PODS = '/api/v1/namespaces/team-a/pods';
const RELEASE_PODS = '/api/v1/namespaces/temper-system/pods';
/** The pod that the operator creates with the images of the chart's default release. */
const VERIFIER = verifierTemplate({
  ...OPERATOR_CONFIG,
  agent: { ...OPERATOR_CONFIG.agent, image: RELEASE_IMAGE },
  sandboxClasses: OPERATOR_CONFIG.sandboxClasses.map((one) => ({ ...one, image: RELEASE_IMAGE })),
  verifier: { podLabels: { 'app.kubernetes.io/component': 'verifier', 'app.kubernetes.io/part-of': 'temper' } },
});
const VERIFIER_LABELS = VERIFIER?.labels ?? {};

function verifierPod(name: string, spec: object = {}, labels: object = VERIFIER_LABELS) {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels }, spec: { ...VERIFIER?.spec, ...spec } };
}

const VALUES = [
  '--set',
  'imagePullSecrets={registry}',
  '--set',
  'admissionPolicies.agentPods.images={mirror.example/*}',
];

describe('the admission policies of agent pods and of the operator', () => {
  let plane: ControlPlane;
  const call: ControlPlane['admin']['call'] = (...args) => plane.admin.call(...args);
  const patch = (path: string, body: object, as: ApiUser) => call('PATCH', path, { body, contentType: MERGE, as });
  const create = (body: object, as: ApiUser | undefined, query = '', path = PODS) =>
    call('POST', `${path}${query}`, { body, ...(as === undefined ? {} : { as }) });
  /** A dry run, so that the rules about accounts, images and pull secrets do not apply. */
  const dryRun = (spec: object) => create(agentPod('p', spec), OPERATOR, '?dryRun=All');
  let made = 0;
  const createStored = (spec: object) => create(agentPod(`stored-${(made += 1)}`, spec), OPERATOR);

  before(async () => {
    plane = await startControlPlane();
    await installAdmissionPolicies(plane, ...VALUES);
    await createNamespace(plane, 'team-a');
    await grant(plane, OPERATOR, 'cluster-admin');
    await grant(plane, WRITER, 'cluster-admin');
    await grant(plane, COLLECTOR, 'cluster-admin');
    const accounts = ['temper-agent', 'temper-verifier', 'default'].map((name) => ({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name, namespace: 'team-a' },
    }));
    const ofRelease = ['temper-verifier', 'temper-gateway'].map((name) => ({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name, namespace: 'temper-system' },
    }));
    await createAll(plane, [...accounts, ...ofRelease]);
    const probes = [
      ['agent-pods', () => create(agentPod('p'), WRITER, '?dryRun=All')],
      ['operator', () => create(agentPod('p', {}, {}), OPERATOR, '?dryRun=All')],
      ['verifier-pods', () => create(verifierPod('p'), OPERATOR, '?dryRun=All')],
    ] as const;
    for (const [policy, probe] of probes) {
      await pollValue(`temper-${policy} denies a dry run`, probe, (answer) => isDeniedBy(policy, answer));
    }
  });

  after(async () => {
    await plane?.[Symbol.asyncDispose]();
  });

  it('only the operator can set or change the agent-pod label', async () => {
    assert.equal((await dryRun({})).status, 201);
    for (const as of [undefined, WRITER]) {
      assert.ok(isDeniedBy('agent-pods', await create(agentPod('p'), as, '?dryRun=All')));
    }
    assert.equal((await create(agentPod('plain', {}, {}), WRITER)).status, 201);
    const created = await create(agentPod('agents'), OPERATOR);
    assert.equal(created.status, 201, JSON.stringify(created.body));
    const labels = (value: string | null) => ({ metadata: { labels: { 'temper.dev/agent-pod': value } } });
    assert.ok(isDeniedBy('agent-pods', await patch(`${PODS}/plain`, labels('true'), WRITER)));
    assert.ok(isDeniedBy('agent-pods', await patch(`${PODS}/agents`, labels(null), WRITER)));
    assert.ok(isDeniedBy('agent-pods', await patch(`${PODS}/agents`, labels('no'), WRITER)));
    const uid = { metadata: { labels: { 'temper.dev/agent-uid': 'u-2' } } };
    assert.ok(isDeniedBy('agent-pods', await patch(`${PODS}/agents`, uid, WRITER)));
    assert.equal((await patch(`${PODS}/agents`, { metadata: { annotations: { note: 'x' } } }, WRITER)).status, 200);
    assert.equal((await patch(`${PODS}/agents`, uid, OPERATOR)).status, 200);
    const ephemeral = { spec: { ephemeralContainers: [{ name: 'debug', image: RELEASE_IMAGE }] } };
    for (const as of [WRITER, OPERATOR]) {
      assert.ok(isDeniedBy('agent-pods', await patch(`${PODS}/agents/ephemeralcontainers`, ephemeral, as)));
    }
    // temper-operator refuses it too, and the API server names either of the two.
    const bare = await patch(`${PODS}/agents`, labels(null), OPERATOR);
    assert.ok(isDeniedBy('agent-pods', bare) || isDeniedBy('operator', bare), JSON.stringify(bare.body));
  });

  it('only the operator binds a pod to an agent, and a bound pod is never bound to another one', async () => {
    const path = `${PODS}/bound`;
    const binding = (uid: string | null) => {
      const owner = { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', name: 'analyst', uid, controller: true };
      return {
        metadata: { labels: { 'temper.dev/agent-uid': uid }, ownerReferences: uid === null ? null : [owner] },
      };
    };
    const owners = (...list: object[]) => ({ metadata: { ownerReferences: list } });
    assert.equal((await create(agentPod('bound'), OPERATOR)).status, 201);
    const foreign = { apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: 'u-foreign' };
    for (const change of [binding('u-1'), owners(foreign), owners({ ...foreign, controller: true })]) {
      assert.ok(isDeniedBy('agent-pods', await patch(path, change, WRITER)), JSON.stringify(change));
    }
    assert.equal((await patch(path, binding('u-1'), OPERATOR)).status, 200);
    const toProxy = (value: string | null) => ({ metadata: { labels: { [LABELS.egress]: value } } });
    assert.ok(isDeniedBy('agent-pods', await patch(path, toProxy('true'), WRITER)));
    for (const value of ['true', null]) assert.equal((await patch(path, toProxy(value), OPERATOR)).status, 200);
    // The repeated claim of an agent changes nothing.
    assert.equal((await patch(path, binding('u-1'), OPERATOR)).status, 200);
    for (const uid of ['u-2', null]) {
      assert.ok(isDeniedBy('agent-pods', await patch(path, binding(uid), OPERATOR)), String(uid));
    }
    for (const list of [[], [{ ...foreign, controller: true }]]) {
      assert.ok(isDeniedBy('agent-pods', await patch(path, owners(...list), WRITER)), JSON.stringify(list));
    }
    // `kubectl delete --cascade=orphan` of an Agent removes the owner.
    assert.equal((await patch(path, owners(), COLLECTOR)).status, 200);
  });

  it('the operator creates verifier pods in the namespace of the release only, and no user anywhere', async () => {
    assert.equal((await create(verifierPod('made'), OPERATOR, '', RELEASE_PODS)).status, 201);
    for (const path of [PODS, RELEASE_PODS]) {
      assert.ok(isDeniedBy('verifier-pods', await create(verifierPod('x'), WRITER, '', path)), path);
    }
    assert.ok(isDeniedBy('verifier-pods', await create(verifierPod('x'), OPERATOR, '', PODS)));
    const plain = agentPod('plain', { serviceAccountName: 'temper-verifier' }, {});
    assert.equal((await create(plain, WRITER, '', RELEASE_PODS)).status, 201);
    const label = { metadata: { labels: { [LABELS.verifierPod]: 'true' } } };
    assert.ok(isDeniedBy('verifier-pods', await patch(`${RELEASE_PODS}/plain`, label, WRITER)));
    assert.ok(isDeniedBy('operator', await patch(`${RELEASE_PODS}/plain`, label, OPERATOR)));
    assert.ok(isDeniedBy('operator', await create({ ...plain, metadata: { name: 'y' } }, OPERATOR, '', RELEASE_PODS)));
  });

  it('a verifier pod keeps its labels, and its verification once it has one', async () => {
    assert.equal((await create(verifierPod('kept'), OPERATOR, '', RELEASE_PODS)).status, 201);
    const path = `${RELEASE_PODS}/kept`;
    const assignment = (value: string | null) => ({ metadata: { labels: { [LABELS.verification]: value } } });
    assert.ok(isDeniedBy('verifier-pods', await patch(path, assignment('one'), WRITER)));
    assert.equal((await patch(path, assignment('one'), OPERATOR)).status, 200);
    for (const value of ['two', null]) {
      assert.ok(isDeniedBy('verifier-pods', await patch(path, assignment(value), OPERATOR)), String(value));
    }
    const removed = await patch(path, { metadata: { labels: { [LABELS.verifierPod]: null } } }, OPERATOR);
    assert.ok(isDeniedBy('verifier-pods', removed) || isDeniedBy('operator', removed), JSON.stringify(removed.body));
    const ephemeral = { spec: { ephemeralContainers: [{ name: 'debug', image: RELEASE_IMAGE }] } };
    assert.ok(isDeniedBy('verifier-pods', await patch(`${path}/ephemeralcontainers`, ephemeral, OPERATOR)));
  });

  it('a verifier pod has no account, secret, volume, image or privilege beyond its shape, also from the operator', async () => {
    const audience = 'https://kubernetes.default.svc';
    const token = { serviceAccountToken: { audience, expirationSeconds: 3600, path: 't' } };
    const volumes = (VERIFIER?.spec['volumes'] ?? []) as object[];
    const withVolume = (volume: object) => ({ volumes: [...volumes, { name: 'v', ...volume }] });
    const bad: [object, object?][] = [
      [{ serviceAccountName: 'temper-gateway' }],
      [{ automountServiceAccountToken: true }],
      [withVolume({ secret: { secretName: 'temper-ca' } })],
      [withVolume({ configMap: { name: 'temper-gateway' } })],
      [withVolume({ hostPath: { path: '/' } })],
      [withVolume({ projected: { sources: [token] } })],
      [{ containers: [agentContainer({ image: 'example.com/other' })] }],
      [{ containers: [agentContainer({ envFrom: [{ secretRef: { name: 'temper-nats-users' } }] })] }],
      [{ hostNetwork: true }],
      [{}, { [LABELS.verifierPod]: 'true' }],
      [{}, { ...VERIFIER_LABELS, [LABELS.agentPod]: 'true' }],
    ];
    for (const [spec, labels] of bad) {
      const answer = await create(verifierPod('bad', spec, labels), OPERATOR, '', RELEASE_PODS);
      const isDenied = isDeniedBy('verifier-pods', answer) || isDeniedBy('agent-pods', answer);
      assert.ok(isDenied, `${JSON.stringify([spec, labels])}: ${JSON.stringify(answer.body)}`);
    }
  });

  it('an agent pod cannot mount a secret, even when the operator creates it', async () => {
    const projected = (...sources: object[]) => ({ volumes: [{ name: 'v', projected: { sources } }] });
    const tokenFor = (audience: string | undefined, expirationSeconds: number) =>
      projected({
        serviceAccountToken: { ...(audience === undefined ? {} : { audience }), expirationSeconds, path: 't' },
      });
    const env = (...list: object[]) => ({ containers: [agentContainer({ env: list })] });
    const good = [
      {},
      { volumes: [{ name: 'v', emptyDir: { medium: 'Memory' } }] },
      { volumes: [{ name: 'v', configMap: { name: 'other' } }] },
      tokenFor('temper-gateway', 3600),
      env({ name: 'A', value: 'b' }, { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }),
    ];
    for (const spec of good) {
      const answer = await dryRun(spec);
      assert.equal(answer.status, 201, JSON.stringify(answer.body));
    }
    const secretEnv = { env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] };
    const bad = [
      { volumes: [{ name: 'v', secret: { secretName: 's' } }] },
      { volumes: [{ name: 'v', hostPath: { path: '/' } }] },
      { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] },
      projected({ secret: { name: 's' } }),
      tokenFor(undefined, 3600),
      tokenFor('https://kubernetes.default.svc', 3600),
      tokenFor('temper-gateway', 7200),
      { containers: [agentContainer(secretEnv)] },
      { initContainers: [agentContainer({ name: 'i', ...secretEnv })] },
      { containers: [agentContainer({ envFrom: [{ secretRef: { name: 's' } }] })] },
    ];
    for (const spec of bad) {
      const answer = await dryRun(spec);
      assert.ok(isDeniedBy('agent-pods', answer), `${JSON.stringify(spec)}: ${JSON.stringify(answer.body)}`);
    }
    // These two rules apply only to stored pods: the operator's dry run happens before the ServiceAccount exists.
    for (const spec of [{ serviceAccountName: 'default' }, { automountServiceAccountToken: true }]) {
      const answer = await createStored(spec);
      assert.ok(isDeniedBy('agent-pods', answer), `${JSON.stringify(spec)}: ${JSON.stringify(answer.body)}`);
    }
  });

  it('an agent pod cannot share its node, gain privileges or run as root, even when the operator creates it', async () => {
    const security = (change: object) => ({
      containers: [
        agentContainer({
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, ...change },
        }),
      ],
    });
    const podSecurity = (change: object) => ({
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' }, ...change },
    });
    const bad: object[] = [
      { hostNetwork: true },
      { hostPID: true },
      { hostIPC: true },
      { shareProcessNamespace: true },
      { containers: [agentContainer({ ports: [{ containerPort: 80, hostPort: 80 }] })] },
      { containers: [agentContainer({ securityContext: undefined })] },
      { initContainers: [{ name: 'i', image: RELEASE_IMAGE }] },
      security({ allowPrivilegeEscalation: true }),
      security({ allowPrivilegeEscalation: undefined }),
      security({ capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] } }),
      security({ capabilities: { drop: ['NET_RAW'] } }),
      security({ runAsNonRoot: false }),
      security({ runAsUser: 0 }),
      security({ seccompProfile: { type: 'Unconfined' } }),
      podSecurity({ runAsNonRoot: false }),
      podSecurity({ seccompProfile: undefined }),
      podSecurity({ seccompProfile: { type: 'Unconfined' } }),
      podSecurity({ sysctls: [{ name: 'kernel.shm_rmid_forced', value: '1' }] }),
    ];
    for (const spec of bad) {
      const answer = await dryRun(spec);
      assert.ok(isDeniedBy('agent-pods', answer), `${JSON.stringify(spec)}: ${JSON.stringify(answer.body)}`);
    }
  });

  it('an agent pod runs only images of the release or of the list, also after an update', async () => {
    const image = (name: string) => ({ containers: [agentContainer({ image: name })] });
    for (const name of ['temper-sandbox:0.1.0', 'mirror.example/temper@sha256:0']) {
      const answer = await createStored(image(name));
      assert.equal(answer.status, 201, JSON.stringify(answer.body));
    }
    for (const name of ['temper:0.1.00', 'evil.example/temper:0.1.0', 'mirror.example.evil/x']) {
      const answer = await createStored(image(name));
      assert.ok(isDeniedBy('agent-pods', answer), JSON.stringify(answer.body));
      assert.match(String(answer.body['message']), /list others in admissionPolicies\.agentPods\.images/);
    }
    assert.equal((await create(agentPod('running'), OPERATOR)).status, 201);
    const body = { spec: { containers: [{ name: 'c', image: 'evil.example/x' }] } };
    const contentType = 'application/strategic-merge-patch+json';
    for (const as of [OPERATOR, WRITER]) {
      const answer = await call('PATCH', `${PODS}/running`, { body, contentType, as });
      assert.ok(isDeniedBy('agent-pods', answer), JSON.stringify(answer.body));
    }
  });

  it('an agent pod names only the pull secrets of the release', async () => {
    const secrets = (name: string) => ({ imagePullSecrets: [{ name }] });
    assert.equal((await createStored(secrets('registry'))).status, 201);
    assert.ok(isDeniedBy('agent-pods', await createStored(secrets('of-the-tenant'))));
  });

  it('the operator creates, changes and deletes no pod without the agent-pod label, in any namespace', async () => {
    assert.equal((await create(agentPod('theirs', {}, {}), WRITER)).status, 201);
    const host = { hostPID: true, containers: [{ name: 'c', image: 'evil.example/x' }] };
    for (const namespace of ['team-a', 'kube-system', 'temper-system']) {
      const path = `/api/v1/namespaces/${namespace}/pods?dryRun=All`;
      // The ServiceAccount may not exist there: its admission plugin runs first, and names another cause.
      const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'temper-agent', namespace } };
      if (namespace !== 'team-a') await createAll(plane, [account]);
      const answer = await call('POST', path, { body: agentPod('p', host, {}), as: OPERATOR });
      assert.ok(isDeniedBy('operator', answer), `${namespace}: ${JSON.stringify(answer.body)}`);
    }
    const label = { metadata: { labels: { 'temper.dev/agent-pod': 'true' } } };
    assert.ok(isDeniedBy('operator', await patch(`${PODS}/theirs`, label, OPERATOR)));
    assert.ok(
      isDeniedBy('operator', await patch(`${PODS}/theirs`, { metadata: { annotations: { a: 'b' } } }, OPERATOR)),
    );
    assert.ok(isDeniedBy('operator', await call('DELETE', `${PODS}/theirs`, { as: OPERATOR })));
    assert.ok(isDeniedBy('operator', await call('DELETE', PODS, { as: OPERATOR })));
    assert.equal((await call('GET', `${PODS}/theirs`)).status, 200);
    assert.equal((await create(agentPod('own'), OPERATOR)).status, 201);
    assert.equal((await call('DELETE', `${PODS}/own`, { as: OPERATOR })).status, 200);
  });

  it('ordinary pods, their statuses, ConfigMaps and namespaces cause no evaluation of any admission policy', async () => {
    // The API server counts requests that a match condition excludes, after it has converted their objects.
    const setConditions = async (matchConditions: object[] | null) => {
      for (const { kind, metadata } of await admissionObjects(...VALUES)) {
        if (kind !== 'ValidatingAdmissionPolicy' || metadata.name === 'temper-operator') continue;
        const path = `/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/${metadata.name}`;
        const patched = await call('PATCH', path, { body: { spec: { matchConditions } }, contentType: MERGE });
        assert.equal(patched.status, 200);
      }
    };
    await setConditions([{ name: 'counted', expression: 'false' }]);
    const evaluations = async (): Promise<Record<string, number>> => {
      const { body } = await call('GET', '/metrics');
      const counts: Record<string, number> = {};
      const line =
        /^apiserver_admission_match_condition_evaluation_seconds_count\{.*name="temper-([a-z-]+)",.*\} (\d+)$/gm;
      for (const [, name = '', count] of String(body['text']).matchAll(line)) {
        counts[name] = (counts[name] ?? 0) + Number(count);
      }
      return counts;
    };
    /** How often each policy was evaluated during the work. */
    const evaluatedBy = async (work: () => Promise<unknown>) => {
      const earlier = await evaluations();
      await work();
      const changes = Object.entries(await evaluations()).map(([name, count]) => [name, count - (earlier[name] ?? 0)]);
      return Object.fromEntries(changes.filter(([, count]) => count !== 0));
    };
    await pollValue(
      'the counted policies',
      () => evaluatedBy(() => create(agentPod('p'), OPERATOR, '?dryRun=All')),
      (counts) => counts['agent-pods'] === 1,
    );
    const status = { body: { status: { phase: 'Running' } }, contentType: MERGE };
    const configMaps = '/api/v1/namespaces/team-a/configmaps';
    const configMap = { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'ordinary' } } };
    const ordinary = await evaluatedBy(async () => {
      assert.equal((await create(agentPod('ordinary', {}, {}), WRITER)).status, 201);
      assert.equal((await call('PATCH', `${PODS}/ordinary/status`, status)).status, 200);
      assert.equal((await call('POST', configMaps, configMap)).status, 201);
      assert.equal((await call('PATCH', `${configMaps}/ordinary`, { body: {}, contentType: MERGE })).status, 200);
      assert.equal((await call('DELETE', `${configMaps}/ordinary`)).status, 200);
      await createNamespace(plane, 'ordinary');
    });
    assert.deepEqual(ordinary, { operator: 1 }, 'only temper-operator looks at the creation of an ordinary pod');
    const agent = await evaluatedBy(async () => {
      assert.equal((await create(agentPod('quiet'), OPERATOR)).status, 201);
      for (let reports = 0; reports < 4; reports += 1) {
        assert.equal((await call('PATCH', `${PODS}/quiet/status`, status)).status, 200);
      }
      assert.equal((await call('DELETE', `${PODS}/quiet`)).status, 200);
    });
    assert.deepEqual(agent, { 'agent-pods': 1 }, 'only the creation of an agent pod is looked at');
    await setConditions(null);
    const probe = () => create(agentPod('p'), WRITER, '?dryRun=All');
    await pollValue('the policies without the condition', probe, (answer) => isDeniedBy('agent-pods', answer));
  });

  it('with checkStatusWrites neither a status nor a binding can label a pod or change the label', async () => {
    assert.equal((await create(agentPod('unlabelled', {}, {}), WRITER)).status, 201);
    assert.equal((await create(agentPod('labelled'), OPERATOR)).status, 201);
    for (const policy of await admissionObjects(...VALUES, '--set', 'admissionPolicies.checkStatusWrites=true')) {
      if (policy.kind !== 'ValidatingAdmissionPolicy') continue;
      const path = `/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/${policy.metadata.name}`;
      assert.equal((await call('PATCH', path, { body: policy, contentType: MERGE })).status, 200);
    }
    const labels = (value: string | null) => ({ metadata: { labels: { 'temper.dev/agent-pod': value } } });
    await pollValue(
      'the changed policy',
      () => patch(`${PODS}/labelled/status?dryRun=All`, labels(null), WRITER),
      (answer) => isDeniedBy('agent-pods', answer),
    );
    assert.ok(isDeniedBy('agent-pods', await patch(`${PODS}/unlabelled/status`, labels('true'), WRITER)));
    const binding = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'unlabelled', labels: { 'temper.dev/agent-pod': 'true' } },
      target: { kind: 'Node', name: 'n' },
    };
    const bound = await call('POST', `${PODS}/unlabelled/binding`, { body: binding, as: WRITER });
    assert.ok(isDeniedBy('agent-pods', bound), JSON.stringify(bound.body));
    const legacy = await call('POST', '/api/v1/namespaces/team-a/bindings', { body: binding, as: WRITER });
    assert.ok(isDeniedBy('agent-pods', legacy), JSON.stringify(legacy.body));
    // What a node reports changes no label.
    const running = { status: { phase: 'Running' } };
    assert.equal((await patch(`${PODS}/labelled/status`, running, WRITER)).status, 200);
  });
});
