import assert from 'node:assert/strict';
import { it } from 'node:test';
import { OPERATOR_CONFIG } from '../../test/support/operator/start-operator.ts';
import { NO_METRICS } from '../../test/support/stubs.ts';
import { createRateLimiter } from '../kube/controller/rate-limiter.ts';
import { WorkQueue } from '../kube/controller/work-queue.ts';
import { Store } from '../kube/informer/store.ts';
import { FakeClock } from '../lib/fake-clock.testing.ts';
import { anAgent } from './agent/observed.testing.ts';
import { addIndexes } from './agent/observe.ts';
import { type Queues, isActiveNamespace, requeueAllNamespaces, requeueNamespace } from './event-routes.ts';
import { Cache } from './kube/cache.ts';
import type { Pod, StoredAgent } from './kube/types.ts';

function agentIn(namespace: string, name: string): StoredAgent {
  const { metadata, ...agent } = anAgent();
  return { ...agent, metadata: { ...metadata, namespace, name, uid: `u-${namespace}-${name}` } };
}

function queuesOf(): Queues {
  const clock = new FakeClock();
  const queue = (name: string) =>
    new WorkQueue({ name, clock, metrics: NO_METRICS, limiter: createRateLimiter(clock), random: () => 0 } as never);
  return {
    agents: queue('a'),
    policies: queue('p'),
    pools: queue('o'),
    namespaces: queue('n'),
    promotions: queue('m'),
    verifiers: queue('v'),
    schedules: queue('s'),
  };
}

async function keysOf(queue: WorkQueue): Promise<string[]> {
  queue.shutDown();
  const keys: string[] = [];
  for (let item = await queue.get(); item !== undefined; item = await queue.get()) {
    keys.push(item.key);
    queue.done(item.key);
  }
  return keys.sort();
}

function cacheOf(...stored: StoredAgent[]) {
  const store = new Store<StoredAgent>();
  const agents = new Cache([store]);
  addIndexes(agents, new Cache([new Store<Pod>()]));
  store.replace(stored);
  let lists = 0;
  const list = agents.list.bind(agents);
  agents.list = () => ((lists += 1), list());
  return { agents, lists: () => lists };
}

it('the requeue of a namespace reads and adds only its own agents', async () => {
  const { agents, lists } = cacheOf(agentIn('team-a', 'one'), agentIn('team-a', 'two'), agentIn('team-b', 'three'));
  const queues = queuesOf();
  requeueNamespace({ agents, queues }, 'team-a');
  const pool = [{ namespace: 'pooled', size: 1 }];
  const config = { sandboxClasses: OPERATOR_CONFIG.sandboxClasses.map((one) => ({ ...one, pool })) };
  const active = ['team-a', 'pooled', 'empty'].map((namespace) => isActiveNamespace({ config, agents }, namespace));
  assert.deepEqual(active, [true, true, false]);
  assert.equal(lists(), 0);
  assert.deepEqual(await keysOf(queues.agents), ['team-a/one', 'team-a/two']);
  assert.deepEqual(await keysOf(queues.namespaces), ['team-a']);
});

it('the requeue of all namespaces reads the agents of the cluster once, however many namespaces there are', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `team-${index}`);
  const { agents, lists } = cacheOf(...names.map((namespace) => agentIn(namespace, 'one')));
  const queues = queuesOf();
  requeueAllNamespaces({ config: OPERATOR_CONFIG, agents, queues });
  assert.equal(lists(), 1);
  assert.equal((await keysOf(queues.agents)).length, 20);
  assert.equal((await keysOf(queues.namespaces)).length, 20);
});
