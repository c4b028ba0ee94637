import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { KubeClient, ResourceType } from '../../../src/kube/client/kube-client.ts';
import { Controller } from '../../../src/kube/controller/controller.ts';
import { createKubeClient } from '../../../src/kube/client/http-kube-client.ts';
import { LeaderElection } from '../../../src/kube/leader-election/leader-election.ts';
import { Manager } from '../../../src/kube/manager.ts';
import { createRateLimiter } from '../../../src/kube/controller/rate-limiter.ts';
import { Reflector, type ReflectorOptions } from '../../../src/kube/informer/reflector.ts';
import { type KubeObject, Store } from '../../../src/kube/informer/store.ts';
import { WorkQueue } from '../../../src/kube/controller/work-queue.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { TemperError } from '../../../src/lib/errors.ts';
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts';
import { openKubeFixture, CONFIG_MAPS, type KubeFixture } from '../../support/api-server/kube-fixture.ts';
import { poll, pollValue } from '../../support/poll.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';

interface ConfigMap extends KubeObject {
  readonly data?: Record<string, string>;
}

const SECRETS: ResourceType = { ...CONFIG_MAPS, plural: 'secrets', kind: 'Secret' };
const NAMESPACES: ResourceType = { ...CONFIG_MAPS, plural: 'namespaces', kind: 'Namespace', namespaced: false };
const TEAM = 'team-a';

describe('the reflector on a real API server', () => {
  let plane: ControlPlane;
  let fixture: KubeFixture;
  let client: KubeClient;

  before(async () => {
    plane = await startControlPlane();
    fixture = await openKubeFixture(plane.kubeconfig);
    client = createKubeClient(fixture.transport);
    await client.create(NAMESPACES, { metadata: { name: TEAM } }, NEVER_ABORTED);
  });

  after(async () => {
    await fixture?.[Symbol.asyncDispose]();
    await plane?.[Symbol.asyncDispose]();
  });

  const aReflector = (more: Partial<ReflectorOptions<ConfigMap>> = {}): Reflector<ConfigMap> => {
    const { transport, log, metrics } = fixture;
    const store = new Store<ConfigMap>({ freeze: true });
    const [clock, random] = [systemClock, Math.random];
    return new Reflector({
      type: CONFIG_MAPS,
      transport,
      store,
      clock,
      log,
      metrics,
      random,
      namespace: TEAM,
      ...more,
    });
  };

  const create = (name: string, data: Record<string, string> = {}, more: object = {}): Promise<ConfigMap> =>
    client.create<ConfigMap>(CONFIG_MAPS, { metadata: { namespace: TEAM, name, ...more }, data }, NEVER_ABORTED);

  it('the store follows listed, created, changed and deleted objects', async () => {
    await create('before');
    await using reflector = aReflector();
    reflector.start();
    await reflector.synced(NEVER_ABORTED);
    assert.ok(reflector.store.get(`${TEAM}/before`) !== undefined);
    await create('after', { a: '1' });
    await pollValue(
      'the new object',
      () => reflector.store.get(`${TEAM}/after`)?.data?.['a'],
      (value) => value === '1',
    );
    await client.patch(CONFIG_MAPS, { namespace: TEAM, name: 'after' }, { data: { a: '2' } }, NEVER_ABORTED);
    await pollValue(
      'the change',
      () => reflector.store.get(`${TEAM}/after`)?.data?.['a'],
      (value) => value === '2',
    );
    await client.delete(CONFIG_MAPS, { namespace: TEAM, name: 'before' }, {}, NEVER_ABORTED);
    await pollValue(
      'the deletion',
      () => reflector.store.get(`${TEAM}/before`),
      (value) => value === undefined,
    );
    assert.equal(reflector.store.get(`${TEAM}/after`)?.metadata.managedFields, undefined);
  });

  it('the reflector lists several pages, and only metadata with metadataOnly', async () => {
    const secret = (index: number): object => {
      return {
        metadata: { namespace: TEAM, name: `s${index}`, labels: { many: 'yes' } },
        stringData: { key: 'hidden' },
      };
    };
    await Promise.all(Array.from({ length: 620 }, (_, index) => client.create(SECRETS, secret(index), NEVER_ABORTED)));
    await using reflector = aReflector({ type: SECRETS, metadataOnly: true, labelSelector: 'many=yes' });
    reflector.start();
    await reflector.synced(NEVER_ABORTED);
    assert.equal(reflector.store.size, 620);
    await client.create(SECRETS, secret(620), NEVER_ABORTED);
    await pollValue(
      'the new object',
      () => reflector.store.size,
      (value) => value === 621,
    );
    assert.doesNotMatch(JSON.stringify(reflector.store.list()), /"data"|hidden|aGlkZGVu/);
  });

  it('the reflector continues after a restart of the API server without missing a change', async () => {
    await using reflector = aReflector();
    const deleted: string[] = [];
    reflector.subscribe((change) => {
      if (change.type === 'deleted') deleted.push(change.key);
    });
    await create('doomed');
    reflector.start();
    await reflector.synced(NEVER_ABORTED);
    const lists = fixture.metrics.counts['reflector_lists_total'];
    await plane.restartApiServer();
    await client.delete(CONFIG_MAPS, { namespace: TEAM, name: 'doomed' }, {}, NEVER_ABORTED);
    await create('born');
    await pollValue(
      'the object created after the restart',
      () => reflector.store.get(`${TEAM}/born`),
      (value) => value !== undefined,
    );
    await poll('the deletion', () => deleted.includes(`${TEAM}/doomed`));
    assert.ok((fixture.metrics.counts['reflector_lists_total'] ?? 0) - (lists ?? 0) <= 1);
  });

  it('the reflector relists after a compaction and reports objects that were deleted in between', async () => {
    const { transport, metrics } = fixture;
    let blocked = false;
    const cut = new AbortController();
    await using reflector = aReflector({
      transport: {
        ...transport,
        open: async (request, outer) => {
          if (blocked) throw new TemperError('TEMPER_KUBE_UNREACHABLE', 'blocked by the test');
          return transport.open(request, cut.signal.aborted ? outer : AbortSignal.any([outer, cut.signal]));
        },
      },
    });
    const deletions: string[] = [];
    reflector.subscribe((change) => {
      if (change.type === 'deleted') deletions.push(`${change.key} ${change.tombstone}`);
    });
    await create('unseen');
    reflector.start();
    await reflector.synced(NEVER_ABORTED);
    const lists = metrics.counts['reflector_lists_total'] ?? 0;
    blocked = true;
    cut.abort();
    await client.delete(CONFIG_MAPS, { namespace: TEAM, name: 'unseen' }, {}, NEVER_ABORTED);
    const { metadata } = await create('last');
    const compaction = await fetch(`${plane.etcd}/v3/kv/compaction`, {
      method: 'POST',
      body: JSON.stringify({ revision: metadata.resourceVersion, physical: true }),
    });
    assert.equal(compaction.status, 200, await compaction.text());
    // The restart also clears the watch cache of the API server.
    await plane.restartApiServer();
    blocked = false;
    await pollValue(
      'the deletion',
      () => deletions.length,
      (value) => value > 0,
    );
    assert.deepEqual(deletions, [`${TEAM}/unseen true`]);
    assert.ok(reflector.store.get(`${TEAM}/last`) !== undefined);
    assert.equal(metrics.counts['reflector_lists_total'], lists + 1);
    assert.match(fixture.logLines.join(''), /watch expired; relisting/);
  });

  it('a manager runs reflector, controller and election until a clean shutdown', async () => {
    const { transport, log, metrics } = fixture;
    const owner = await create('owner');
    const election = new LeaderElection({
      client,
      clock: systemClock,
      log,
      metrics,
      random: Math.random,
      namespace: TEAM,
      name: 'leader',
      identity: 'only',
    });
    const guarded = createKubeClient(transport, { isLeader: () => election.isLeader() });
    const queue = new WorkQueue({
      name: 'owners',
      clock: systemClock,
      limiter: createRateLimiter(systemClock),
      metrics,
    });
    const reflector = aReflector({ labelSelector: 'child=yes' });
    reflector.subscribe(({ object: { metadata } }) => {
      for (const { name } of metadata.ownerReferences ?? []) queue.add(`${metadata.namespace}/${name}`);
    });
    const seen: string[] = [];
    const controller = new Controller({
      name: 'owners',
      queue,
      clock: systemClock,
      log,
      metrics,
      newId: () => 'r',
      async reconcile(key, context) {
        seen.push(key);
        const data = { children: String(reflector.store.size) };
        const object = { metadata: { namespace: TEAM, name: 'owner' }, data };
        await guarded.apply(CONFIG_MAPS, object, { manager: 'owners', force: true }, context.signal);
        return { kind: 'done' };
      },
    });
    const manager = new Manager({
      clock: systemClock,
      log,
      informers: { children: reflector },
      controllers: [controller],
      election,
    });
    const stop = new AbortController();
    const running = manager.run(stop.signal);
    const ownerReferences = [
      { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner.metadata.uid, controller: true },
    ];
    await create('child-1', {}, { labels: { child: 'yes' }, ownerReferences });
    await create('child-2', {}, { labels: { child: 'yes' }, ownerReferences });
    const children = async (): Promise<string | undefined> =>
      (await client.get<ConfigMap>(CONFIG_MAPS, { namespace: TEAM, name: 'owner' }, NEVER_ABORTED))?.data?.['children'];
    await pollValue(
      'the count of children',
      () => children(),
      (value) => value === '2',
    );
    assert.deepEqual(manager.unsyncedInformers(), []);
    stop.abort();
    await running;
    assert.deepEqual([...new Set(seen)], [`${TEAM}/owner`]);
    const lease = await plane.admin.call('GET', `/apis/coordination.k8s.io/v1/namespaces/${TEAM}/leases/leader`);
    assert.equal((lease.body['spec'] as { holderIdentity: string }).holderIdentity, '');
    assert.equal(metrics.counts['controller_runtime_reconcile_errors_total'], 0);
  });
});
