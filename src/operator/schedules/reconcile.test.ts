import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeClock } from '../../../test/support/clocks.ts';
import { NO_METRICS } from '../../../test/support/stubs.ts';
import { createRateLimiter } from '../../kube/controller/rate-limiter.ts';
import { WorkQueue } from '../../kube/controller/work-queue.ts';
import { Store } from '../../kube/informer/store.ts';
import { TemperError } from '../../lib/errors.ts';
import type { AgentSchedule } from '../../api/v1alpha1/schedule/spec.ts';
import { aPolicy, anAgent } from '../agent/observed.testing.ts';
import { Cache } from '../kube/cache.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import { ScheduleReconciler } from './reconcile.ts';
import { FakeScheduleStore as FakeStore } from './schedule-store.testing.ts';

const MINUTE = 60_000;
const START = Date.parse('2026-03-02T08:00:00Z');
const CONTEXT = { signal: new AbortController().signal, log: {} as never };
const hourly: AgentSchedule = { mode: 'Periodic', cron: '0 * * * *', message: 'Report for {{time}}.' };

interface Setup {
  schedule?: AgentSchedule | undefined;
  store?: FakeStore;
  clock?: FakeClock;
  change?: Partial<StoredAgent>;
}

function setUp({ schedule = hourly, store = new FakeStore(), clock = clockAt(START), change }: Setup = {}) {
  const base = anAgent();
  const agents = new Store<StoredAgent>();
  const policies = new Store<StoredPolicy>();
  const agent: StoredAgent = { ...base, ...change, spec: { ...base.spec, schedule } };
  agents.replace([agent]);
  policies.replace([aPolicy()]);
  const queue = (name: string) =>
    new WorkQueue({ name, clock, metrics: NO_METRICS, limiter: createRateLimiter(clock) });
  const queues = { agents: queue('agents'), schedules: queue('schedules') };
  const cache = new Cache([agents]);
  cache.addIndex('uid', ({ metadata }) => [metadata.uid]);
  const reconciler = new ScheduleReconciler({
    store,
    clock,
    agents: cache,
    policies: new Cache([policies]),
    validation: { specError: () => undefined },
    queues,
    starts: { begin: () => undefined },
    metrics: undefined,
  });
  const key = `${agent.metadata.namespace}/${agent.metadata.name}`;
  let version = 1;
  const change_ = (spec: Partial<StoredAgent['spec']>, generation = 2) => {
    version += 1;
    const metadata = { ...agent.metadata, generation, resourceVersion: String(version) };
    agents.replace([{ ...agent, metadata, spec: { ...agent.spec, ...spec } }]);
  };
  const reconcile = async () => {
    await reconciler.readChanges();
    return reconciler.reconcile(key, CONTEXT);
  };
  return { reconciler, store, clock, queues, key, change: change_, reconcile };
}

function clockAt(time: number): FakeClock {
  return new FakeClock(new Date(time).toISOString());
}

describe('ScheduleReconciler', () => {
  it('a schedule is reconciled again at its next due time', async () => {
    const { reconcile, store } = setUp();
    assert.deepEqual(await reconcile(), { kind: 'requeueAfter', afterMs: 60 * MINUTE });
    assert.equal(store.sends, 0);
  });

  it('a new leader starts no run before it has read what users paused, and looks at every schedule then', async () => {
    const { reconcile, store, clock } = setUp();
    await reconcile();
    const { uid, name, namespace } = anAgent().metadata;
    const pause = { by: 'ada', reason: 'holidays', since: new Date(START).toISOString() };
    store.change({ agent: { uid, name, namespace }, own: [], spec: { pause } });
    clock.skip(61 * MINUTE);
    const next = setUp({ store, clock });
    assert.deepEqual(await next.reconciler.reconcile(next.key, CONTEXT), { kind: 'done' });
    assert.deepEqual([store.sends, next.queues.schedules.length], [0, 0]);
    const { revision } = store;
    store.revision = () => Promise.reject(new TemperError('TEMPER_BUS_UNAVAILABLE', 'away'));
    assert.equal(await next.reconciler.readChanges(), 1_000, 'it reads again soon');
    assert.deepEqual(await next.reconciler.reconcile(next.key, CONTEXT), { kind: 'done' });
    store.revision = revision;
    await next.reconciler.readChanges();
    assert.equal((await next.queues.schedules.get())?.key, next.key);
    await next.reconciler.reconcile(next.key, CONTEXT);
    assert.equal(store.sends, 0);
  });

  it('a run is stored before its message is sent, and takes two writes until its end is known', async () => {
    const { reconcile, store, clock, reconciler } = setUp();
    await reconcile();
    clock.skip(60 * MINUTE);
    store.beforeSend = () => assert.equal(store.state?.active?.due, START + 60 * MINUTE);
    await reconcile();
    assert.deepEqual([...store.inbox.values()], ['Report for 2026-03-02T09:00:00Z.']);
    const before = store.writes;
    reconciler.onEnd(store.finish('msg-2026-03-02T09:00:00.000Z', 'completed', START + 61 * MINUTE));
    await reconcile();
    assert.equal(store.writes, before + 1);
    assert.equal(store.state?.lastSuccess, START + 61 * MINUTE);
    assert.equal(store.state?.active, undefined);
  });

  it('a persistent schedule starts its next run after the end of the last one, and waits without writes meanwhile', async () => {
    const { reconcile, store, clock, reconciler } = setUp({
      schedule: { mode: 'Continuous', persistent: true, message: 'Go on.' },
    });
    assert.equal((await reconcile()).kind, 'requeueAfter');
    assert.equal(store.sends, 1);
    const before = store.writes;
    clock.skip(10 * MINUTE);
    await reconcile();
    assert.deepEqual([store.sends, store.writes], [1, before]);
    reconciler.onEnd(store.finish('msg-2026-03-02T08:00:00.000Z', 'failed', START + 10 * MINUTE));
    assert.deepEqual(await reconcile(), { kind: 'requeueAfter', afterMs: 1_000 });
    clock.skip(1_000);
    await reconcile();
    assert.equal(store.sends, 2);
    assert.equal(store.state?.active?.due, START + 10 * MINUTE + 1_000);
  });

  it('the next leader sends the message that a leader stored and did not send', async () => {
    const first = setUp();
    await first.reconcile();
    first.clock.skip(60 * MINUTE);
    first.store.beforeSend = () => {
      throw new TemperError('TEMPER_BUS_UNAVAILABLE', 'the leader ends here');
    };
    assert.deepEqual(await first.reconcile(), { kind: 'requeueAfter', afterMs: 1_000 });
    assert.equal(first.store.inbox.size, 0);
    first.store.beforeSend = () => undefined;
    const { store, clock } = first;
    clock.skip(20_000);
    const next = setUp({ store, clock });
    await next.reconcile();
    assert.deepEqual([...store.inbox.keys()], ['msg-2026-03-02T09:00:00.000Z']);
    await next.reconcile();
    assert.equal(store.sends, 1);
  });

  it('the next leader does not send a message that is in the inbox, or that ended', async () => {
    const first = setUp();
    await first.reconcile();
    first.clock.skip(60 * MINUTE);
    await first.reconcile();
    const { store, clock } = first;
    const next = setUp({ store, clock });
    await next.reconcile();
    assert.equal(store.sends, 1);
    store.finish('msg-2026-03-02T09:00:00.000Z', 'failed', clock.now().getTime());
    await setUp({ store, clock }).reconcile();
    assert.equal(store.sends, 1);
    assert.equal(store.state?.failures, 1);
  });

  it('one of two leaders sends the message of a run', async () => {
    const first = setUp();
    const { store, clock } = first;
    const second = setUp({ store, clock });
    await first.reconcile();
    await second.reconcile();
    clock.skip(60 * MINUTE);
    await Promise.all([first.reconcile(), second.reconcile()]);
    assert.equal(store.sends, 1);
  });

  it('a message that NATS lost ends its run, and the next due time runs', async () => {
    const { reconcile, store, clock } = setUp({ schedule: { ...hourly, startingDeadlineSeconds: 60 } });
    await reconcile();
    clock.skip(60 * MINUTE);
    await reconcile();
    store.inbox.clear();
    clock.skip(66 * MINUTE);
    await reconcile();
    assert.equal(store.state?.active, undefined);
    clock.skip(54 * MINUTE);
    await reconcile();
    assert.deepEqual([...store.inbox.keys()], ['msg-2026-03-02T11:00:00.000Z']);
  });

  it('a suspended agent and an agent that gets no pod start no runs', async () => {
    const stalled = { type: 'Stalled', status: 'True', reason: 'GrantDenied', message: '', lastTransitionTime: '' };
    for (const schedule of [setUp(), setUp({ change: { status: { conditions: [stalled as never] } } })]) {
      if (schedule.store.sends === 0) schedule.change({ ...anAgent().spec, schedule: hourly, suspend: true }, 1);
      await schedule.reconcile();
      schedule.clock.skip(60 * MINUTE);
      await schedule.reconcile();
      assert.equal(schedule.store.sends, 0);
    }
  });

  it('a schedule that comes back to the spec does not catch up', async () => {
    const { reconcile, store, clock, change } = setUp();
    await reconcile();
    change({ schedule: { mode: 'Reactive' } }, 2);
    assert.deepEqual(await reconcile(), { kind: 'done' });
    clock.skip(70 * MINUTE);
    change({ schedule: hourly }, 3);
    await reconcile();
    assert.equal(store.sends, 0);
    assert.equal(store.state?.next, START + 120 * MINUTE);
  });

  it('the status of the agent is written at once for a new schedule, and for five failures', async () => {
    const { reconcile, store, clock, queues, reconciler } = setUp();
    await reconcile();
    assert.equal(queues.agents.length, 1);
    const run = await queues.agents.get();
    queues.agents.done(run?.key ?? '');
    for (let hour = 1; hour <= 5; hour += 1) {
      clock.skip(60 * MINUTE);
      await reconcile();
      const message = store.state?.active?.message ?? '';
      const wake = await queues.agents.get();
      queues.agents.done(wake?.key ?? '');
      reconciler.onEnd(store.finish(message, 'failed', clock.now().getTime()));
      await reconcile();
    }
    assert.equal(queues.agents.length, 1);
  });
});
