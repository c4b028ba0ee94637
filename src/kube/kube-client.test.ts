import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import { ApiError, type KubeClient, type ResourceType } from './client.ts';
import { createKubeClient } from './kube-client.ts';
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

/** A client whose requests are kept and answered by the function. */
function aClient(
  answer: (request: KubeRequest) => Json = () => ({ metadata: { name: 'a' } }),
  isLeader?: () => boolean,
) {
  const sent: KubeRequest[] = [];
  const transport: Transport = {
    send: async (request) => {
      sent.push(request);
      return answer(request);
    },
    open: () => Promise.reject(new Error('not asked for')),
    abandonStreams: () => {},
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  return { client: createKubeClient(transport, isLeader === undefined ? {} : { isLeader }), sent };
}

function refusing(status: number, reason: string) {
  return (): Json => {
    throw new ApiError(status, reason, `told to say ${reason}`);
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

describe('the client of the API', () => {
  it('sends nothing that writes while the process does not lead, and asks at each call', async () => {
    let leads = false;
    const { client, sent } = aClient(
      () => ({ metadata: { name: 'a' }, status: { token: 't', expirationTimestamp: 'x' } }),
      () => leads,
    );
    for (const [name, mutate] of Object.entries(MUTATIONS)) {
      await assert.rejects(mutate(client), (error) => isTemperError(error, 'TEMPER_NOT_LEADER'), name);
    }
    assert.deepEqual(sent, []);
    await client.get(PODS, REF, SIGNAL);
    await client.mayI({ verb: 'get', group: '', resource: 'pods' }, SIGNAL);
    leads = true;
    for (const mutate of Object.values(MUTATIONS)) await mutate(client);
    assert.equal(sent.length, 2 + Object.keys(MUTATIONS).length);
  });

  it('asks again before a write is sent again', async () => {
    let leads = true;
    const { client, sent } = aClient(undefined, () => leads);
    await client.create(PODS, POD, SIGNAL);
    leads = false;
    assert.throws(
      () => sent[0]?.before?.(),
      (error) => isTemperError(error, 'TEMPER_NOT_LEADER'),
    );
  });

  it('applies what one owns under the name of its manager', async () => {
    const { client, sent } = aClient();
    await client.apply(APPS, { ...POD, spec: {} }, { manager: 'op', force: true, dryRun: true }, SIGNAL);
    await client.applyStatus(APPS, { ...POD, status: {} }, { manager: 'op' }, SIGNAL);
    const path = '/apis/apps/v1/namespaces/team/deployments/a';
    const says = { apiVersion: 'apps/v1', kind: 'Deployment', ...POD };
    const contentType = 'application/apply-patch+yaml';
    assert.deepEqual(sent, [
      {
        method: 'PATCH',
        path: `${path}?fieldManager=op&force=true&dryRun=All`,
        body: { ...says, spec: {} },
        contentType,
      },
      { method: 'PATCH', path: `${path}/status?fieldManager=op`, body: { ...says, status: {} }, contentType },
    ]);
  });

  it('creates in the collection, merges into the object and asks about the caller', async () => {
    const { client, sent } = aClient();
    await client.create(NODES, { metadata: { name: 'n' } }, SIGNAL, { dryRun: true, manager: 'op' });
    await client.patch(PODS, REF, { x: 1 }, SIGNAL, { subresource: 'status' });
    assert.equal(await client.mayI({ verb: 'create', group: 'x', resource: 'y', namespace: 'z' }, SIGNAL), false);
    assert.deepEqual(
      sent.map(({ method, path, contentType }) => [method, path, contentType]),
      [
        ['POST', '/api/v1/nodes?dryRun=All&fieldManager=op', undefined],
        ['PATCH', '/api/v1/namespaces/team/pods/a/status', 'application/merge-patch+json'],
        ['POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', undefined],
      ],
    );
  });

  it('takes what is not there for an answer when it reads or deletes', async () => {
    const { client } = aClient(refusing(404, 'NotFound'));
    assert.equal(await client.get(PODS, REF, SIGNAL), undefined);
    assert.equal(await client.delete(PODS, REF, { uid: 'u' }, SIGNAL), true);
    await assert.rejects(client.patch(PODS, REF, {}, SIGNAL), { status: 404 });
  });

  it('says whether a precondition of a deletion held', async () => {
    const { client, sent } = aClient(refusing(409, 'Conflict'));
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

  it('reads a list whose objects do not say what they are', async () => {
    const { client } = aClient(() => ({ metadata: { resourceVersion: '1' }, items: [{ metadata: { name: 'a' } }] }));
    assert.deepEqual(await client.list(PODS, { namespace: 'team', labelSelector: 'x=y' }, SIGNAL), [
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } },
    ]);
    const { client: empty } = aClient(() => ({ metadata: { resourceVersion: '1' }, items: null }));
    assert.deepEqual(await empty.list(PODS, {}, SIGNAL), []);
  });

  it('refuses answers that no API server gives', async () => {
    for (const answer of [null, [], 'x', {}, { metadata: {} }, { metadata: { name: 1 } }]) {
      const { client } = aClient(() => answer);
      const unreadable = (error: unknown): boolean => isTemperError(error, 'TEMPER_KUBE_UNREACHABLE');
      await assert.rejects(client.get(PODS, REF, SIGNAL), unreadable);
      await assert.rejects(client.list(PODS, {}, SIGNAL), unreadable);
      await assert.rejects(client.createToken(REF, { audiences: [], expirationSeconds: 600 }, SIGNAL), unreadable);
    }
  });

  it('never makes the path of another object out of a name', async () => {
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
