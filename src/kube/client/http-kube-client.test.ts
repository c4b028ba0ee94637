import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { ApiError, type KubeClient, type ResourceType } from './kube-client.ts';
import { createKubeClient } from './http-kube-client.ts';
import type { KubeRequest, Transport } from './transport.ts';

const PODS: ResourceType = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };
const NODES: ResourceType = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };
const APPS: ResourceType = {
  group: 'apps',
  version: 'v1',
  plural: 'deployments',
  kind: 'Deployment',
  namespaced: true,
};
const POD = { metadata: { namespace: 'team', name: 'a' } };
const REF = { namespace: 'team', name: 'a' };
const SIGNAL = new AbortController().signal;

/** A client whose transport records the requests; the function supplies the responses. */
function aClient(
  respond: (request: KubeRequest) => Json = () => ({ metadata: { name: 'a' } }),
  isLeader?: () => boolean,
) {
  const sent: KubeRequest[] = [];
  const transport: Transport = {
    send: async (request) => {
      sent.push(request);
      return respond(request);
    },
    open: () => Promise.reject(new Error('unexpected call of open')),
    retireStreamConnection: () => {},
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  return { client: createKubeClient(transport, isLeader === undefined ? {} : { isLeader }), transport, sent };
}

function failingWith(status: number, reason: string) {
  return (): Json => {
    throw new ApiError(status, reason, `the test requested ${reason}`);
  };
}

const MUTATIONS: Record<string, (client: KubeClient) => Promise<unknown>> = {
  create: (client) => client.create(PODS, POD, SIGNAL),
  apply: (client) => client.apply(PODS, POD, { manager: 'm' }, SIGNAL),
  applyStatus: (client) => client.applyStatus(PODS, POD, { manager: 'm' }, SIGNAL),
  patch: (client) => client.patch(PODS, REF, {}, SIGNAL),
  delete: (client) => client.delete(PODS, REF, {}, SIGNAL),
  createToken: (client) => client.createToken(REF, { audiences: ['x'], expirationSeconds: 600 }, SIGNAL),
};

describe('the Kubernetes client', () => {
  it('a client of the Lease sends reads and mutations over the connection of the Lease', async () => {
    const sent: KubeRequest[] = [];
    const send: Transport['send'] = async (request) => {
      sent.push(request);
      return { metadata: { name: 'a' } };
    };
    const { transport } = aClient();
    const client = createKubeClient({ ...transport, send }, { connection: 'lease' });
    await client.get(PODS, REF, SIGNAL);
    await client.create(PODS, POD, SIGNAL);
    await client.patch(PODS, REF, {}, SIGNAL);
    assert.deepEqual(
      sent.map(({ connection }) => connection),
      ['lease', 'lease', 'lease'],
    );
  });

  it('every mutation is rejected while the process is not the leader; reads are sent', async () => {
    let isLeader = false;
    const { client, sent } = aClient(
      () => ({ metadata: { name: 'a' }, status: { token: 't', expirationTimestamp: 'x' } }),
      () => isLeader,
    );
    for (const [name, mutate] of Object.entries(MUTATIONS)) {
      await assert.rejects(mutate(client), (error) => isTemperError(error, 'TEMPER_NOT_LEADER'), name);
    }
    assert.deepEqual(sent, []);
    await client.get(PODS, REF, SIGNAL);
    await client.canI({ verb: 'get', group: '', resource: 'pods' }, SIGNAL);
    isLeader = true;
    for (const mutate of Object.values(MUTATIONS)) await mutate(client);
    assert.equal(sent.length, 2 + Object.keys(MUTATIONS).length);
  });

  it('leadership is checked again before a write is retried', async () => {
    let isLeader = true;
    const { client, sent } = aClient(undefined, () => isLeader);
    await client.create(PODS, POD, SIGNAL);
    isLeader = false;
    assert.throws(
      () => sent[0]?.beforeAttempt?.(),
      (error) => isTemperError(error, 'TEMPER_NOT_LEADER'),
    );
  });

  it('apply and applyStatus send a server-side apply with the field manager', async () => {
    const { client, sent } = aClient();
    await client.apply(APPS, { ...POD, spec: {} }, { manager: 'op', force: true, dryRun: true }, SIGNAL);
    await client.applyStatus(APPS, { ...POD, status: {} }, { manager: 'op' }, SIGNAL);
    const path = '/apis/apps/v1/namespaces/team/deployments/a';
    const typed = { apiVersion: 'apps/v1', kind: 'Deployment', ...POD };
    const contentType = 'application/apply-patch+yaml';
    assert.deepEqual(sent, [
      {
        method: 'PATCH',
        path: `${path}?fieldManager=op&force=true&dryRun=All`,
        body: { ...typed, spec: {} },
        contentType,
      },
      { method: 'PATCH', path: `${path}/status?fieldManager=op`, body: { ...typed, status: {} }, contentType },
    ]);
  });

  it('create, patch and the access review use the right methods, paths and content types', async () => {
    const { client, sent } = aClient();
    await client.create(NODES, { metadata: { name: 'n' } }, SIGNAL, { dryRun: true, manager: 'op' });
    await client.patch(PODS, REF, { x: 1 }, SIGNAL, { subresource: 'status' });
    assert.equal(await client.canI({ verb: 'create', group: 'x', resource: 'y', namespace: 'z' }, SIGNAL), false);
    assert.deepEqual(
      sent.map(({ method, path, contentType }) => [method, path, contentType]),
      [
        ['POST', '/api/v1/nodes?dryRun=All&fieldManager=op', undefined],
        ['PATCH', '/api/v1/namespaces/team/pods/a/status', 'application/merge-patch+json'],
        ['POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', undefined],
      ],
    );
  });

  it('get and delete treat a missing object as a result, not as an error', async () => {
    const { client } = aClient(failingWith(404, 'NotFound'));
    assert.equal(await client.get(PODS, REF, SIGNAL), undefined);
    assert.equal(await client.delete(PODS, REF, { uid: 'u' }, SIGNAL), true);
    await assert.rejects(client.patch(PODS, REF, {}, SIGNAL), { status: 404 });
  });

  it('delete returns false when a precondition failed', async () => {
    const { client, sent } = aClient(failingWith(409, 'Conflict'));
    assert.equal(
      await client.delete(PODS, REF, { uid: 'u', gracePeriodSeconds: 0, propagation: 'Background' }, SIGNAL),
      false,
    );
    assert.deepEqual(JSON.parse(JSON.stringify(sent[0]?.body)), {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      gracePeriodSeconds: 0,
      propagationPolicy: 'Background',
      preconditions: { uid: 'u' },
    });
    await assert.rejects(client.delete(PODS, REF, {}, SIGNAL), { status: 409 });
  });

  it('list adds apiVersion and kind to items without them', async () => {
    const { client } = aClient(() => ({ metadata: { resourceVersion: '1' }, items: [{ metadata: { name: 'a' } }] }));
    assert.deepEqual(await client.list(PODS, { namespace: 'team', labelSelector: 'x=y' }, SIGNAL), [
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } },
    ]);
    const { client: empty } = aClient(() => ({ metadata: { resourceVersion: '1' }, items: null }));
    assert.deepEqual(await empty.list(PODS, {}, SIGNAL), []);
  });

  it('malformed responses are rejected', async () => {
    for (const response of [null, [], 'x', {}, { metadata: {} }, { metadata: { name: 1 } }]) {
      const { client } = aClient(() => response);
      const unreadable = (error: unknown): boolean => isTemperError(error, 'TEMPER_KUBE_UNREACHABLE');
      await assert.rejects(client.get(PODS, REF, SIGNAL), unreadable);
      await assert.rejects(client.list(PODS, {}, SIGNAL), unreadable);
      await assert.rejects(client.createToken(REF, { audiences: [], expirationSeconds: 600 }, SIGNAL), unreadable);
    }
  });

  it('a name or namespace cannot change the path to another object', async () => {
    const { client, sent } = aClient();
    for (const name of ['', '.', '..', '../b', 'a/status', 'a/../../x']) {
      await assert.rejects(client.get(PODS, { namespace: 'team', name }, SIGNAL), RangeError, name);
      await assert.rejects(client.get(PODS, { namespace: name, name: 'a' }, SIGNAL), RangeError, name);
    }
    await assert.rejects(client.delete(PODS, { name: 'a' }, {}, SIGNAL), RangeError);
    await assert.rejects(client.create(PODS, { metadata: { name: 'a' } }, SIGNAL), RangeError);
    assert.equal(sent.length, 0);
    await client.get(PODS, { namespace: 'team', name: 'a?x#y%2f' }, SIGNAL);
    assert.equal(sent[0]?.path, '/api/v1/namespaces/team/pods/a%3Fx%23y%252f');
  });
});
