import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { NAMESPACE_OBJECTS } from '../../../src/api/cluster.ts';
import type { Json } from '../../../src/lib/json.ts';
import { ApiError, type ResourceType } from '../../../src/kube/client/kube-client.ts';
import type { Transport } from '../../../src/kube/client/transport.ts';
import { type PlainObject, type Pod, type StoredAgent, TYPES } from '../../../src/operator/kube/types.ts';
import { type ApiServerFixture, startApiServerFixture } from '../../support/api-server/api-server-fixture.ts';
import { FollowedObjects } from '../../support/api-server/followed-objects.ts';
import { buildAgent, buildTrustPolicy, readyReason } from '../../support/builders.ts';
import { OPERATOR_CONFIG, isWriteRequest, startOperator } from '../../support/operator/start-operator.ts';
import { pollValue } from '../../support/poll.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';

const isActive = ({ metadata }: Pod) => metadata.deletionTimestamp === undefined;
const isRunning = (agent: StoredAgent) => readyReason(agent) === 'Running';
/** Above the number of writes of one lifecycle. The loop ends when an operator completes without being killed. */
const MAX_WRITES = 80;
/** Parallel lifecycles, each with its own namespace and operator. */
const MAX_IN_PARALLEL = 4;
const QUOTA = NAMESPACE_OBJECTS.resourceQuota;

/** A transport that fails permanently before or after its k-th write, as if the process had been killed. */
function dyingTransport(
  transport: Transport,
  k: number,
  when: 'before' | 'after',
  die: () => void,
): { transport: Transport; died: () => boolean } {
  let writes = 0;
  let dead = false;
  const deadError = () => new Error('the process is dead');
  return {
    died: () => dead,
    transport: {
      ...transport,
      open: (request, signal) => (dead ? Promise.reject(deadError()) : transport.open(request, signal)),
      async send(request, signal) {
        if (dead) throw deadError();
        if (!isWriteRequest(request)) return transport.send(request, signal);
        writes += 1;
        if (writes < k) return transport.send(request, signal);
        dead = true;
        // A rejected write counts too.
        if (when === 'after') await transport.send(request, signal).catch(() => undefined);
        die();
        throw deadError();
      },
    },
  };
}

/** The results, when all have ended: after a failure the others would disturb the next test. */
async function allEnded<T>(runs: readonly Promise<T>[]): Promise<readonly T[]> {
  await Promise.allSettled(runs);
  return Promise.all(runs);
}

/** All objects that the operator created in the namespace, without values that differ between runs. */
async function finalObjects(apiServer: ApiServerFixture, namespace: string): Promise<unknown> {
  const list = (type: ResourceType) => apiServer.client.list<PlainObject>(type, { namespace }, NEVER_ABORTED);
  const ours = Object.values(NAMESPACE_OBJECTS) as string[];
  const children = await Promise.all(
    [TYPES.networkPolicies, TYPES.resourceQuotas, TYPES.serviceAccounts, TYPES.configMaps].map(list),
  );
  const kept = children
    .flat()
    .filter(({ metadata }) => ours.includes(metadata.name))
    .map(({ metadata, spec, data }) => ({ name: metadata.name, labels: metadata.labels, spec, data }));
  const pods = (await apiServer.listPods(namespace)).filter(isActive);
  const agent = await apiServer.getAgent(namespace, 'mortal');
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

/** Whether the fault is active, and how often it occurred. */
interface FaultState {
  isOn: boolean;
  hit: number;
}

interface StreamFault {
  readonly description: string;
  readonly id: string;
  readonly wrap: (transport: Transport, during: FaultState) => Transport;
}

type Chunks = AsyncIterable<Uint8Array>;

/** Wraps the watch streams of a transport. */
function withStreams(change: (chunks: Chunks, during: FaultState, signal: AbortSignal) => Chunks): StreamFault['wrap'] {
  return (transport, during) => ({
    ...transport,
    open: async (request, signal) => change(await transport.open(request, signal), during, signal),
  });
}

const STREAM_FAULTS: readonly StreamFault[] = [
  {
    description: 'watches that break',
    id: 'dropped',
    wrap: withStreams(async function* (chunks, during) {
      for await (const chunk of chunks) {
        yield chunk;
        if (!during.isOn) continue;
        during.hit += 1;
        throw new Error('the connection broke');
      }
    }),
  },
  {
    description: 'watches that stall',
    id: 'stalled',
    wrap: withStreams(async function* (chunks, during, signal) {
      for await (const chunk of chunks) {
        if (during.isOn) during.hit += 1;
        while (during.isOn && !signal.aborted) await sleep(50);
        yield chunk;
      }
    }),
  },
  {
    description: 'expired resource versions',
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
    description: 'duplicate watch events',
    id: 'twice',
    wrap: withStreams(async function* (chunks, during) {
      let before: Uint8Array | undefined;
      for await (const chunk of chunks) {
        yield chunk;
        // Repeats whole lines only, and also older lines after newer ones.
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
    description: 'stale reads',
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
        // Ends watches so that the operator reads again.
        open: async (request, signal) => brokenOff(await transport.open(request, signal), during),
      };
    },
  },
];

async function* brokenOff(chunks: Chunks, during: FaultState): Chunks {
  for await (const chunk of chunks) {
    yield chunk;
    if (during.isOn) throw new ApiError(410, 'Expired', 'too old resource version');
  }
}

/** One lifecycle test: the size of the pool and the limits of pods and kills. */
interface Scenario {
  readonly id: string;
  readonly maxPods: number;
  readonly pool?: number;
  readonly minKills: number;
}

const SCENARIOS: readonly Scenario[] = [
  { id: 'cold', maxPods: 1, minKills: 12 },
  { id: 'warm', maxPods: 2, pool: 1, minKills: 12 },
];

describe('an operator under faults', () => {
  let apiServer: ApiServerFixture;

  before(async () => {
    apiServer = await startApiServerFixture({ controllerManager: true });
  });

  after(async () => {
    await apiServer?.[Symbol.asyncDispose]();
  });

  const activePods = async (namespace: string) => (await apiServer.listPods(namespace)).filter(isActive);

  /** Runs an agent through start, suspend, resume, a policy change and the kill switch of its policy. */
  const runLifecycle = async (namespace: string, pods = 1) => {
    const ref = { namespace, name: 'mortal' };
    const policy = { namespace, name: 'standard' };
    const stopped = (agent: StoredAgent) => readyReason(agent) === 'Suspended' && agent.status?.pod === undefined;
    const set = (spec: object) => apiServer.client.patch(TYPES.agents, ref, { spec }, NEVER_ABORTED);
    const setPolicy = (spec: object) => apiServer.client.patch(TYPES.trustPolicies, policy, { spec }, NEVER_ABORTED);
    await apiServer.waitForAgent(namespace, 'mortal', 'runs', isRunning);
    await set({ suspend: true });
    await apiServer.waitForAgent(namespace, 'mortal', 'is suspended', stopped);
    await set({ suspend: false });
    await apiServer.waitForAgent(namespace, 'mortal', 'runs again', isRunning);
    await setPolicy({ quotas: { agents: 20 } });
    await pollValue(
      'the quota of the changed policy',
      () => apiServer.client.get<PlainObject>(TYPES.resourceQuotas, { namespace, name: QUOTA }, NEVER_ABORTED),
      (quota) => JSON.stringify(quota?.['spec']).includes(`"pods":"${20 + pods - 1}"`),
    );
    await setPolicy({ suspend: true });
    await apiServer.waitForAgent(namespace, 'mortal', 'is stopped', stopped);
    await setPolicy({ suspend: false });
    await apiServer.waitForAgent(namespace, 'mortal', 'runs for the third time', isRunning);
    await pollValue(
      `${pods} pods`,
      () => activePods(namespace),
      (found) => found.length === pods,
    );
  };

  /** Deletes the agent and waits until its pod is deleted. */
  const deleteAgent = async (namespace: string, left: number) => {
    await apiServer.client.delete(TYPES.agents, { namespace, name: 'mortal' }, {}, NEVER_ABORTED);
    await pollValue(
      `${left} pods after the deletion of the agent`,
      () => activePods(namespace),
      (pods) => pods.length === left,
    );
  };

  const applyAgent = async (namespace: string) => {
    await apiServer.createNamespace(namespace);
    await apiServer.apply(buildTrustPolicy(namespace, { quotas: { agents: 10 } }));
    await apiServer.apply(buildAgent(namespace, 'mortal'));
  };

  /** Follows the active pods; `most()` stops following and returns the maximum. */
  const watchPods = async (namespace: string) => {
    const transport = await apiServer.connect();
    const pods = new FollowedObjects<Pod>(transport, { type: TYPES.pods, namespace });
    const stop = async () => {
      await pods[Symbol.asyncDispose]();
      await transport[Symbol.asyncDispose]();
    };
    // Of a test that fails before it asks.
    apiServer.defer(stop);
    let most = 0;
    pods.observe(() => {
      most = Math.max(most, pods.list().filter(isActive).length);
    });
    return {
      async most() {
        await stop();
        return most;
      },
    };
  };

  /** Limits the operator to this namespace, so that all its writes belong to this run. */
  const configOf = (namespace: string, { pool }: Scenario): typeof OPERATOR_CONFIG => {
    const [standard] = OPERATOR_CONFIG.sandboxClasses;
    const pools = pool === undefined ? {} : { pool: [{ namespace, size: pool }] };
    return {
      ...OPERATOR_CONFIG,
      namespaces: [namespace],
      sandboxClasses: [{ ...standard, ...pools }],
    } as typeof OPERATOR_CONFIG;
  };

  /** Runs the lifecycle with an operator that dies at its k-th write and a second one that replaces it. Returns false when there were fewer writes. */
  const runWithKill = async (scenario: Scenario, k: number, when: 'before' | 'after', expected: unknown) => {
    const namespace = `${scenario.id}-${when}-${k}`;
    const config = configOf(namespace, scenario);
    const pods = 1 + (scenario.pool ?? 0);
    await applyAgent(namespace);
    const watched = await watchPods(namespace);
    let died = () => false;
    let second: ReturnType<typeof startOperator> | undefined;
    const first = await startOperator(apiServer, config, {
      wrap: (transport) => {
        // The dead operator ends some time later; its replacement starts at once.
        const wrapped = dyingTransport(transport, k, when, () => {
          second = startOperator(apiServer, config);
        });
        died = wrapped.died;
        return wrapped.transport;
      },
    });
    await runLifecycle(namespace, pods);
    await first.stop();
    assert.deepEqual(await finalObjects(apiServer, namespace), expected, namespace);
    assert.ok((await watched.most()) <= scenario.maxPods, `too many pods in ${namespace}`);
    await deleteAgent(namespace, pods - 1);
    await (await second)?.stop();
    return died();
  };

  // What is stored after a write is what is stored before the next one. So a kill before each odd write finds every even number of stored
  // writes, and a kill after each odd write every odd number.
  for (const scenario of SCENARIOS) {
    for (const when of ['before', 'after'] as const) {
      it(`the objects of a ${scenario.id} agent are the same when the operator is killed ${when} each odd write`, async (t) => {
        const namespace = `calm-${scenario.id}-${when}`;
        await applyAgent(namespace);
        const calm = await startOperator(apiServer, configOf(namespace, scenario));
        await runLifecycle(namespace, 1 + (scenario.pool ?? 0));
        const expected = await finalObjects(apiServer, namespace);
        await calm.stop();
        let kills = 0;
        for (let next = 1, wereKilled = true; wereKilled && next < MAX_WRITES; next += 2 * MAX_IN_PARALLEL) {
          const numbers = Array.from({ length: MAX_IN_PARALLEL }, (_, index) => next + 2 * index);
          const killed = await allEnded(numbers.map((number) => runWithKill(scenario, number, when, expected)));
          kills += killed.filter(Boolean).length;
          wereKilled = killed.every(Boolean);
        }
        t.diagnostic(`${kills} kills`);
        assert.ok(kills >= scenario.minKills && kills < MAX_WRITES, `${kills} kills`);
      });
    }
  }

  for (const [what, status, reason] of [
    ['conflicts', 409, 'Conflict'],
    ['too many requests', 429, 'TooManyRequests'],
    ['failures of the server', 500, 'InternalError'],
  ] as const) {
    it(`the operator completes the lifecycle despite ${what}`, async () => {
      const namespace = `faults-${status}`;
      await applyAgent(namespace);
      const watched = await watchPods(namespace);
      let writes = 0;
      let refused = 0;
      const operator = await startOperator(
        apiServer,
        { ...OPERATOR_CONFIG, namespaces: [namespace] },
        {
          wrap: (transport) => ({
            ...transport,
            async send(request, signal) {
              if (!isWriteRequest(request)) return transport.send(request, signal);
              writes += 1;
              if (!isUnlucky(writes)) return transport.send(request, signal);
              refused += 1;
              // A 500 response can follow a successful write.
              if (status === 500 && refused % 2 === 0) await transport.send(request, signal);
              throw new ApiError(status, reason, 'injected', status === 429 ? 1 : undefined);
            },
          }),
        },
      );
      await runLifecycle(namespace);
      await operator.stop();
      assert.ok(refused > 3, `${refused} refused`);
      assert.equal(await watched.most(), 1);
    });
  }

  for (const fault of STREAM_FAULTS) {
    it(`the operator creates no extra pod despite ${fault.description}, and recovers within 30 s`, async (t) => {
      const namespace = `streams-${fault.id}`;
      const during = { isOn: true, hit: 0 };
      const operator = await startOperator(
        apiServer,
        { ...OPERATOR_CONFIG, namespaces: [namespace] },
        { wrap: (transport) => fault.wrap(transport, during) },
      );
      await applyAgent(namespace);
      const watched = await watchPods(namespace);
      // The operator may miss these changes but must not act wrongly on them.
      for (const suspend of [true, false, true, false]) {
        await sleep(700);
        await apiServer.client.patch(TYPES.agents, { namespace, name: 'mortal' }, { spec: { suspend } }, NEVER_ABORTED);
      }
      await sleep(700);
      during.isOn = false;
      const cleared = performance.now();
      const { metadata } = await apiServer.getAgent(namespace, 'mortal');
      await apiServer.waitForAgent(namespace, 'mortal', 'runs', (agent) => {
        return isRunning(agent) && agent.status?.observedGeneration === metadata.generation;
      });
      const seconds = (performance.now() - cleared) / 1_000;
      t.diagnostic(`recovered ${seconds.toFixed(1)} s after ${during.hit} disturbances`);
      assert.ok(during.hit > 0);
      await runLifecycle(namespace);
      await operator.stop();
      assert.equal(await watched.most(), 1);
    });
  }

  it('one of two operators is active, and the other takes over when it stops', async () => {
    const namespace = 'elected';
    await applyAgent(namespace);
    const election = { leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 300 };
    const config = { ...OPERATOR_CONFIG, namespaces: [namespace], leaderElection: true };
    const writers: number[] = [];
    const start = (index: number) =>
      startOperator(apiServer, config, {
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
    await apiServer.waitForAgent(namespace, 'mortal', 'runs', isRunning);
    const leader = writers[0] ?? 0;
    assert.deepEqual([...new Set(writers)], [leader]);
    await operators[leader]?.stop();
    const ref = { namespace, name: 'mortal' };
    await apiServer.client.patch(TYPES.agents, ref, { spec: { suspend: true } }, NEVER_ABORTED);
    await apiServer.waitForAgent(namespace, 'mortal', 'is suspended', (agent) => readyReason(agent) === 'Suspended');
    assert.ok(writers.includes(1 - leader));
    await operators[1 - leader]?.stop();
  });
});

/** True for about half of all numbers, without a period that retries could match. */
function isUnlucky(number: number): boolean {
  return ((Math.imul(number, 0x9e37_79b1) >>> 16) & 1) === 1;
}
