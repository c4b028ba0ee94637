import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { KubeClient, ResourceType } from '../../../src/kube/client/kube-client.ts';
import { loadClusterAccess } from '../../../src/kube/client/cluster-access.ts';
import { createEventRecorder } from '../../../src/kube/events/event-recorder.ts';
import { createKubeClient } from '../../../src/kube/client/http-kube-client.ts';
import { LeaderElection, type LeaderElectionOptions } from '../../../src/kube/leader-election/leader-election.ts';
import { LEASES } from '../../../src/kube/leader-election/lease.ts';
import type { KubeObject } from '../../../src/kube/informer/store.ts';
import { createTransport } from '../../../src/kube/client/transport.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { isTemperError } from '../../../src/lib/errors.ts';
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts';
import { openKubeFixture, CONFIG_MAPS, type KubeFixture } from '../../support/api-server/kube-fixture.ts';
import { pollValue } from '../../support/poll.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';

interface ConfigMap extends KubeObject {
  readonly data?: Record<string, string>;
}

interface Event extends KubeObject {
  readonly count: number;
  readonly message: string;
  readonly reason: string;
}

interface Lease extends KubeObject {
  readonly spec: { readonly holderIdentity: string; readonly leaseTransitions: number };
}

const kind = (group: string, plural: string, kind: string, namespaced = true): ResourceType => {
  return { group, version: 'v1', plural, kind, namespaced };
};
const DEPLOYMENTS = kind('apps', 'deployments', 'Deployment');
const EVENTS = kind('', 'events', 'Event');
const NAMESPACES = kind('', 'namespaces', 'Namespace', false);
const SERVICE_ACCOUNTS = kind('', 'serviceaccounts', 'ServiceAccount');
const TEAM = 'team-a';

const named = (name: string): { metadata: { namespace: string; name: string } } => {
  return { metadata: { namespace: TEAM, name } };
};
const ref = (name: string): { namespace: string; name: string } => ({ namespace: TEAM, name });

describe('the client on a real API server', () => {
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

  it('the client creates, reads, lists, patches and deletes objects', async () => {
    const created = await client.create<ConfigMap>(CONFIG_MAPS, { ...named('one'), data: { a: '1' } }, NEVER_ABORTED);
    assert.ok(created.metadata.uid);
    const dry = await client.create(CONFIG_MAPS, named('dry'), NEVER_ABORTED, { dryRun: true });
    assert.ok(dry.metadata.uid);
    assert.equal(await client.get(CONFIG_MAPS, ref('dry'), NEVER_ABORTED), undefined);
    const patched = await client.patch<ConfigMap>(
      CONFIG_MAPS,
      ref('one'),
      { data: { a: null, b: '2' } },
      NEVER_ABORTED,
    );
    assert.deepEqual(patched.data, { b: '2' });
    const listed = await client.list<ConfigMap>(
      CONFIG_MAPS,
      { namespace: TEAM, fieldSelector: 'metadata.name=one' },
      NEVER_ABORTED,
    );
    assert.deepEqual(
      listed.map(({ metadata, data, ...type }) => [metadata.name, data, type]),
      [['one', { b: '2' }, { apiVersion: 'v1', kind: 'ConfigMap' }]],
    );
    assert.equal(await client.delete(CONFIG_MAPS, ref('one'), { uid: 'another' }, NEVER_ABORTED), false);
    assert.equal(await client.delete(CONFIG_MAPS, ref('one'), { uid: created.metadata.uid }, NEVER_ABORTED), true);
    assert.equal(await client.delete(CONFIG_MAPS, ref('one'), {}, NEVER_ABORTED), true);
    assert.equal(await client.get(CONFIG_MAPS, ref('one'), NEVER_ABORTED), undefined);
  });

  it('an error has status and reason of AlreadyExists, Conflict, Invalid and NotFound', async () => {
    const { metadata } = await client.create(CONFIG_MAPS, named('taken'), NEVER_ABORTED);
    await assert.rejects(client.create(CONFIG_MAPS, named('taken'), NEVER_ABORTED), {
      status: 409,
      reason: 'AlreadyExists',
    });
    const { resourceVersion } = metadata;
    await client.patch(CONFIG_MAPS, ref('taken'), { metadata: { resourceVersion }, data: { a: '1' } }, NEVER_ABORTED);
    const late = client.patch(
      CONFIG_MAPS,
      ref('taken'),
      { metadata: { resourceVersion }, data: { a: '2' } },
      NEVER_ABORTED,
    );
    await assert.rejects(late, { status: 409, reason: 'Conflict' });
    await assert.rejects(client.create(CONFIG_MAPS, named('Not A Name'), NEVER_ABORTED), {
      status: 422,
      reason: 'Invalid',
    });
    const nowhere = { metadata: { namespace: 'nowhere', name: 'x' } };
    await assert.rejects(client.create(CONFIG_MAPS, nowhere, NEVER_ABORTED), { status: 404, reason: 'NotFound' });
  });

  it('server-side apply respects field owners and does not write without a change', async () => {
    const apply = (manager: string, data: object, force = false): Promise<ConfigMap> =>
      client.apply<ConfigMap>(CONFIG_MAPS, { ...named('shared'), data }, { manager, force }, NEVER_ABORTED);
    const first = await apply('one', { a: '1' });
    assert.equal((await apply('one', { a: '1' })).metadata.resourceVersion, first.metadata.resourceVersion);
    assert.deepEqual((await apply('two', { b: '2' })).data, { a: '1', b: '2' });
    await assert.rejects(apply('two', { a: '9' }), { status: 409, reason: 'Conflict' });
    assert.deepEqual((await apply('two', { a: '9' }, true)).data, { a: '9' });
    assert.deepEqual((await apply('one', {})).data, { a: '9' });
  });

  it('applyStatus writes only the status', async () => {
    const selector = { matchLabels: { app: 'x' } };
    const template = { metadata: { labels: { app: 'x' } }, spec: { containers: [{ name: 'x', image: 'x' }] } };
    await client.apply(DEPLOYMENTS, { ...named('d'), spec: { selector, template } }, { manager: 'op' }, NEVER_ABORTED);
    const status = { ...named('d'), spec: { replicas: 7 }, status: { observedGeneration: 1 } };
    const applied = await client.applyStatus<KubeObject & { spec: { replicas: number }; status: object }>(
      DEPLOYMENTS,
      status,
      { manager: 'op-status' },
      NEVER_ABORTED,
    );
    assert.deepEqual(applied.status, { observedGeneration: 1 });
    assert.equal(applied.spec.replicas, 1);
  });

  it('the client creates tokens and checks its own access', async () => {
    await client.create(SERVICE_ACCOUNTS, named('robot'), NEVER_ABORTED);
    const request = { audiences: ['gate'], expirationSeconds: 600 };
    const { token, expirationTimestamp } = await client.createToken(ref('robot'), request, NEVER_ABORTED);
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as {
      aud: string[];
      sub: string;
    };
    assert.deepEqual([claims.aud, claims.sub], [['gate'], `system:serviceaccount:${TEAM}:robot`]);
    assert.ok(Date.parse(expirationTimestamp) > Date.now());
    assert.equal(
      await client.canI({ verb: 'delete', group: '', resource: 'pods', namespace: TEAM }, NEVER_ABORTED),
      true,
    );
  });

  it('the client rereads its credentials after a 401', async () => {
    await client.create(SERVICE_ACCOUNTS, named('visitor'), NEVER_ABORTED);
    const { token } = await client.createToken(
      ref('visitor'),
      { audiences: [], expirationSeconds: 600 },
      NEVER_ABORTED,
    );
    const folder = await mkdtemp(join(tmpdir(), 'temper-kubeconfig-'));
    const path = join(folder, 'config');
    const write = async (bearer: string): Promise<void> => {
      const config = JSON.parse(await readFile(plane.kubeconfig, 'utf8')) as {
        users: object[];
        contexts: { name: string }[];
      };
      config.users = [{ name: 'admin', user: { token: bearer } }];
      await writeFile(path, JSON.stringify(config));
    };
    await write('not.a.token');
    const access = await loadClusterAccess({ kind: 'file', path, context: 'test' }, systemClock);
    await using transport = createTransport({ access, clock: systemClock, metrics: fixture.metrics });
    const visitor = createKubeClient(transport);
    const ask = { verb: 'get', group: '', resource: 'secrets', namespace: TEAM };
    await assert.rejects(visitor.canI(ask, NEVER_ABORTED), { status: 401 });
    await write(token);
    assert.equal(await visitor.canI(ask, NEVER_ABORTED), false);
    const unknown = loadClusterAccess({ kind: 'file', path, context: 'nowhere' }, systemClock);
    await assert.rejects(
      unknown,
      (error) => isTemperError(error, 'TEMPER_KUBE_CONFIG') && error.message.includes('test'),
    );
    await rm(folder, { recursive: true });
    const missing = loadClusterAccess({ kind: 'file', path }, systemClock);
    await assert.rejects(missing, (error) => isTemperError(error, 'TEMPER_KUBE_CONFIG'));
  });

  it('the event recorder creates Events and counts repetitions', async () => {
    const { metrics, log } = fixture;
    const about = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...ref('about'), uid: 'u-about' } };
    const names = { component: 'tester', instance: 'tester-1' };
    {
      await using recorder = createEventRecorder({ client, clock: systemClock, log, metrics, ...names });
      for (let index = 0; index < 3; index += 1)
        recorder.record(about, { type: 'Warning', reason: 'Tried', message: 'no' });
      for (let index = 0; index < 12; index += 1) {
        recorder.record(about, { type: 'Normal', reason: 'Seen', message: `number ${index}` });
      }
    }
    const options = { namespace: TEAM, fieldSelector: 'involvedObject.uid=u-about,reason=Tried' };
    const tried = await client.list<Event>(EVENTS, options, NEVER_ABORTED);
    assert.deepEqual(
      tried.map(({ message, count }) => [message, count]),
      [['no', 3]],
    );
    const seen = await client.list<Event>(EVENTS, { ...options, fieldSelector: 'reason=Seen' }, NEVER_ABORTED);
    const combined = seen.filter(({ message }) => message.startsWith('(combined from similar events): '));
    assert.deepEqual([seen.length, combined.map(({ count }) => count)], [11, [2]]);
    assert.equal(metrics.counts['events_dropped_total{failed}'], 0);
  });

  const anElection = (identity: string, more: Partial<LeaderElectionOptions> = {}): LeaderElection => {
    const { metrics, log } = fixture;
    const where = { namespace: TEAM, name: 'leader' };
    const clock = systemClock;
    return new LeaderElection({ client, clock, log, metrics, random: Math.random, ...where, identity, ...more });
  };

  it('one process leads, and another takes over at once when the leader releases the lease', async (context) => {
    await using one = anElection('one');
    const observed = Promise.withResolvers<void>();
    const kube = createKubeClient(fixture.transport);
    const get: KubeClient['get'] = async (...call) => {
      const lease = await kube.get<never>(...call);
      observed.resolve();
      return lease;
    };
    await using two = anElection('two', { client: { ...kube, get } });
    one.start();
    await one.elected(NEVER_ABORTED);
    two.start();
    const guarded = createKubeClient(fixture.transport, { isLeader: () => two.isLeader() });
    await assert.rejects(guarded.create(CONFIG_MAPS, named('early'), NEVER_ABORTED), (error) =>
      isTemperError(error, 'TEMPER_NOT_LEADER'),
    );
    await observed.promise;
    const released = performance.now();
    await one[Symbol.asyncDispose]();
    await two.elected(AbortSignal.timeout(12_000));
    context.diagnostic(`clean handover in ${Math.round(performance.now() - released)} ms`);
    await guarded.create(CONFIG_MAPS, named('leading'), NEVER_ABORTED);
    const lease = await client.get<Lease>(LEASES, { namespace: TEAM, name: 'leader' }, NEVER_ABORTED);
    assert.deepEqual([lease?.spec.holderIdentity, lease?.spec.leaseTransitions], ['two', 1]);
  });

  it('another process takes over after the lease of a dead leader has expired', async (context) => {
    const times = { leaseDurationMs: 4_000, renewDeadlineMs: 3_000, retryPeriodMs: 1_000 };
    const mortal = await openKubeFixture(plane.kubeconfig);
    await using one = anElection('mortal', { ...times, client: createKubeClient(mortal.transport) });
    await using two = anElection('heir', times);
    one.start();
    await one.elected(NEVER_ABORTED);
    two.start();
    await mortal.transport[Symbol.asyncDispose]();
    const died = performance.now();
    await two.elected(AbortSignal.timeout(60_000));
    const took = performance.now() - died;
    assert.equal(one.isLeader(), false);
    assert.ok(isTemperError(one.lost.reason, 'TEMPER_LEADERSHIP_LOST'));
    assert.ok(took > times.leaseDurationMs - times.retryPeriodMs * 2, `taken over after ${took} ms`);
    context.diagnostic(`handover of a dead leader's lease of ${times.leaseDurationMs} ms in ${Math.round(took)} ms`);
    await two[Symbol.asyncDispose]();
    await pollValue(
      'the release of the lease',
      async () => (await client.get<Lease>(LEASES, ref('leader'), NEVER_ABORTED))?.spec.holderIdentity,
      (value) => value === '',
    );
  });
});
