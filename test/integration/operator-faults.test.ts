import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { NAMESPACE_OBJECTS } from '../../src/api/cluster.ts';
import { ApiError, type ResourceType } from '../../src/kube/client.ts';
import type { Transport } from '../../src/kube/transport.ts';
import { type PlainObject, type Pod, type StoredAgent, TYPES } from '../../src/operator/kube-types.ts';
import {
  CONFIG,
  type World,
  agentOf,
  eventually,
  isWriteRequest,
  policyOf,
  readyReason,
  startOperator,
  startWorld,
} from './operator-world.ts';

const never = new AbortController().signal;
const isRunning = (agent: StoredAgent) => readyReason(agent) === 'Running';
/** More writes than an agent's life has; the loop ends where an operator was not killed any more. */
const MOST_WRITES = 40;

/** Dies before or after its k-th write: what it did until then is all it did. */
function mortal(
  transport: Transport,
  k: number,
  when: 'before' | 'after',
  die: () => void,
): { transport: Transport; died: () => boolean } {
  let writes = 0;
  let dead = false;
  const gone = () => new Error('the process is dead');
  return {
    died: () => dead,
    transport: {
      ...transport,
      open: (request, signal) => (dead ? Promise.reject(gone()) : transport.open(request, signal)),
      async send(request, signal) {
        if (dead) throw gone();
        if (!isWriteRequest(request)) return transport.send(request, signal);
        writes += 1;
        if (writes < k) return transport.send(request, signal);
        dead = true;
        if (when === 'after') await transport.send(request, signal);
        die();
        throw gone();
      },
    },
  };
}

/** Everything of the namespace that the operator makes, without what differs from one life to the next. */
async function remains(world: World, namespace: string): Promise<unknown> {
  const list = (type: ResourceType) => world.client.list<PlainObject>(type, { namespace }, never);
  const ours = Object.values(NAMESPACE_OBJECTS) as string[];
  const children = await Promise.all(
    [TYPES.networkPolicies, TYPES.resourceQuotas, TYPES.serviceAccounts, TYPES.configMaps].map(list),
  );
  const kept = children
    .flat()
    .filter(({ metadata }) => ours.includes(metadata.name))
    .map(({ metadata, spec, data }) => ({ name: metadata.name, labels: metadata.labels, spec, data }));
  const pods = (await world.pods(namespace)).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const agent = await world.agent(namespace, 'mortal');
  const { conditions = [], pod, ...status } = agent.status ?? {};
  return JSON.parse(
    JSON.stringify({
      kept,
      pods: pods.map((found) => ({
        isBound: found.metadata.uid === pod?.uid,
        labels: Object.keys(found.metadata.labels ?? {}),
      })),
      status,
      conditions: conditions.map(({ type, status: value, reason }) => [type, value, reason]),
    }).replaceAll(namespace, 'NAMESPACE'),
  );
}

describe('an operator that is killed, refused or contradicted', () => {
  let world: World;

  before(async () => {
    world = await startWorld();
  });

  after(async () => {
    await world?.[Symbol.asyncDispose]();
  });

  /** An agent is made, runs, is suspended and resumes, whoever dies meanwhile. */
  const life = async (namespace: string) => {
    await world.agentWith(namespace, 'mortal', 'runs', isRunning);
    const ref = { namespace, name: 'mortal' };
    await world.client.patch(TYPES.agents, ref, { spec: { suspend: true } }, never);
    await world.agentWith(namespace, 'mortal', 'is suspended', (agent) => readyReason(agent) === 'Suspended');
    await world.client.patch(TYPES.agents, ref, { spec: { suspend: false } }, never);
    await world.agentWith(namespace, 'mortal', 'runs again', isRunning);
    await eventually(
      () => world.pods(namespace),
      (pods) => pods.length === 1,
      'one pod',
    );
  };

  const begin = async (namespace: string) => {
    await world.namespace(namespace);
    await world.apply(policyOf(namespace, { quotas: { agents: 10 } }));
    await world.apply(agentOf(namespace, 'mortal'));
  };

  /** Never more pods than agents. */
  const watchPods = (namespace: string) => {
    const most = { pods: 0 };
    const stopping = new AbortController();
    const watching = (async () => {
      while (!stopping.signal.aborted) {
        const pods = await world.client.list<Pod>(TYPES.pods, { namespace }, never);
        const alive = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
        most.pods = Math.max(most.pods, alive.length);
      }
    })();
    return {
      async most() {
        stopping.abort();
        await watching;
        return most.pods;
      },
    };
  };

  for (const when of ['before', 'after'] as const) {
    it(`leaves the same objects when it is killed ${when} any one of its writes`, async () => {
      await begin(`calm-${when}`);
      const calm = await startOperator(world);
      await life(`calm-${when}`);
      await calm.stop();
      const expected = await remains(world, `calm-${when}`);
      let kills = 0;
      for (let k = 1; k <= MOST_WRITES; k += 1) {
        const namespace = `killed-${when}-${k}`;
        await begin(namespace);
        const watched = watchPods(namespace);
        let died = () => false;
        // Only this namespace is new to it, so its writes are those of this life.
        const config = { ...CONFIG, namespaces: [namespace] };
        const first = await startOperator(world, config, {
          wrap: (transport, die) => {
            const wrapped = mortal(transport, k, when, die);
            died = wrapped.died;
            return wrapped.transport;
          },
        });
        let second: Awaited<ReturnType<typeof startOperator>> | undefined;
        const replaced = (async () => {
          await first.ended;
          if (died()) second = await startOperator(world, config);
        })();
        await life(namespace);
        const wasKilled = died();
        await first.stop();
        await replaced;
        await second?.stop();
        assert.equal(await watched.most(), 1, `write ${k}`);
        assert.deepEqual(await remains(world, namespace), expected, `write ${k}`);
        if (!wasKilled) break;
        kills += 1;
      }
      assert.ok(kills >= 10 && kills < MOST_WRITES, `${kills} kills`);
    });
  }

  for (const [what, status, reason] of [
    ['conflicts', 409, 'Conflict'],
    ['too many requests', 429, 'TooManyRequests'],
    ['failures of the server', 500, 'InternalError'],
  ] as const) {
    it(`comes to the same end through ${what}`, async () => {
      const namespace = `faults-${status}`;
      await begin(namespace);
      const watched = watchPods(namespace);
      let writes = 0;
      let refused = 0;
      const operator = await startOperator(
        world,
        { ...CONFIG, namespaces: [namespace] },
        {
          wrap: (transport) => ({
            ...transport,
            async send(request, signal) {
              if (!isWriteRequest(request)) return transport.send(request, signal);
              writes += 1;
              if (!isUnlucky(writes)) return transport.send(request, signal);
              refused += 1;
              // A failure may come after the deed.
              if (status === 500 && refused % 2 === 0) await transport.send(request, signal);
              throw new ApiError(status, reason, 'injected');
            },
          }),
        },
      );
      await life(namespace);
      await operator.stop();
      assert.ok(refused > 3, `${refused} refused`);
      assert.equal(await watched.most(), 1);
    });
  }

  it('works in one process of two, and in the other when the first one goes', async () => {
    const namespace = 'elected';
    await begin(namespace);
    const election = { leaseDuration: 3_000, renewDeadline: 2_000, retryPeriod: 300 };
    const config = { ...CONFIG, namespaces: [namespace], leaderElection: true };
    const writers: number[] = [];
    const start = (index: number) =>
      startOperator(world, config, {
        election,
        wrap: (transport) => ({
          ...transport,
          send: (request, signal) => {
            if (isWriteRequest(request)) writers.push(index);
            return transport.send(request, signal);
          },
        }),
      });
    const operators = [await start(0), await start(1)];
    await world.agentWith(namespace, 'mortal', 'runs', isRunning);
    const leader = writers[0] ?? 0;
    assert.deepEqual([...new Set(writers)], [leader]);
    await operators[leader]?.stop();
    const stopped = performance.now();
    const ref = { namespace, name: 'mortal' };
    await world.client.patch(TYPES.agents, ref, { spec: { suspend: true } }, never);
    await world.agentWith(namespace, 'mortal', 'is suspended', (agent) => readyReason(agent) === 'Suspended');
    assert.ok(performance.now() - stopped < 30_000);
    assert.ok(writers.includes(1 - leader));
    await operators[1 - leader]?.stop();
  });
});

/** Half of all numbers, without a rhythm that a loop of retries could fall into. */
function isUnlucky(number: number): boolean {
  return ((Math.imul(number, 0x9e37_79b1) >>> 16) & 1) === 1;
}
