import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import type { ApiResponse } from '../../cluster/api-client.ts';
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts';
import { type ChartObject, helm, renderChart } from '../../cluster/helm.ts';
import { createAll, createNamespace } from '../../cluster/objects.ts';
import { pollValue } from '../../support/poll.ts';

const CHART = new URL('../../../charts/temper/', import.meta.url).pathname;
const RELEASE = 'temper-system';

/** Method, path, and an optional body. */
type Request = readonly [method: string, path: string, body?: object];

const temper = (namespace: string, rest: string) => `/apis/temper.dev/v1alpha1/namespaces/${namespace}/${rest}`;
const core = (namespace: string, rest: string) => `/api/v1/namespaces/${namespace}/${rest}`;
const network = (namespace: string, rest: string) => `/apis/networking.k8s.io/v1/namespaces/${namespace}/${rest}`;
const named = (name: string, rest: object = {}) => ({ metadata: { name }, ...rest });
/** Selects one object by name: a list with it needs the right to that name alone. */
const only = (name: string) => `?fieldSelector=metadata.name=${name}`;
const token = { spec: { audiences: ['temper-gateway'], expirationSeconds: 600 } };
const emptyPatch = {};

/** The requests that the operator needs in a namespace with agents. */
const operatorMay = (ns: string): Request[] => [
  ['GET', temper(ns, 'agents')],
  ['GET', temper(ns, 'trustpolicies')],
  ['PATCH', temper(ns, 'agents/none/status'), emptyPatch],
  ['PATCH', temper(ns, 'trustpolicies/none/status'), emptyPatch],
  ['POST', temper(ns, 'approvalrequests'), named('x')],
  ['POST', temper(ns, 'approvals'), named('x')],
  ['POST', temper(ns, 'emergenttools'), named('x')],
  ['GET', core(ns, 'pods')],
  ['POST', core(ns, 'pods'), named('x')],
  ['PATCH', core(ns, 'pods/none'), emptyPatch],
  ['DELETE', core(ns, 'pods/none')],
  ['POST', core(ns, 'serviceaccounts'), named('temper-agent')],
  ['PATCH', core(ns, 'serviceaccounts/temper-users'), emptyPatch],
  ['PATCH', core(ns, 'configmaps/temper-endpoints'), emptyPatch],
  ...(['temper-agent', 'temper-users'] as const).map(
    (name): Request => ['GET', core(ns, `serviceaccounts${only(name)}`)],
  ),
  ['GET', core(ns, `configmaps${only('temper-endpoints')}`)],
  ['GET', core(ns, `resourcequotas${only('temper-agents')}`)],
  ['GET', network(ns, `networkpolicies${only('temper-deny-all')}`)],
  ['GET', network(ns, `networkpolicies${only('temper-allow-gateway')}`)],
  ['GET', network(ns, `networkpolicies${only('temper-allow-egress')}`)],
  ['PATCH', network(ns, 'networkpolicies/temper-deny-all'), emptyPatch],
  ['POST', core(ns, 'resourcequotas'), named('temper-agents')],
  ['PATCH', core(ns, 'resourcequotas/temper-agents'), emptyPatch],
  ['POST', `/apis/events.k8s.io/v1/namespaces/${ns}/events`, named('x')],
  ['GET', core(ns, 'events?fieldSelector=involvedObject.uid=none')],
  ['GET', `/api/v1/namespaces/${ns}`],
];

const OPERATOR_OWN: readonly Request[] = [
  ['POST', `/apis/coordination.k8s.io/v1/namespaces/${RELEASE}/leases`, named('temper-operator')],
  ['PATCH', `/apis/coordination.k8s.io/v1/namespaces/${RELEASE}/leases/temper-operator`, emptyPatch],
  ['POST', core(RELEASE, 'secrets'), named('temper-ca')],
  ['GET', core(RELEASE, 'secrets/temper-ca')],
  ['PATCH', core(RELEASE, 'secrets/temper-nats-config'), emptyPatch],
  ['PATCH', core(RELEASE, 'secrets/temper-egress-tls'), emptyPatch],
  ['GET', core(RELEASE, 'services/temper-gateway')],
  ['GET', core(RELEASE, 'services/temper-egress')],
  [
    'GET',
    '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?labelSelector=temper.dev/admission-policy=true',
  ],
  [
    'GET',
    '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings?labelSelector=temper.dev/admission-policy=true',
  ],
];

/** Requests that the operator must not be able to send, even in such a namespace. */
const operatorMayNot = (ns: string): Request[] => [
  ['GET', core(ns, 'configmaps')],
  ['GET', core(ns, `configmaps${only('other')}`)],
  ['GET', core(ns, 'serviceaccounts')],
  ['GET', core(ns, 'resourcequotas')],
  ['GET', network(ns, 'networkpolicies')],
  ['GET', core(ns, 'secrets')],
  ['GET', core(ns, 'secrets/any')],
  ['POST', core(ns, 'secrets'), named('x')],
  ['POST', core(ns, 'serviceaccounts/temper-agent/token'), token],
  ['POST', core(ns, 'serviceaccounts/temper-users/token'), token],
  ['POST', core(ns, 'pods/any/exec?command=sh')],
  ['PATCH', core(ns, 'pods/any/ephemeralcontainers'), emptyPatch],
  ['GET', core(ns, 'pods/any/log')],
  ['PATCH', core(ns, 'configmaps/other'), emptyPatch],
  ['DELETE', core(ns, 'configmaps')],
  ['PATCH', core(ns, 'serviceaccounts/default'), emptyPatch],
  ['DELETE', network(ns, 'networkpolicies/theirs')],
  ['PATCH', temper(ns, 'agents/any'), emptyPatch],
  ['PATCH', temper(ns, 'trustpolicies/any'), emptyPatch],
  ['PATCH', temper(ns, 'approvals/any'), emptyPatch],
  ['POST', `/apis/apps/v1/namespaces/${ns}/deployments`, named('x')],
  ['POST', `/apis/rbac.authorization.k8s.io/v1/namespaces/${ns}/rolebindings`, named('x')],
  ['PATCH', `/api/v1/namespaces/${ns}`, emptyPatch],
];

const OPERATOR_NOWHERE: readonly Request[] = [
  ['GET', core(RELEASE, 'secrets')],
  ['GET', core(RELEASE, 'secrets/provider-keys')],
  ['PATCH', core(RELEASE, 'secrets/provider-keys'), emptyPatch],
  ['PATCH', core(RELEASE, 'configmaps/temper-approvers'), emptyPatch],
  ['GET', core('kube-system', 'secrets')],
  ['GET', '/api/v1/secrets'],
  ['GET', '/api/v1/nodes'],
  ['GET', '/api/v1/namespaces'],
  ['GET', '/api/v1/configmaps'],
  ['POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: 'x' } }],
  [
    'PATCH',
    '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/temper-namespace-protection',
    emptyPatch,
  ],
  ['DELETE', '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/temper-namespace-protection'],
  ['PATCH', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/agents.temper.dev', emptyPatch],
  ['POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', named('x')],
];

const gatewayMay = (ns: string): Request[] => [
  ['GET', temper(ns, 'agents')],
  ['GET', temper(ns, 'trustpolicies')],
  ['GET', temper(ns, 'emergenttools')],
  ['GET', temper(ns, 'approvals')],
  ['GET', core(ns, 'pods')],
];

const gatewayMayNot = (ns: string): Request[] => [
  ['PATCH', temper(ns, 'agents/any/status'), emptyPatch],
  ['POST', temper(ns, 'approvals'), named('x')],
  ['POST', core(ns, 'pods'), named('x')],
  ['DELETE', core(ns, 'pods/any')],
  ['GET', core(ns, 'secrets')],
  ['GET', core(RELEASE, 'secrets/temper-ca')],
  ['GET', core(RELEASE, 'secrets/temper-gateway-signing-keys')],
  ['GET', core(RELEASE, 'secrets/temper-source-keys')],
  ['POST', core(ns, 'serviceaccounts/temper-users/token'), token],
  ['POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: 'x' } }],
  ['GET', core(ns, 'configmaps')],
];

for (const mode of ['cluster', 'namespaced'] as const) {
  describe(`the chart on a real API server, ${mode} mode`, () => {
    let plane: ControlPlane;
    let objects: ChartObject[];
    const tokens = new Map<string, string>();
    const elsewhere = mode === 'cluster' ? 'team-a' : 'team-b';

    const ask = async (component: string, [method, path, body]: Request): Promise<ApiResponse> => {
      const dry = method === 'GET' || path.includes('/token') || path.includes('/exec') || path.includes('reviews');
      const contentType = method === 'PATCH' ? 'application/merge-patch+json' : undefined;
      return plane.admin.call(method, dry ? path : `${path}${path.includes('?') ? '&' : '?'}dryRun=All`, {
        token: tokens.get(component) ?? '',
        ...(body === undefined ? {} : { body }),
        ...(contentType === undefined ? {} : { contentType }),
      });
    };
    /** Matches the message of RBAC. A request that an admission policy or a schema rejects has passed RBAC. */
    const isForbidden = ({ status, body }: ApiResponse) =>
      status === 403 && / cannot [a-z]+ (resource|path) /.test(String(body['message']));
    const assertMay = async (component: string, requests: readonly Request[]) => {
      for (const request of requests) {
        const answer = await ask(component, request);
        const seen = answer.status !== 401 && answer.status < 500 && !isForbidden(answer);
        assert.ok(seen, `${component} ${request[0]} ${request[1]}: ${JSON.stringify(answer.body)}`);
      }
    };
    const assertMayNot = async (component: string, requests: readonly Request[]) => {
      for (const request of requests) {
        const answer = await ask(component, request);
        assert.ok(
          isForbidden(answer),
          `${component} ${request[0]} ${request[1]}: ${answer.status} ${JSON.stringify(answer.body)}`,
        );
      }
    };

    before(async () => {
      plane = await startControlPlane();
      await createNamespace(plane, RELEASE, { 'pod-security.kubernetes.io/enforce': 'restricted' });
      await createNamespace(plane, 'team-a');
      await createNamespace(plane, 'team-b');
      objects = await renderChart(
        '--set',
        'replay.enabled=true',
        ...(mode === 'cluster' ? [] : ['--set', 'namespaces={team-a}']),
      );
      await createAll(plane, objects);
      for (const component of ['operator', 'gateway']) {
        const path = core(RELEASE, `serviceaccounts/temper-${component}/token`);
        const { body } = await plane.admin.call('POST', path, { body: { spec: { expirationSeconds: 600 } } });
        tokens.set(component, (body['status'] as { token: string }).token);
      }
      const first = operatorMay('team-a')[0];
      assert.ok(first !== undefined);
      await pollValue(
        'the RBAC rules of the chart',
        () => ask('operator', first),
        (answer) => answer.status === 200,
      );
    });

    after(async () => {
      await plane?.[Symbol.asyncDispose]();
    });

    it('the pods of the chart satisfy the restricted Pod Security Standard', async () => {
      const workloads = objects.filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet');
      assert.equal(workloads.length, 5);
      for (const { metadata, spec } of workloads as (ChartObject & { spec: { template: ChartObject } })[]) {
        const template = spec.template as unknown as {
          metadata: object;
          spec: { volumes: object[]; containers: object[] };
        };
        const pod = {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { ...template.metadata, name: metadata.name },
          spec: template.spec,
        };
        // A StatefulSet adds this volume to its pod.
        if (metadata.name === 'temper-nats')
          pod.spec = { ...pod.spec, volumes: [...pod.spec.volumes, { name: 'data', emptyDir: {} }] };
        const { status, body } = await plane.admin.call('POST', `${core(RELEASE, 'pods')}?dryRun=All`, { body: pod });
        assert.equal(status, 201, JSON.stringify(body));
      }
      const bad = {
        metadata: { name: 'bad' },
        spec: { containers: [{ name: 'c', image: 'x' }], serviceAccountName: 'temper-gateway' },
      };
      const refused = await plane.admin.call('POST', `${core(RELEASE, 'pods')}?dryRun=All`, { body: bad });
      assert.equal(refused.status, 403, 'the namespace must enforce restricted');
    });

    it('the API server accepts the manifests of the quick start', async () => {
      const folder = new URL('../../../manifests/quickstart/', import.meta.url);
      const read = async (file: string) => parse(await readFile(new URL(file, folder), 'utf8')) as ChartObject;
      const { namespace, resources } = (await read('kustomization.yaml')) as unknown as {
        namespace: string;
        resources: string[];
      };
      const manifests = await Promise.all(resources.map(read));
      assert.deepEqual(
        manifests.map(({ kind }) => kind),
        ['Namespace', 'TrustPolicy', 'Agent'],
      );
      const placed = manifests.map((manifest) =>
        manifest.kind === 'Namespace' ? manifest : { ...manifest, metadata: { ...manifest.metadata, namespace } },
      );
      await createAll(plane, placed);
    });

    it('neither helm nor the API server changes the number of NATS servers, which would lose their streams', async () => {
      const upgrade = async (replicas: number) => {
        const access = ['--dry-run=server', '--kubeconfig', plane.kubeconfig];
        const values = ['--set', `nats.replicas=${replicas}`, '--show-only', 'templates/nats/statefulset.yaml'];
        return helm('template', 'temper', CHART, '--namespace', RELEASE, ...access, ...values);
      };
      await upgrade(1);
      await assert.rejects(upgrade(3), /nats\.replicas is 3, but temper-nats has 1 servers/);
      // A GitOps tool renders without access to the cluster.
      const rendered = await renderChart('--set', 'nats.replicas=3');
      const cluster = rendered.find(({ kind, metadata }) => kind === 'StatefulSet' && metadata.name === 'temper-nats');
      const path = `/apis/apps/v1/namespaces/${RELEASE}/statefulsets/temper-nats?fieldManager=gitops&force=true`;
      const options = { body: cluster as object, contentType: 'application/apply-patch+yaml' };
      const { status, body } = await plane.admin.call('PATCH', path, options);
      assert.equal(status, 422, JSON.stringify(body));
      assert.match(String(body['message']), /spec: Forbidden: updates to statefulset spec/);
    });

    it('helm uninstall keeps the CRDs', () => {
      const crds = objects.filter(({ kind }) => kind === 'CustomResourceDefinition');
      assert.equal(crds.length, 6);
      for (const { metadata } of crds) assert.equal(metadata.annotations?.['helm.sh/resource-policy'], 'keep');
    });

    it('the operator has the rights that it needs', async () => {
      await assertMay('operator', [...operatorMay('team-a'), ...OPERATOR_OWN]);
      if (mode === 'cluster') await assertMay('operator', operatorMay('team-b'));
    });

    it('the API server serves the Lease and the other requests of the operator at their own priority levels', async () => {
      const flow = (path: string) => `/apis/flowcontrol.apiserver.k8s.io/v1/${path}`;
      const uidOf = async (path: string) => {
        const { status, body } = await plane.admin.call('GET', flow(path));
        assert.equal(status, 200, path);
        return (body['metadata'] as { uid: string }).uid;
      };
      const own = 'temper-temper-system-operator';
      const leases = `/apis/coordination.k8s.io/v1/namespaces/${RELEASE}/leases`;
      const cases = [
        [`${own}-lease`, 'leader-election', `${leases}/temper-operator`],
        [own, own, temper('team-a', 'agents')],
      ] as const;
      for (const [schema, level, path] of cases) {
        const expected = [await uidOf(`flowschemas/${schema}`), await uidOf(`prioritylevelconfigurations/${level}`)];
        await pollValue(
          `the flow schema ${schema}`,
          () => plane.admin.call('GET', path, { token: tokens.get('operator') ?? '' }),
          ({ headers }) =>
            headers['x-kubernetes-pf-flowschema-uid'] === expected[0] &&
            headers['x-kubernetes-pf-prioritylevel-uid'] === expected[1],
        );
      }
    });

    it('the operator has no other rights', async () => {
      await assertMayNot('operator', [...operatorMayNot('team-a'), ...operatorMayNot(elsewhere), ...OPERATOR_NOWHERE]);
      if (mode === 'namespaced') await assertMayNot('operator', operatorMay('team-b'));
    });

    it('the gateway can only read', async () => {
      await assertMay('gateway', [...gatewayMay('team-a'), ['GET', '/openid/v1/jwks']]);
      await assertMayNot('gateway', [...gatewayMayNot('team-a'), ...gatewayMayNot(elsewhere)]);
      if (mode === 'namespaced') await assertMayNot('gateway', gatewayMay('team-b'));
    });

    it('a user can reach the gateway through the service proxy, and no other service', async () => {
      const as = { user: 'alice', groups: ['system:authenticated'] };
      const via = (service: string) => plane.admin.call('GET', core(RELEASE, `services/${service}/proxy/v1/x`), { as });
      // The services have no endpoints; the test only checks that the proxy was authorized.
      assert.ok([404, 503].includes((await via('https:temper-gateway:8443')).status));
      for (const service of ['temper-gateway', 'https:temper-gateway:9090', 'temper-nats:4222']) {
        assert.equal((await via(service)).status, 403, service);
      }
    });
  });
}
