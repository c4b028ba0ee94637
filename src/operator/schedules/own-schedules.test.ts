import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeClock } from '../../../test/support/clocks.ts';
import { NO_METRICS } from '../../../test/support/stubs.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { createRateLimiter } from '../../kube/controller/rate-limiter.ts';
import { WorkQueue } from '../../kube/controller/work-queue.ts';
import { Store } from '../../kube/informer/store.ts';
import type { OwnSchedule } from '../../schedule/agent-schedule.ts';
import { aPolicy, anAgent } from '../agent/observed.testing.ts';
import { Cache } from '../kube/cache.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import { ScheduleReconciler } from './reconcile.ts';
import { FakeScheduleStore } from './schedule-store.testing.ts';

const MINUTE = 60_000;
const START = '2026-03-02T08:00:00Z';
const CONTEXT = { signal: new AbortController().signal, log: {} as never };
const { uid, name, namespace } = anAgent().metadata;
const AGENT_KEY = `${namespace}/${name}`;

function own(members: Partial<OwnSchedule> = {}): OwnSchedule {
  return {
    id: 'own-1',
    name: 'report',
    times: '0 * * * *',
    timeZone: 'UTC',
    message: 'Report for {{time}}.',
    runsPerHour: 1,
    createdAt: START,
    ...members,
  };
}

function setUp(schedules: OwnSchedule[], store = new FakeScheduleStore(), clock = new FakeClock(START)) {
  const agents = new Store<StoredAgent>();
  const policies = new Store<StoredPolicy>();
  const agent = anAgent();
  const grants = { schedules: 50 };
  agents.replace([{ ...agent, spec: { ...agent.spec, grants } }]);
  policies.replace([aPolicy()]);
  const queue = (queueName: string) =>
    new WorkQueue({ name: queueName, clock, metrics: NO_METRICS, limiter: createRateLimiter(clock) });
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
  const change = (all: OwnSchedule[]) => store.change({ agent: { uid, name, namespace }, own: all });
  if (store.schedules === undefined) change(schedules);
  let version = 1;
  const limit = (limits: NonNullable<TrustPolicySpec['schedules']>, children = false) => {
    version += 1;
    const policy = aPolicy();
    const metadata = { ...policy.metadata, resourceVersion: String(version) };
    policies.replace([{ ...policy, metadata, spec: { ...policy.spec, schedules: limits } }]);
    const labels = children ? { 'temper.dev/parent-agent-uid': 'parent' } : {};
    const changed = { ...agent.metadata, resourceVersion: String(version), labels };
    agents.replace([{ ...agent, metadata: changed, spec: { ...agent.spec, grants } }]);
  };
  return {
    reconciler,
    store,
    clock,
    queues,
    change,
    limit,
    run: async (id = 'own-1') => {
      await reconciler.readChanges();
      return reconciler.reconcile(`${AGENT_KEY}/${id}`, CONTEXT);
    },
  };
}

describe('schedules that agents made', () => {
  it('a due schedule runs once per due time, in a session with its name, also after the next leader took over', async () => {
    const first = setUp([own()]);
    assert.deepEqual(await first.run(), { kind: 'requeueAfter', afterMs: 60 * MINUTE });
    first.clock.skip(60 * MINUTE);
    await first.run();
    const next = setUp([], first.store, first.clock);
    await next.run();
    assert.deepEqual(
      [...first.store.inbox],
      [['msg-own-1/2026-03-02T09:00:00.000Z', 'Report for 2026-03-02T09:00:00Z.']],
    );
    assert.equal(first.store.sends, 1);
    assert.equal(first.store.tainted.size, 0);
  });

  it('a change brings the key of the agent, and that one the keys of its schedules', async () => {
    const { reconciler, queues, change } = setUp([own()]);
    await reconciler.readChanges();
    const key = await queues.schedules.get();
    assert.equal(key?.key, AGENT_KEY);
    queues.schedules.done(AGENT_KEY);
    await reconciler.reconcile(AGENT_KEY, CONTEXT);
    assert.equal((await queues.schedules.get())?.key, `${AGENT_KEY}/own-1`);
    change([]);
    await reconciler.readChanges();
    assert.equal(queues.schedules.length, 1, 'that of the schedule is in work, and waits');
  });

  it('a schedule with one time runs and is removed when its run has ended', async () => {
    const { reconciler, store, clock, run } = setUp([own({ times: '2026-03-02T08:30:00Z' })]);
    await run();
    clock.skip(30 * MINUTE);
    await run();
    assert.equal(store.schedules?.own.length, 1);
    reconciler.onEnd(store.finish('msg-own-1/2026-03-02T08:30:00.000Z', 'completed', clock.now().getTime()));
    assert.deepEqual(await run(), { kind: 'done' });
    assert.deepEqual(store.schedules?.own, []);
    assert.deepEqual(await run(), { kind: 'done' });
    assert.equal(store.states.size, 0);
  });

  it('a time that passed before the leader read the schedule runs late, within an hour', async () => {
    for (const [minutes, sends] of [
      [50, 1],
      [91, 0],
    ] as const) {
      const { store, clock, run } = setUp([own({ times: '2026-03-02T08:30:00Z' })]);
      clock.skip(minutes * MINUTE);
      await run();
      assert.equal(store.sends, sends, `${minutes} minutes after it was made`);
    }
  });

  it('the message of a schedule that a tainted session made is tainted', async () => {
    const { store, clock, run } = setUp([own({ tainted: true })]);
    await run();
    clock.skip(60 * MINUTE);
    await run();
    assert.deepEqual([...store.tainted], ['msg-own-1/2026-03-02T09:00:00.000Z']);
  });

  it('schedules beyond the limits of the policy start no runs, the newest first, and run again within them', async () => {
    const { store, clock, run, limit } = setUp([own(), own({ id: 'own-2', name: 'second' })]);
    const hour = async () => {
      clock.skip(60 * MINUTE);
      await run('own-1');
      await run('own-2');
      const sent = [...store.inbox.keys()].map((key) => key.slice(4, 9)).toSorted();
      for (const message of store.inbox.keys()) store.finish(message, 'completed', clock.now().getTime());
      return sent;
    };
    await run('own-1');
    await run('own-2');
    assert.deepEqual(await hour(), ['own-1', 'own-2']);
    limit({ runsPerHour: 1 });
    await run('own-1');
    await run('own-2');
    clock.skip(65 * MINUTE);
    await run('own-1');
    assert.deepEqual(await hour(), ['own-1']);
    limit({ perAgent: 0 });
    assert.deepEqual(await hour(), []);
    limit({}, true);
    assert.deepEqual(await hour(), [], 'a child agent');
  });

  it('a paused schedule starts no runs, and catches nothing up when it is resumed', async () => {
    const { store, clock, run, change } = setUp([own()]);
    await run();
    change([own({ pause: { by: 'ada', reason: 'holidays', since: START } })]);
    clock.skip(150 * MINUTE);
    await run();
    assert.equal(store.sends, 0);
    change([own({ resumed: 1 })]);
    await run();
    assert.equal(store.sends, 0);
    clock.skip(30 * MINUTE);
    await run();
    assert.equal(store.sends, 1);
  });

  it('a deleted schedule starts no run, and leaves no state', async () => {
    const { store, clock, run, change } = setUp([own()]);
    await run();
    change([]);
    clock.skip(60 * MINUTE);
    assert.deepEqual(await run(), { kind: 'done' });
    assert.deepEqual([store.sends, store.states.size], [0, 0]);
  });
});
