import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ApiObject, Caller } from '../cluster/api-client.ts';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { type Attempt, fenceAttempts } from '../cluster/fence-attempts.ts';
import { installGuards, refusedBy } from '../cluster/guards.ts';
import { createAll, createNamespace, grant, until } from '../cluster/objects.ts';

const EDITOR: Caller = { user: 'edith', groups: ['system:authenticated'] };
const OPERATOR: Caller = {
  user: 'system:serviceaccount:temper-system:temper-operator',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:temper-system', 'system:authenticated'],
};
const NODE: Caller = { user: 'system:node:node-1', groups: ['system:nodes', 'system:authenticated'] };
const GATEWAY_TOKEN = { audiences: ['temper-gateway'], expirationSeconds: 600 };

const container = { name: 'shell', image: 'example.com/shell' };
const ATTEMPTS = fenceAttempts('analyst');

describe('the fence around a namespace with agents', () => {
  let plane: ControlPlane;

  const attempt = ({ method, path: [api, rest], body, contentType }: Attempt, namespace: string, as?: Caller) =>
    plane.admin.call(method, `/${api}/namespaces/${namespace}/${rest}${dry(rest, method)}`, {
      ...(as === undefined ? {} : { as }),
      ...(body === undefined ? {} : { body }),
      ...(contentType === undefined ? {} : { contentType }),
    });

  before(async () => {
    plane = await startControlPlane({ controllerManager: true });
    await installGuards(plane);
    await createNamespace(plane, 'fenced');
    await createNamespace(plane, 'open');
    for (const namespace of ['fenced', 'open']) {
      await grant(plane, EDITOR, 'edit', namespace);
      await populate(plane, namespace);
    }
    const label = { metadata: { labels: { 'temper.dev/agents': 'true' } } };
    const patch = { body: label, contentType: 'application/merge-patch+json' };
    assert.equal((await plane.admin.call('PATCH', '/api/v1/namespaces/fenced', patch)).status, 200);
    await grant(plane, OPERATOR, 'cluster-admin');
    const probe = ATTEMPTS.find(({ what }) => what === 'make a secret');
    assert.ok(probe !== undefined);
    await until(
      'edit has its rights and the label is seen',
      () => attempt(probe, 'fenced', EDITOR),
      (answer) => refusedBy('fence', answer),
    );
  });

  after(async () => {
    await plane?.[Symbol.asyncDispose]();
  });

  for (const one of ATTEMPTS) {
    it(`keeps the role edit from trying to ${one.what}`, async () => {
      const inside = await attempt(one, 'fenced', EDITOR);
      assert.ok(refusedBy('fence', inside), JSON.stringify(inside.body));
      const outside = await attempt(one, 'open', EDITOR);
      assert.ok(!refusedBy('fence', outside) && outside.status !== 403, JSON.stringify(outside.body));
    });
  }

  it('keeps out cluster administrators too', async () => {
    for (const one of ATTEMPTS) {
      const answer = await attempt(one, 'fenced');
      assert.ok(refusedBy('fence', answer), `${one.what}: ${JSON.stringify(answer.body)}`);
    }
  });

  it('keeps the role edit out as a service account of the namespace', async () => {
    const as = { user: 'system:serviceaccount:fenced:temper-people', groups: ['system:serviceaccounts'] };
    await grant(plane, as, 'edit', 'fenced');
    for (const one of ATTEMPTS) {
      const answer = await attempt(one, 'fenced', as);
      assert.ok(refusedBy('fence', answer), `${one.what}: ${JSON.stringify(answer.body)}`);
    }
  });

  it('lets the operator make what agents need, and nothing else', async () => {
    const labels = { 'temper.dev/agent-pod': 'true' };
    const spec = { automountServiceAccountToken: false, containers: [container] };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', labels }, spec };
    // The two dry runs by which the operator knows that the fence is in force.
    const pods = '/api/v1/namespaces/fenced/pods?dryRun=All';
    assert.equal((await plane.admin.call('POST', pods, { body: pod, as: OPERATOR })).status, 201);
    const bare = { ...pod, metadata: { name: 'p' } };
    assert.ok(refusedBy('fence', await plane.admin.call('POST', pods, { body: bare, as: OPERATOR })));
    const may = [
      'make a service account',
      'open the network',
      'delete the policy that closes it',
      'delete the pod',
      'change its labels',
    ];
    for (const one of ATTEMPTS) {
      const answer = await attempt(one, 'fenced', OPERATOR);
      if (may.includes(one.what)) assert.ok(answer.status < 300, `${one.what}: ${JSON.stringify(answer.body)}`);
      else if (one.what !== 'delete all pods') {
        assert.ok(refusedBy('fence', answer), `${one.what}: ${JSON.stringify(answer.body)}`);
      }
    }
  });

  it('lets nodes report and nobody else', async () => {
    const path = '/api/v1/namespaces/fenced/pods/analyst/status?dryRun=All';
    const body = { status: { phase: 'Running' } };
    const contentType = 'application/strategic-merge-patch+json';
    const byNode = await plane.admin.call('PATCH', path, { body, contentType, as: NODE });
    assert.equal(byNode.status, 200, JSON.stringify(byNode.body));
    assert.ok(refusedBy('fence', await plane.admin.call('PATCH', path, { body, contentType })));
    const named = { user: 'system:node:node-1', groups: ['system:authenticated'] };
    await grant(plane, named, 'edit', 'fenced');
    await grant(plane, named, 'cluster-admin');
    assert.ok(refusedBy('fence', await plane.admin.call('PATCH', path, { body, contentType, as: named })));
  });

  it('lets nodes get the tokens of the pods they run', async () => {
    const path = '/api/v1/namespaces/fenced/serviceaccounts/temper-agent/token';
    const { body: pod } = await plane.admin.call('GET', '/api/v1/namespaces/fenced/pods/analyst');
    const { uid } = pod['metadata'] as { uid: string };
    const spec = { ...GATEWAY_TOKEN, boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'analyst', uid } };
    const answer = await plane.admin.call('POST', path, { body: { spec }, as: NODE });
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
  });

  it("makes people's tokens for the gateway and for nothing else", async () => {
    const path = '/api/v1/namespaces/fenced/serviceaccounts/temper-people/token';
    const token = (spec: object, as = EDITOR) => plane.admin.call('POST', path, { body: { spec }, as });
    const good = await token(GATEWAY_TOKEN);
    assert.equal(good.status, 201, JSON.stringify(good.body));
    const { body: pod } = await plane.admin.call('GET', '/api/v1/namespaces/fenced/pods/analyst');
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
    assert.ok(refusedBy('fence', await token(GATEWAY_TOKEN, OPERATOR)));
  });

  it('is written, like every guard, in expressions the API server finds no fault with', async () => {
    const path = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
    for (const guard of ['fence', 'reserved', 'use-policy', 'resume', 'approvals', 'contributors']) {
      const checked = await until(
        `temper-${guard} is checked`,
        () => plane.admin.call('GET', `${path}/temper-${guard}`),
        ({ body }) => (body['status'] as ApiObject | undefined)?.['observedGeneration'] === 1,
      );
      const { typeChecking } = checked.body['status'] as ApiObject;
      assert.deepEqual(typeChecking ?? {}, {}, guard);
    }
  });

  it('is gone with its namespace, pods and all', async () => {
    await createNamespace(plane, 'leaving');
    await populate(plane, 'leaving');
    const label = { metadata: { labels: { 'temper.dev/agents': 'true' } } };
    const patch = { body: label, contentType: 'application/merge-patch+json' };
    assert.equal((await plane.admin.call('PATCH', '/api/v1/namespaces/leaving', patch)).status, 200);
    assert.equal((await plane.admin.call('DELETE', '/api/v1/namespaces/leaving')).status, 200);
    await until(
      'the namespace is gone',
      () => plane.admin.call('GET', '/api/v1/namespaces/leaving'),
      ({ status }) => status === 404,
    );
  });
});

/** Everything an attempt is made on, so that it fails for no other reason than the fence. */
async function populate(plane: ControlPlane, namespace: string): Promise<void> {
  const in_ = (kind: string, apiVersion: string, name: string, rest: object = {}) => ({
    apiVersion,
    kind,
    ...rest,
    metadata: { name, namespace },
  });
  await createAll(plane, [
    in_('ServiceAccount', 'v1', 'temper-agent'),
    in_('ServiceAccount', 'v1', 'temper-people'),
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

/** Nothing here is meant to happen. What connects has no dry run. */
function dry(rest: string, method: string): string {
  if (method === 'GET' || /\/(exec|attach|portforward)/.test(rest)) return '';
  return `${rest.includes('?') ? '&' : '?'}dryRun=All`;
}
