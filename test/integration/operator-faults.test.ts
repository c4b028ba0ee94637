import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { NAMESPACE_OBJECTS } from '../../src/api/cluster.ts';
import type { Json } from '../../src/lib/json.ts';
import { ApiError, type ResourceType } from '../../src/kube/client.ts';
import type { Transport } from '../../src/kube/transport.ts';
import { type PlainObject, type StoredAgent, TYPES } from '../../src/operator/kube-types.ts';
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
const MOST_WRITES = 80;
/** Lives beside each other, each in a namespace of its own with an operator of its own. */
const AT_ONCE = 4;
const QUOTA = NAMESPACE_OBJECTS.resourceQuota;

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
        // A write that is refused is one as well.
        if (when === 'after') await transport.send(request, signal).catch(() => undefined);
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
      pods: pods
        .map(({ metadata }) => ({
          isBound: metadata.uid === pod?.uid,
          labels: Object.keys(metadata.labels ?? {}).sort(),
        }))
        .sort((one, other) => Number(other.isBound) - Number(one.isBound)),
      status,
      conditions: conditions.map(({ type, status: value, reason }) => [type, value, reason]),
    }).replaceAll(namespace, 'NAMESPACE'),
  );
}

/** Whether the fault is there, and how often it was met. */
interface During {
  isOn: boolean;
  hit: number;
}

interface StreamFault {
  readonly what: string;
  readonly id: string;
  readonly wrap: (transport: Transport, during: During) => Transport;
}

type Chunks = AsyncIterable<Uint8Array>;

/** Streams that are changed on their way. */
function changedStreams(change: (chunks: Chunks, during: During, signal: AbortSignal) => Chunks): StreamFault['wrap'] {
  return (transport, during) => ({
    ...transport,
    open: async (request, signal) => change(await transport.open(request, signal), during, signal),
  });
}

const STREAM_FAULTS: readonly StreamFault[] = [
  {
    what: 'watches that break off',
    id: 'dropped',
    wrap: changedStreams(async function* (chunks, during) {
      for await (const chunk of chunks) {
        yield chunk;
        if (!during.isOn) continue;
        during.hit += 1;
        throw new Error('the connection broke');
      }
    }),
  },
  {
    what: 'watches that fall silent',
    id: 'stalled',
    wrap: changedStreams(async function* (chunks, during, signal) {
      for await (const chunk of chunks) {
        if (during.isOn) during.hit += 1;
        while (during.isOn && !signal.aborted) await sleep(50);
        yield chunk;
      }
    }),
  },
  {
    what: 'versions that are too old',
    id: 'expired',
    wrap: (transport, during) => ({
      ...transport,
      open: (request, signal) => {
        if (!during.isOn) return transport.open(request, signal);
        during.hit += 1;
        return Promise.reject(new ApiError(410, 'Expired', 'too old resource version'));
      },
    }),
  },
  {
    what: 'news that comes twice',
    id: 'twice',
    wrap: changedStreams(async function* (chunks, during) {
      let before: Uint8Array | undefined;
      for await (const chunk of chunks) {
        yield chunk;
        // Whole lines only, and old ones after newer ones too.
        const isWhole = chunk.at(-1) === 10;
        if (during.isOn && isWhole) {
          during.hit += 1;
          yield chunk;
          if (before !== undefined) yield before;
          yield chunk;
        }
        before = isWhole && (before === undefined || before.at(-1) === 10) ? chunk : undefined;
      }
    }),
  },
  {
    what: 'reads that are old',
    id: 'stale',
    wrap: (transport, during) => {
      const first = new Map<string, Promise<Json>>();
      return {
        ...transport,
        send(request, signal) {
          if (request.method !== 'GET' || !during.isOn) return transport.send(request, signal);
          const known = first.get(request.path);
          if (known !== undefined) during.hit += 1;
          const answer = known ?? transport.send(request, signal);
          first.set(request.path, answer);
          return answer;
        },
        // So that there is something to read again.
        open: async (request, signal) => brokenOff(await transport.open(request, signal), during),
      };
    },
  },
];

async function* brokenOff(chunks: Chunks, during: During): Chunks {
  for await (const chunk of chunks) {
    yield chunk;
    if (during.isOn) throw new ApiError(410, 'Expired', 'too old resource version');
  }
}

/** What an agent goes through, and how many pods there may be at any time. */
interface Story {
  readonly id: string;
  readonly mostPods: number;
  readonly pool?: number;
  readonly leastKills: number;
}

const STORIES: readonly Story[] = [
  { id: 'cold', mostPods: 1, leastKills: 15 },
  { id: 'warm', mostPods: 2, pool: 1, leastKills: 15 },
];

describe('an operator that is killed, refused or contradicted', () => {
  let world: World;

  before(async () => {
    world = await startWorld({ controllerManager: true });
  });

  after(async () => {
    await world?.[Symbol.asyncDispose]();
  });

  const alive = async (namespace: string) =>
    (await world.pods(namespace)).filter(({ metadata }) => metadata.deletionTimestamp === undefined);

  /** An agent is made, runs, is suspended and resumes, its policy changes and stops it for a while, whoever dies meanwhile. */
  const life = async (namespace: string, pods = 1) => {
    const ref = { namespace, name: 'mortal' };
    const policy = { namespace, name: 'standard' };
    const stopped = (agent: StoredAgent) => readyReason(agent) === 'Suspended' && agent.status?.pod === undefined;
    const set = (spec: object) => world.client.patch(TYPES.agents, ref, { spec }, never);
    const setPolicy = (spec: object) => world.client.patch(TYPES.trustPolicies, policy, { spec }, never);
    await world.agentWith(namespace, 'mortal', 'runs', isRunning);
    await set({ suspend: true });
    await world.agentWith(namespace, 'mortal', 'is suspended', stopped);
    await set({ suspend: false });
    await world.agentWith(namespace, 'mortal', 'runs again', isRunning);
    await setPolicy({ quotas: { agents: 20 } });
    await eventually(
      () => world.client.get<PlainObject>(TYPES.resourceQuotas, { namespace, name: QUOTA }, never),
      (quota) => JSON.stringify(quota?.['spec']).includes(`"pods":"${20 + pods - 1}"`),
      'the quota of the changed policy',
    );
    await setPolicy({ suspend: true });
    await world.agentWith(namespace, 'mortal', 'is stopped', stopped);
    await setPolicy({ suspend: false });
    await world.agentWith(namespace, 'mortal', 'runs for the third time', isRunning);
    await eventually(
      () => alive(namespace),
      (found) => found.length === pods,
      `${pods} pods`,
    );
  };

  /** The agent goes, and its pod with it. */
  const death = async (namespace: string, left: number) => {
    await world.client.delete(TYPES.agents, { namespace, name: 'mortal' }, {}, never);
    await eventually(
      () => alive(namespace),
      (pods) => pods.length === left,
      `${left} pods after the agent is gone`,
    );
  };

  const begin = async (namespace: string) => {
    await world.namespace(namespace);
    await world.apply(policyOf(namespace, { quotas: { agents: 10 } }));
    await world.apply(agentOf(namespace, 'mortal'));
  };

  /** Never more pods than there may be. */
  const watchPods = (namespace: string) => {
    const most = { pods: 0 };
    const stopping = new AbortController();
    const watching = (async () => {
      while (!stopping.signal.aborted) {
        most.pods = Math.max(most.pods, (await alive(namespace)).length);
        await sleep(5);
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

  /** Only this namespace is new to the operator, so its writes are those of this life. */
  const configOf = (namespace: string, { pool }: Story): typeof CONFIG => {
    const [standard] = CONFIG.sandboxClasses;
    const pools = pool === undefined ? {} : { pool: [{ namespace, size: pool }] };
    return { ...CONFIG, namespaces: [namespace], sandboxClasses: [{ ...standard, ...pools }] } as typeof CONFIG;
  };

  /** One life in which the k-th write is the last of the first operator. False when there were fewer. */
  const oneKilled = async (story: Story, k: number, when: 'before' | 'after', expected: unknown) => {
    const namespace = `${story.id}-${when}-${k}`;
    const config = configOf(namespace, story);
    const pods = 1 + (story.pool ?? 0);
    await begin(namespace);
    const watched = watchPods(namespace);
    let died = () => false;
    let second: ReturnType<typeof startOperator> | undefined;
    const first = await startOperator(world, config, {
      wrap: (transport) => {
        // What is left of a process that was killed takes its time to notice; the next one does not wait for it.
        const wrapped = mortal(transport, k, when, () => {
          second = startOperator(world, config);
        });
        died = wrapped.died;
        return wrapped.transport;
      },
    });
    await life(namespace, pods);
    await first.stop();
    assert.deepEqual(await remains(world, namespace), expected, namespace);
    assert.ok((await watched.most()) <= story.mostPods, `too many pods in ${namespace}`);
    await death(namespace, pods - 1);
    await (await second)?.stop();
    return died();
  };

  for (const story of STORIES) {
    for (const when of ['before', 'after'] as const) {
      it(`leaves the same objects when it is killed ${when} any one of its writes, of a ${story.id} agent`, async (t) => {
        const namespace = `calm-${story.id}-${when}`;
        await begin(namespace);
        const calm = await startOperator(world, configOf(namespace, story));
        await life(namespace, 1 + (story.pool ?? 0));
        const expected = await remains(world, namespace);
        await calm.stop();
        let kills = 0;
        for (let next = 1, wereKilled = true; wereKilled && next < MOST_WRITES; next += AT_ONCE) {
          const numbers = Array.from({ length: AT_ONCE }, (_, index) => next + index);
          const killed = await Promise.all(numbers.map((number) => oneKilled(story, number, when, expected)));
          kills += killed.filter(Boolean).length;
          wereKilled = killed.every(Boolean);
        }
        t.diagnostic(`${kills} kills`);
        assert.ok(kills >= story.leastKills && kills < MOST_WRITES, `${kills} kills`);
      });
    }
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
              throw new ApiError(status, reason, 'injected', status === 429 ? 1 : undefined);
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

  for (const fault of STREAM_FAULTS) {
    it(`makes no pod too many through ${fault.what}, and is right soon after`, async (t) => {
      const namespace = `streams-${fault.id}`;
      const during = { isOn: true, hit: 0 };
      const operator = await startOperator(
        world,
        { ...CONFIG, namespaces: [namespace] },
        { wrap: (transport) => fault.wrap(transport, during) },
      );
      await begin(namespace);
      const watched = watchPods(namespace);
      // What happens meanwhile need not be noticed, and must not be got wrong.
      for (const suspend of [true, false, true, false]) {
        await sleep(700);
        await world.client.patch(TYPES.agents, { namespace, name: 'mortal' }, { spec: { suspend } }, never);
      }
      await sleep(700);
      during.isOn = false;
      const over = performance.now();
      const { metadata } = await world.agent(namespace, 'mortal');
      await world.agentWith(namespace, 'mortal', 'runs', (agent) => {
        return isRunning(agent) && agent.status?.observedGeneration === metadata.generation;
      });
      const seconds = (performance.now() - over) / 1_000;
      t.diagnostic(`right ${seconds.toFixed(1)} s after ${during.hit} disturbances`);
      assert.ok(seconds < 30, `${seconds} s`);
      assert.ok(during.hit > 0);
      await life(namespace);
      await operator.stop();
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
