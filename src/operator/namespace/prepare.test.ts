import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { LABELS, NAMESPACE_OBJECTS } from '../../api/cluster.ts';
import { ApiError, type ResourceType } from '../../kube/client/kube-client.ts';
import type { PlainObject } from '../kube/types.ts';
import type { PrerequisiteOptions } from './objects.ts';
import { type NamespaceDeps, NamespaceObjects } from './prepare.ts';

const OPTIONS: PrerequisiteOptions = {
  namespace: 'team-a',
  releaseNamespace: 'temper-system',
  gatewayLabels: { app: 'gateway' },
  endpoints: { gateway: 'https://10.0.0.1:8443', gatewayName: 'temper-gateway', caBundle: 'CA' },
  policies: [],
  warmPods: 0,
};
const DENY_ALL = `networkpolicies/${NAMESPACE_OBJECTS.denyAll}`;

interface FakeApi {
  readonly deps: NamespaceDeps;
  readonly stored: Map<string, PlainObject>;
  readonly writes: string[];
}

/** An API server whose objects the cache does not contain, unless `cached` is set. `alter` changes what it stores, as a webhook does. */
function fakeApi(
  change: { alter?: (key: string, object: PlainObject) => PlainObject; cached?: boolean; onWrite?: () => void } = {},
): FakeApi {
  const { alter = (_key, object) => object, onWrite = () => {} } = change;
  const stored = new Map<string, PlainObject>();
  const writes: string[] = [];
  const keyOf = ({ plural }: ResourceType, name: string) => `${plural}/${name}`;
  const store = (key: string, object: PlainObject): PlainObject => {
    const resourceVersion = `${writes.length}`;
    const metadata = { ...object.metadata, uid: `u-${key}`, resourceVersion };
    const kept = alter(key, { ...object, metadata });
    stored.set(key, kept);
    return kept;
  };
  const client = {
    get: async (type: ResourceType, { name }: { name: string }) => stored.get(keyOf(type, name)),
    create: async (type: ResourceType, object: PlainObject) => {
      const key = keyOf(type, object.metadata.name);
      writes.push(`create ${key}`);
      onWrite();
      if (stored.has(key)) throw new ApiError(409, 'AlreadyExists', 'exists');
      return store(key, object);
    },
    patch: async (type: ResourceType, { name }: { name: string }, patch: object) => {
      const key = keyOf(type, name);
      writes.push(`patch ${key}`);
      const before = stored.get(key);
      const { resourceVersion } = (patch as PlainObject).metadata;
      if (resourceVersion !== before?.metadata.resourceVersion) throw new ApiError(409, 'Conflict', 'changed');
      return store(key, merged(before ?? {}, patch) as PlainObject);
    },
  };
  const cached: NamespaceDeps['cached'] = (type, _namespace, name) =>
    change.cached === true ? stored.get(keyOf(type, name)) : undefined;
  return { deps: { client, cached, options: () => OPTIONS } as unknown as NamespaceDeps, stored, writes };
}

/** A JSON merge patch (RFC 7396). */
function merged(before: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> = typeof before === 'object' && before !== null ? { ...before } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
}

const OPEN_TO_ALL: PlainObject = {
  metadata: { name: NAMESPACE_OBJECTS.denyAll, namespace: 'team-a', uid: 'u-squatter', resourceVersion: 'squatted' },
  spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'], ingress: [{}], egress: [{}] },
};

describe('the objects of a namespace with agents', () => {
  it('each missing object is created, and nothing is written again while the cache lags', async () => {
    const api = fakeApi();
    const namespaces = new NamespaceObjects(api.deps);
    assert.deepEqual(await namespaces.prepare('team-a', NEVER_ABORTED), { kind: 'prepared' });
    assert.equal(api.writes.filter((write) => write.startsWith('create ')).length, 6);
    const before = api.writes.length;
    await namespaces.prepare('team-a', NEVER_ABORTED);
    assert.equal(api.writes.length, before);
  });

  it('pods reach the egress proxy only in an installation with one and with its label, and know its address', async () => {
    const objectsOf = async (options: PrerequisiteOptions) => {
      const api = fakeApi();
      await new NamespaceObjects({ ...api.deps, options: () => options }).prepare('team-a', NEVER_ABORTED);
      const rules = [NAMESPACE_OBJECTS.allowGateway, NAMESPACE_OBJECTS.allowEgress].flatMap((name) => {
        const spec = api.stored.get(`networkpolicies/${name}`)?.['spec'];
        if (spec === undefined) return [];
        const { podSelector, egress } = spec as {
          podSelector: { matchLabels: object };
          egress: { to: { podSelector: { matchLabels: object } }[]; ports: { port: number }[] }[];
        };
        const [rule] = egress;
        const to = rule?.to[0]?.podSelector.matchLabels;
        return [{ from: podSelector.matchLabels, to, port: rule?.ports[0]?.port, rules: egress.length }];
      });
      const data = api.stored.get(`configmaps/${NAMESPACE_OBJECTS.endpoints}`)?.['data'] as Record<string, string>;
      return { rules, files: Object.keys(data), egress: data['egress'] };
    };
    const [pod, reaching] = [{ [LABELS.agentPod]: 'true' }, { [LABELS.egress]: 'true' }];
    const gateway = { from: pod, to: { app: 'gateway' }, port: 8443, rules: 1 };
    const files = ['gateway', 'gateway-name', 'ca.crt'];
    assert.deepEqual(await objectsOf(OPTIONS), { rules: [gateway], files, egress: undefined });
    const address = 'https://10.0.0.2:8445';
    const egress = { address, name: 'temper-egress', targetAuthorities: 'CA of targets' };
    const endpoints = { ...OPTIONS.endpoints, egress };
    const found = await objectsOf({ ...OPTIONS, endpoints, egressLabels: { app: 'egress' } });
    const proxy = { from: { ...pod, ...reaching }, to: { app: 'egress' }, port: 8445, rules: 1 };
    assert.deepEqual(found.rules, [gateway, proxy]);
    assert.deepEqual([found.files.length, found.egress], [6, address]);
  });

  for (const cached of [false, true]) {
    it(`the rules that a user stored first under the name are removed, ${cached ? 'and' : 'also when'} the cache has ${cached ? 'them' : 'no such object'}`, async () => {
      const api = fakeApi({ cached });
      api.stored.set(DENY_ALL, OPEN_TO_ALL);
      const namespaces = new NamespaceObjects(api.deps);
      assert.deepEqual(await namespaces.prepare('team-a', NEVER_ABORTED), { kind: 'prepared' });
      const spec = api.stored.get(DENY_ALL)?.['spec'] as Record<string, unknown>;
      assert.deepEqual(Object.keys(spec).sort(), ['podSelector', 'policyTypes']);
    });
  }

  it('a namespace whose stored network policy differs from the written one is not prepared', async () => {
    const alter = (key: string, object: PlainObject) =>
      key === DENY_ALL ? { ...object, spec: { ...(object['spec'] as object), egress: [{}] } } : object;
    const found = await new NamespaceObjects(fakeApi({ alter }).deps).prepare('team-a', NEVER_ABORTED);
    assert.ok(found.kind === 'altered');
    assert.match(found.message, /NetworkPolicy "temper-deny-all" of namespace "team-a" with other content/);
  });

  it('an object that another writer changed meanwhile is read and written again', async () => {
    const api = fakeApi({ cached: true });
    await new NamespaceObjects(api.deps).prepare('team-a', NEVER_ABORTED);
    const changed = { ...OPEN_TO_ALL, metadata: { ...OPEN_TO_ALL.metadata, resourceVersion: 'newer' } };
    const stale = { ...OPEN_TO_ALL, metadata: { ...OPEN_TO_ALL.metadata, resourceVersion: 'older' } };
    api.stored.set(DENY_ALL, changed);
    const cached: NamespaceDeps['cached'] = (type, namespace, name) =>
      name === NAMESPACE_OBJECTS.denyAll ? stale : api.deps.cached(type, namespace, name);
    const namespaces = new NamespaceObjects({ ...api.deps, cached });
    assert.deepEqual(await namespaces.prepare('team-a', NEVER_ABORTED), { kind: 'prepared' });
    assert.deepEqual(api.writes.slice(-2), [`patch ${DENY_ALL}`, `patch ${DENY_ALL}`]);
  });

  it('a caller reads its own options, and survives the abort of another caller', async () => {
    const first = new AbortController();
    const second = new AbortController();
    const api = fakeApi({ onWrite: () => first.abort(new Error('the first reconcile timed out')) });
    let labels = 0;
    const signals: AbortSignal[] = [];
    const { client } = api.deps;
    const namespaces = new NamespaceObjects({
      ...api.deps,
      client: {
        ...client,
        create: (type, object, signal, options) => {
          signals.push(signal);
          const created = client.create(type, object, signal, options) as ReturnType<typeof client.create>;
          return created.then((result) => (signal.throwIfAborted(), result)) as never;
        },
      },
      options: () => ({ ...OPTIONS, gatewayLabels: { call: `${(labels += 1)}` } }),
    });
    const failed = assert.rejects(namespaces.prepare('team-a', first.signal), /the first reconcile timed out/);
    const prepared = await namespaces.prepare('team-a', second.signal);
    await failed;
    assert.deepEqual(prepared, { kind: 'prepared' });
    assert.ok(signals.includes(second.signal));
    const policy = api.stored.get(`networkpolicies/${NAMESPACE_OBJECTS.allowGateway}`);
    assert.match(JSON.stringify(policy?.['spec']), /"call":"2"/);
  });

  it('callers at the same time write each object once', async () => {
    const api = fakeApi();
    const namespaces = new NamespaceObjects(api.deps);
    await Promise.all(Array.from({ length: 5 }, () => namespaces.prepare('team-a', NEVER_ABORTED)));
    assert.equal(api.writes.length, 6);
  });

  it('a caller that waits for its turn ends with its signal', async () => {
    const blocked = Promise.withResolvers<never>();
    const api = fakeApi();
    const client = { ...api.deps.client, create: () => blocked.promise };
    const namespaces = new NamespaceObjects({ ...api.deps, client });
    const waiting = namespaces.prepare('team-a', NEVER_ABORTED);
    await assert.rejects(namespaces.prepare('team-a', AbortSignal.abort(new Error('stopped'))), /stopped/);
    blocked.reject(new ApiError(403, 'Forbidden', 'no'));
    await assert.rejects(waiting, { status: 403 });
  });

  it('a namespace waits while the address of the gateway is unknown', async () => {
    const api = fakeApi();
    const namespaces = new NamespaceObjects({ ...api.deps, options: () => undefined });
    assert.deepEqual(await namespaces.prepare('team-a', NEVER_ABORTED), { kind: 'waiting' });
    assert.deepEqual(api.writes, []);
  });
});
