import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeClock } from '../../../test/support/clocks.ts';
import { NO_METRICS } from '../../../test/support/stubs.ts';
import { LABELS } from '../../api/cluster.ts';
import type { PublishedEvent } from '../../events/event.ts';
import type { ObservedRecord } from '../../events/platform/observed-object.ts';
import { createRateLimiter } from '../../kube/controller/rate-limiter.ts';
import { WorkQueue } from '../../kube/controller/work-queue.ts';
import { Store } from '../../kube/informer/store.ts';
import { TemperError } from '../../lib/errors.ts';
import { anAgent } from '../agent/observed.testing.ts';
import type { StoredRequest } from '../approval/stored-decision.ts';
import { Cache } from '../kube/cache.ts';
import type { StoredAgent } from '../kube/types.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import type { PlatformEventStore } from './ports.ts';
import { addListenerIndex } from './listeners.ts';
import { goneKey, PlatformEventReconciler } from './reconcile.ts';

const START = '2026-03-02T08:00:00Z';

/** NATS as operators see it; they come and go. */
class FakeStore implements PlatformEventStore {
  readonly records = new Map<string, { record: ObservedRecord; revision: number }>();
  readonly announced: PublishedEvent[] = [];
  revision = 0;
  /** Called before each write. */
  beforeWrite = (): void => undefined;

  read = async (uid: string) => this.records.get(uid) ?? { record: undefined, revision: 0 };

  async write(record: ObservedRecord, revision: number) {
    this.beforeWrite();
    const { uid } = record.object;
    if ((this.records.get(uid)?.revision ?? 0) !== revision) return undefined;
    this.revision += 1;
    this.records.set(uid, { record, revision: this.revision });
    return this.revision;
  }

  remove = async (uid: string) => void this.records.delete(uid);
  subscriptions: string[] = ['temper.>'];
  reads = 0;
  subscribed = async () => {
    this.reads += 1;
    return this.subscriptions;
  };
  all = async () => [...this.records.values()].map(({ record }) => record);
  announce = async (_owner: object, event: PublishedEvent) => void this.announced.push(event);

  /** Each event once, as the ids tell them apart: `subject reason-or-decision`. */
  get events(): string[] {
    const byId = new Map(this.announced.map((event) => [event.id, event]));
    return [...byId.values()].map(({ subject, data }) => {
      const { reason, decision, child } = data as Record<string, string>;
      return [subject.slice('temper.'.length), reason ?? decision ?? child]
        .filter((text) => text !== undefined)
        .join(' ');
    });
  }
}

function condition(type: string, status: 'True' | 'False', reason: string) {
  return { type, status, reason, message: '', lastTransitionTime: START, observedGeneration: 1 } as const;
}

function setUp(store = new FakeStore(), clock = new FakeClock(START), namespaces?: string[]) {
  const stores = {
    agents: new Store<StoredAgent>(),
    tools: new Store<StoredTool>(),
    requests: new Store<StoredRequest>(),
  };
  const agents = new Cache([stores.agents]);
  agents.addIndex('uid', ({ metadata }) => [metadata.uid]);
  addListenerIndex(agents);
  const queue = new WorkQueue({
    name: 'platformEvents',
    clock,
    metrics: NO_METRICS,
    limiter: createRateLimiter(clock),
  });
  const caches = { agents, tools: new Cache([stores.tools]), requests: new Cache([stores.requests]) };
  const reconciler = new PlatformEventReconciler({ ...caches, store, clock, queue, namespaces });
  let version = 1;
  const next = () => String((version += 1));
  const { namespace, name } = anAgent().metadata;
  return {
    store,
    clock,
    queue,
    reconciler,
    agent: (conditions: object[], metadata: object = {}) => {
      const agent = anAgent({}, { conditions } as never);
      const changed = { ...agent.metadata, creationTimestamp: START, ...metadata, resourceVersion: next() };
      stores.agents.set({ ...agent, metadata: changed });
      return reconciler.reconcile(`Agent/${namespace}/${changed.name}`);
    },
    /** An agent with a trigger on this subject. */
    listener: (subject: string, ofNamespace: string = namespace) => {
      const triggers = [{ name: 't', subject, message: 'x' }];
      const agent = anAgent({ schedule: { mode: 'Proactive', triggers } });
      const metadata = { ...agent.metadata, namespace: ofNamespace, name: 'listener', uid: 'u-listener' };
      stores.agents.set({ ...agent, metadata: { ...metadata, resourceVersion: next() } });
    },
    tool: (tier: string, active: object) => {
      const metadata = {
        name: 't-1',
        namespace,
        uid: 'u-tool',
        resourceVersion: next(),
        generation: 1,
        creationTimestamp: START,
      };
      const facts = { tool: 'double', digest: 'sha256:0', tier, agent: tier === 'Agent' ? name : undefined };
      stores.tools.replace([{ metadata, facts, status: { conditions: [active] } } as unknown as StoredTool]);
      return reconciler.reconcile(`EmergentTool/${namespace}/t-1`);
    },
    request: (decision?: string) => {
      const metadata = {
        name: 'r-1',
        namespace,
        uid: 'u-request',
        resourceVersion: next(),
        generation: 1,
        creationTimestamp: START,
      };
      const spec = { type: 'ToolCall', agent: { name, uid: 'u-agent' } };
      const status = decision === undefined ? {} : { decision };
      stores.requests.replace([{ metadata, spec, status } as unknown as StoredRequest]);
      return reconciler.reconcile(`ApprovalRequest/${namespace}/r-1`);
    },
    leave: () => stores.agents.replace([]),
  };
}

const RUNNING = condition('Ready', 'True', 'Running');
const STARTING = condition('Ready', 'False', 'Starting');
const CRASHING = condition('Ready', 'False', 'PodCrashLooping');
const SUSPENDED = condition('Active', 'False', 'Suspended');
const { uid } = anAgent().metadata;

describe('events of objects', () => {
  it('the states of an agent are events, and its start and its idle time are none', async () => {
    const { store, agent } = setUp();
    await agent([STARTING]);
    assert.deepEqual(store.events, []);
    await agent([RUNNING]);
    await agent([condition('Ready', 'True', 'Idle')]);
    await agent([STARTING]);
    await agent([RUNNING]);
    await agent([CRASHING]);
    await agent([RUNNING, SUSPENDED]);
    await agent([RUNNING]);
    assert.deepEqual(store.events, [
      'agent.running Running',
      'agent.not-ready PodCrashLooping',
      'agent.suspended Suspended',
      'agent.running Running',
    ]);
    assert.equal(new Set(store.announced.map(({ id }) => id)).size, store.announced.length);
  });

  it('a quota that is nearly used and exhausted is two events, and a new window makes the next ones', async () => {
    const { store, agent } = setUp();
    const budget = (status: 'True' | 'False', reason: string) => agent([condition('BudgetAvailable', status, reason)]);
    await budget('True', 'WithinBudget');
    await budget('True', 'QuotaNearlyUsed');
    await budget('False', 'TokenQuotaExceeded');
    await budget('True', 'WithinBudget');
    await budget('True', 'QuotaNearlyUsed');
    assert.deepEqual(store.events, [
      'quota.nearly-used QuotaNearlyUsed',
      'quota.exhausted TokenQuotaExceeded',
      'quota.nearly-used QuotaNearlyUsed',
    ]);
  });

  it('a tool is promoted, shared, demoted and revoked, and one that never was in service is not demoted', async () => {
    const active = (status: 'True' | 'False', reason: string) => condition('Active', status, reason);
    const { store, tool } = setUp();
    await tool('Agent', active('False', 'VerificationFailed'));
    await tool('Agent', active('True', 'Verified'));
    await tool('Agent', active('False', 'Promoted'));
    await tool('Agent', active('True', 'Verified'));
    await tool('Agent', active('False', 'Inactive'));
    await tool('Shared', active('True', 'Approved'));
    await tool('Shared', active('False', 'Revoked'));
    assert.deepEqual(store.events, [
      'tool.promoted Verified',
      'tool.demoted Inactive',
      'tool.shared Approved',
      'tool.revoked Revoked',
    ]);
  });

  it('a request for an approval and its decision are events', async () => {
    const { store, request } = setUp();
    await request();
    await request();
    await request('Deny');
    assert.deepEqual(store.events, ['approval.requested', 'approval.decided Deny']);
  });

  it('an agent that is gone is terminated once, also when no leader saw it leave, and its parent gets an event', async () => {
    const { store, agent, leave, reconciler, queue, clock } = setUp();
    await agent([RUNNING], { labels: { [LABELS.parentAgent]: uid } });
    leave();
    await reconciler.reconcile(goneKey(uid));
    await reconciler.reconcile(goneKey(uid));
    const ended = ['agent.running Running', 'agent.terminated', `child.ended ${anAgent().metadata.name}`];
    assert.deepEqual(store.events, ended);
    assert.equal(store.records.size, 0);

    const other = setUp(store, clock);
    await other.agent([RUNNING], { uid: 'u-2' });
    const next = setUp(store, clock);
    await next.reconciler.findGone();
    const key = await next.queue.get();
    await next.reconciler.reconcile(key?.key ?? '');
    assert.deepEqual(store.events.slice(-2), ['agent.running Running', 'agent.terminated']);
    assert.equal(queue.length, 0);
  });

  it('an agent of a namespace that the operator does not watch any more is not terminated', async () => {
    const first = setUp();
    await first.agent([RUNNING]);
    const next = setUp(first.store, first.clock, ['another']);
    await next.reconciler.findGone();
    assert.equal(next.queue.length, 0);
  });

  it('the changes of agents are announced only where a trigger or a subscription waits for them', async () => {
    const { store, agent, listener, leave, reconciler } = setUp();
    store.subscriptions = ['temper.message.*', 'orders.>'];
    await agent([RUNNING]);
    await agent([CRASHING]);
    assert.deepEqual(store.events, []);
    store.subscriptions = ['temper.*.running'];
    await agent([RUNNING]);
    store.subscriptions = [];
    listener('temper.agent.*', 'another');
    await agent([CRASHING]);
    leave();
    listener('temper.agent.terminated');
    await reconciler.reconcile(goneKey(uid));
    assert.deepEqual(store.events, ['agent.running Running', 'agent.terminated']);
    assert.equal(store.records.size, 0, 'a record is written and removed all the same');
  });

  it('the changes of tools and approvals are always announced: a trigger may arrive after them', async () => {
    const { store, tool, request } = setUp();
    store.subscriptions = [];
    await tool('Agent', condition('Active', 'True', 'Verified'));
    await request();
    assert.deepEqual(store.events, ['tool.promoted Verified', 'approval.requested']);
    assert.equal(store.reads, 0);
  });

  it('a leader that ends before it wrote its record repeats the event under its id, and none is lost', async () => {
    const first = setUp();
    const { store, clock } = first;
    store.beforeWrite = () => {
      throw new TemperError('TEMPER_BUS_UNAVAILABLE', 'the leader ends here');
    };
    assert.deepEqual(await first.agent([RUNNING]), { kind: 'requeueAfter', afterMs: 1_000 });
    store.beforeWrite = () => undefined;
    clock.skip(20_000);
    const next = setUp(store, clock);
    await next.agent([RUNNING]);
    assert.equal(store.announced.length, 2);
    assert.deepEqual(store.events, ['agent.running Running']);

    store.beforeWrite = () => {
      throw new TemperError('TEMPER_BUS_UNAVAILABLE', 'the leader ends here');
    };
    await next.agent([CRASHING]);
    store.beforeWrite = () => undefined;
    await setUp(store, clock).agent([condition('Ready', 'False', 'ImagePullFailed')]);
    assert.deepEqual(store.events.slice(1), ['agent.not-ready PodCrashLooping', 'agent.not-ready ImagePullFailed']);
  });

  it('two leaders of one moment announce one event, and the later one goes on from the record of the other', async () => {
    const one = setUp();
    const two = setUp(one.store, one.clock);
    await one.agent([RUNNING]);
    await two.agent([RUNNING]);
    await one.agent([CRASHING]);
    assert.deepEqual(await two.agent([CRASHING]), { kind: 'requeueAfter', afterMs: 0 });
    await two.agent([CRASHING]);
    assert.deepEqual(one.store.events, ['agent.running Running', 'agent.not-ready PodCrashLooping']);
  });

  it('the first start of an operator repeats nothing of objects that are older than an hour', async () => {
    const { store, clock, agent } = setUp();
    clock.skip(3_700_000);
    await agent([RUNNING]);
    assert.deepEqual(store.events, []);
    await agent([CRASHING]);
    assert.deepEqual(store.events, ['agent.not-ready PodCrashLooping']);
  });
});
