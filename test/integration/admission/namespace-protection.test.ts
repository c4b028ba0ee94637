import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ApiObject, ApiUser } from '../../cluster/api-client.ts';
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts';
import { type ForbiddenRequest, forbiddenRequests, GATEWAY_TOKEN } from '../../support/admission/forbidden-requests.ts';
import { agentPod } from '../../support/admission/agent-pod.ts';
import { admissionObjects, installAdmissionPolicies, isDeniedBy } from '../../support/admission/policies.ts';
import { createAll, createNamespace, grant } from '../../cluster/objects.ts';
import { pollValue } from '../../support/poll.ts';

const EDITOR: ApiUser = { user: 'edith', groups: ['system:authenticated'] };
const OPERATOR: ApiUser = {
  user: 'system:serviceaccount:temper-system:temper-operator',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:temper-system', 'system:authenticated'],
};
const NODE: ApiUser = { user: 'system:node:node-1', groups: ['system:nodes', 'system:authenticated'] };

const container = { name: 'shell', image: 'example.com/shell' };
const ATTEMPTS = forbiddenRequests('analyst');

describe('the admission policy of protected namespaces', () => {
  let plane: ControlPlane;

  const attempt = (
    { method, path: [api, rest], body, contentType }: ForbiddenRequest,
    namespace: string,
    as?: ApiUser,
  ) =>
    plane.admin.call(method, `/${api}/namespaces/${namespace}/${rest}${dry(rest, method)}`, {
      ...(as === undefined ? {} : { as }),
      ...(body === undefined ? {} : { body }),
      ...(contentType === undefined ? {} : { contentType }),
    });

  before(async () => {
    plane = await startControlPlane({ controllerManager: true });
    await installAdmissionPolicies(plane);
    await createNamespace(plane, 'protected');
    await createNamespace(plane, 'open');
    for (const namespace of ['protected', 'open']) {
      await grant(plane, EDITOR, 'edit', namespace);
      await populate(plane, namespace);
    }
    const label = { metadata: { labels: { 'temper.dev/agents': 'true' } } };
    const patch = { body: label, contentType: 'application/merge-patch+json' };
    assert.equal((await plane.admin.call('PATCH', '/api/v1/namespaces/protected', patch)).status, 200);
    await grant(plane, OPERATOR, 'cluster-admin');
    const probe = ATTEMPTS.find(({ action }) => action === 'create a secret');
    assert.ok(probe !== undefined);
    await pollValue(
      'the grants of edith and the label of the namespace',
      () => attempt(probe, 'protected', EDITOR),
      (answer) => isDeniedBy('namespace-protection', answer),
    );
  });

  after(async () => {
    await plane?.[Symbol.asyncDispose]();
  });

  for (const one of ATTEMPTS) {
    it(`a user with the role edit cannot ${one.action}`, async () => {
      const inside = await attempt(one, 'protected', EDITOR);
      assert.ok(isDeniedBy('namespace-protection', inside), JSON.stringify(inside.body));
      const outside = await attempt(one, 'open', EDITOR);
      assert.ok(!isDeniedBy('namespace-protection', outside) && outside.status !== 403, JSON.stringify(outside.body));
    });
  }

  it('a cluster administrator is denied too', async () => {
    for (const one of ATTEMPTS) {
      const answer = await attempt(one, 'protected');
      assert.ok(isDeniedBy('namespace-protection', answer), `${one.action}: ${JSON.stringify(answer.body)}`);
    }
  });

  it('a service account of the namespace with the role edit is denied', async () => {
    const as = { user: 'system:serviceaccount:protected:temper-users', groups: ['system:serviceaccounts'] };
    await grant(plane, as, 'edit', 'protected');
    for (const one of ATTEMPTS) {
      const answer = await attempt(one, 'protected', as);
      assert.ok(isDeniedBy('namespace-protection', answer), `${one.action}: ${JSON.stringify(answer.body)}`);
    }
  });

  it('the operator can create what agents need, and nothing else', async () => {
    const pod = agentPod('p');
    // The operator uses these two dry runs to check that the policy is enforced.
    const pods = '/api/v1/namespaces/protected/pods?dryRun=All';
    assert.equal((await plane.admin.call('POST', pods, { body: pod, as: OPERATOR })).status, 201);
    const bare = { ...pod, metadata: { name: 'p' } };
    assert.ok(isDeniedBy('namespace-protection', await plane.admin.call('POST', pods, { body: bare, as: OPERATOR })));
    const may = [
      'create a service account',
      'create a network policy that allows all egress',
      'delete the deny-all network policy',
    ];
    for (const one of ATTEMPTS) {
      const answer = await attempt(one, 'protected', OPERATOR);
      if (may.includes(one.action)) assert.ok(answer.status < 300, `${one.action}: ${JSON.stringify(answer.body)}`);
      else if (one.action !== 'delete all pods') {
        assert.ok(isDeniedBy('namespace-protection', answer), `${one.action}: ${JSON.stringify(answer.body)}`);
      }
    }
  });

  it('the operator changes and deletes only pods with the agent-pod label', async () => {
    const pods = '/api/v1/namespaces/protected/pods';
    // The policy lets the operator alone create it, and only with the label.
    const made = await plane.admin.call('POST', pods, { body: agentPod('own'), as: OPERATOR });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    const note = { body: { metadata: { annotations: { a: 'b' } } }, contentType: 'application/merge-patch+json' };
    assert.equal((await plane.admin.call('PATCH', `${pods}/own`, { ...note, as: OPERATOR })).status, 200);
    assert.equal((await plane.admin.call('DELETE', `${pods}/own`, { as: OPERATOR })).status, 200);
    const theirs = await plane.admin.call('PATCH', `${pods}/analyst`, { ...note, as: OPERATOR });
    assert.ok(isDeniedBy('namespace-protection', theirs), JSON.stringify(theirs.body));
    const removed = await plane.admin.call('DELETE', `${pods}/analyst?dryRun=All`, { as: OPERATOR });
    assert.ok(isDeniedBy('namespace-protection', removed), JSON.stringify(removed.body));
  });

  it('no user limits the pods of agents by a LimitRange, and the platform team limits other objects by a quota', async () => {
    const at = (rest: string) => `/api/v1/namespaces/protected/${rest}?dryRun=All`;
    const limits = { metadata: { name: 'x' }, spec: { limits: [{ type: 'Container', max: { cpu: '1m' } }] } };
    assert.ok(isDeniedBy('namespace-protection', await plane.admin.call('POST', at('limitranges'), { body: limits })));
    const quota = (name: string) => ({ metadata: { name }, spec: { hard: { 'count/agents.temper.dev': '50' } } });
    const platform = await plane.admin.call('POST', at('resourcequotas'), { body: quota('agents') });
    assert.equal(platform.status, 201, JSON.stringify(platform.body));
    const own = await plane.admin.call('POST', at('resourcequotas'), { body: quota('temper-agents') });
    assert.ok(isDeniedBy('namespace-protection', own), JSON.stringify(own.body));
    const collection = await plane.admin.call('DELETE', at('resourcequotas'));
    assert.equal(collection.status, 200, 'the namespace has no quota yet');
    const writer = { user: 'quota-writer', groups: ['system:authenticated'] };
    const rules = [{ apiGroups: [''], resources: ['resourcequotas'], verbs: ['create'] }];
    await grant(plane, writer, rules, 'protected');
    const refused = await plane.admin.call('POST', at('resourcequotas'), { body: quota('agents'), as: writer });
    assert.ok(isDeniedBy('namespace-protection', refused), JSON.stringify(refused.body));
  });

  it('a user who may write Secrets writes the keys of webhooks, and no token and no other Secret', async () => {
    const path = '/api/v1/namespaces/protected/secrets';
    const keys = { metadata: { name: 'temper-webhooks' }, stringData: { 'orders.order': 'whsec_' } };
    const annotations = { 'kubernetes.io/service-account.name': 'temper-agent' };
    const token = { metadata: { name: 'temper-webhooks', annotations }, type: 'kubernetes.io/service-account-token' };
    const refused = [
      await plane.admin.call('POST', path, { body: token, as: EDITOR }),
      await plane.admin.call('POST', path, { body: { ...keys, metadata: { name: 'others' } }, as: EDITOR }),
      await plane.admin.call('POST', path, { body: { metadata: { generateName: 'temper-webhooks' } }, as: EDITOR }),
      await plane.admin.call('POST', path, { body: keys, as: OPERATOR }),
    ];
    for (const answer of refused) assert.ok(isDeniedBy('namespace-protection', answer), JSON.stringify(answer.body));
    const created = await plane.admin.call('POST', path, { body: keys, as: EDITOR });
    assert.equal(created.status, 201, JSON.stringify(created.body));
    const change = { body: { stringData: { a: 'b' } }, contentType: 'application/merge-patch+json', as: EDITOR };
    assert.equal((await plane.admin.call('PATCH', `${path}/temper-webhooks`, change)).status, 200);
    assert.ok(isDeniedBy('namespace-protection', await plane.admin.call('DELETE', path, { as: EDITOR })));
    assert.equal((await plane.admin.call('DELETE', `${path}/temper-webhooks`, { as: EDITOR })).status, 200);
  });

  it('only nodes and the control plane write Events in their own name', async () => {
    const now = '2026-05-04T12:00:00.000000Z';
    const about = { apiVersion: 'v1', kind: 'Pod', name: 'analyst', namespace: 'protected' };
    const metadata = { name: 'forged', namespace: 'protected' };
    const core = (component: object) => ({
      path: '/api/v1/namespaces/protected/events?dryRun=All',
      body: {
        apiVersion: 'v1',
        kind: 'Event',
        metadata,
        involvedObject: about,
        reason: 'R',
        type: 'Warning',
        ...component,
      },
    });
    const newer = (reportingController: string) => ({
      path: '/apis/events.k8s.io/v1/namespaces/protected/events?dryRun=All',
      body: {
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata,
        eventTime: now,
        regarding: about,
        reason: 'R',
        action: 'A',
        type: 'Warning',
        reportingController,
        reportingInstance: 'x',
      },
    });
    const forged = [
      core({ source: { component: 'kubelet' } }),
      core({
        source: { component: 'mine' },
        reportingComponent: 'kubelet',
        reportingInstance: 'x',
        action: 'A',
        eventTime: now,
      }),
      newer('kubelet'),
      newer('default-scheduler'),
    ];
    const send = ({ path, body }: (typeof forged)[number], as?: ApiUser) =>
      plane.admin.call('POST', path, { body, ...(as === undefined ? {} : { as }) });
    // Kubernetes 1.33 permits the role edit only the older API of Events.
    await grant(
      plane,
      EDITOR,
      [{ apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create'] }],
      'protected',
    );
    for (const event of forged) {
      const answer = await send(event, EDITOR);
      assert.ok(isDeniedBy('events', answer), `${JSON.stringify(event)}: ${JSON.stringify(answer.body)}`);
    }
    for (const event of [core({ source: { component: 'mine' } }), newer('example.com/mine')]) {
      const answer = await send(event, EDITOR);
      assert.equal(answer.status, 201, JSON.stringify(answer.body));
    }
    const [own] = forged;
    assert.ok(own !== undefined);
    const outside = { ...own, path: own.path.replace('protected', 'open') };
    outside.body = {
      ...own.body,
      metadata: { ...metadata, namespace: 'open' },
      involvedObject: { ...about, namespace: 'open' },
    } as typeof own.body;
    assert.equal((await send(outside, EDITOR)).status, 201);
    const byNode = await send(own, NODE);
    assert.equal(byNode.status, 201, JSON.stringify(byNode.body));
  });

  it('a node can create tokens for the pods that it runs', async () => {
    const path = '/api/v1/namespaces/protected/serviceaccounts/temper-agent/token';
    const { body: pod } = await plane.admin.call('GET', '/api/v1/namespaces/protected/pods/analyst');
    const { uid } = pod['metadata'] as { uid: string };
    const spec = { ...GATEWAY_TOKEN, boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'analyst', uid } };
    const answer = await plane.admin.call('POST', path, { body: { spec }, as: NODE });
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
  });

  it("a user's token can only be created for the gateway", async () => {
    const path = '/api/v1/namespaces/protected/serviceaccounts/temper-users/token';
    const token = (spec: object, as = EDITOR) => plane.admin.call('POST', path, { body: { spec }, as });
    const good = await token(GATEWAY_TOKEN);
    assert.equal(good.status, 201, JSON.stringify(good.body));
    const { body: pod } = await plane.admin.call('GET', '/api/v1/namespaces/protected/pods/analyst');
    const { uid } = pod['metadata'] as { uid: string };
    const bad = [
      { audiences: ['temper-egress'], expirationSeconds: 600 },
      { audiences: ['temper-gateway', 'https://kubernetes.default.svc'], expirationSeconds: 600 },
      { expirationSeconds: 600 },
      { ...GATEWAY_TOKEN, boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'analyst', uid } },
    ];
    for (const spec of bad) {
      const answer = await token(spec);
      assert.ok(answer.status >= 400, JSON.stringify(answer.body));
    }
    assert.ok(isDeniedBy('namespace-protection', await token(GATEWAY_TOKEN, OPERATOR)));
  });

  it('the API server reports no type errors for any admission policy', async () => {
    const path = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
    const all = (await admissionObjects()).filter(({ kind }) => kind === 'ValidatingAdmissionPolicy');
    assert.equal(all.length, 14);
    for (const policy of all.map(({ metadata }) => metadata.name)) {
      const checked = await pollValue(
        `the type check of ${policy}`,
        () => plane.admin.call('GET', `${path}/${policy}`),
        ({ body }) => (body['status'] as ApiObject | undefined)?.['observedGeneration'] === 1,
      );
      const { typeChecking } = checked.body['status'] as ApiObject;
      assert.deepEqual(typeChecking ?? {}, {}, policy);
    }
  });

  it('with checkStatusWrites only nodes can write the status of pods, and only the scheduler can bind them', async () => {
    for (const policy of await admissionObjects('--set', 'admissionPolicies.checkStatusWrites=true')) {
      if (policy.kind !== 'ValidatingAdmissionPolicy') continue;
      const at = `/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/${policy.metadata.name}`;
      const replaced = await plane.admin.call('PATCH', at, {
        body: policy,
        contentType: 'application/merge-patch+json',
      });
      assert.equal(replaced.status, 200);
    }
    const path = '/api/v1/namespaces/protected/pods/analyst/status?dryRun=All';
    const body = { status: { phase: 'Running' } };
    const contentType = 'application/strategic-merge-patch+json';
    await pollValue(
      'the changed policy',
      () => plane.admin.call('PATCH', path, { body, contentType }),
      (answer) => isDeniedBy('namespace-protection', answer),
    );
    const binding = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'analyst' },
      target: { kind: 'Node', name: 'n' },
    };
    for (const rest of ['pods/analyst/binding', 'bindings']) {
      const answer = await plane.admin.call('POST', `/api/v1/namespaces/protected/${rest}`, { body: binding });
      assert.ok(isDeniedBy('namespace-protection', answer), JSON.stringify(answer.body));
    }
    const byNode = await plane.admin.call('PATCH', path, { body, contentType, as: NODE });
    assert.equal(byNode.status, 200, JSON.stringify(byNode.body));
    assert.ok(isDeniedBy('namespace-protection', await plane.admin.call('PATCH', path, { body, contentType })));
    const named = { user: 'system:node:node-1', groups: ['system:authenticated'] };
    await grant(plane, named, 'edit', 'protected');
    await grant(plane, named, 'cluster-admin');
    assert.ok(
      isDeniedBy('namespace-protection', await plane.admin.call('PATCH', path, { body, contentType, as: named })),
    );
  });

  it('deleting a protected namespace deletes its pods too', async () => {
    await createNamespace(plane, 'leaving');
    await populate(plane, 'leaving');
    const label = { metadata: { labels: { 'temper.dev/agents': 'true' } } };
    const patch = { body: label, contentType: 'application/merge-patch+json' };
    assert.equal((await plane.admin.call('PATCH', '/api/v1/namespaces/leaving', patch)).status, 200);
    assert.equal((await plane.admin.call('DELETE', '/api/v1/namespaces/leaving')).status, 200);
    await pollValue(
      'the deletion of the namespace',
      () => plane.admin.call('GET', '/api/v1/namespaces/leaving'),
      ({ status }) => status === 404,
    );
  });
});

/** Creates the objects that the requests refer to, so that only the admission policy can reject them. */
async function populate(plane: ControlPlane, namespace: string): Promise<void> {
  const in_ = (kind: string, apiVersion: string, name: string, rest: object = {}) => ({
    apiVersion,
    kind,
    ...rest,
    metadata: { name, namespace },
  });
  await createAll(plane, [
    in_('ServiceAccount', 'v1', 'temper-agent'),
    in_('ServiceAccount', 'v1', 'temper-users'),
    in_('NetworkPolicy', 'networking.k8s.io/v1', 'temper-deny-all', { spec: { podSelector: {} } }),
    in_('Service', 'v1', 'web', { spec: { ports: [{ port: 80 }] } }),
    in_('Pod', 'v1', 'analyst', {
      spec: {
        serviceAccountName: 'temper-agent',
        nodeName: namespace === 'leaving' ? undefined : 'node-1',
        containers: [container],
      },
    }),
  ]);
}

/** Makes a request a dry run. Connections (exec, attach, port-forward) have none. */
function dry(rest: string, method: string): string {
  if (method === 'GET' || /\/(exec|attach|portforward)/.test(rest)) return '';
  return `${rest.includes('?') ? '&' : '?'}dryRun=All`;
}
