import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { RELEASE_OBJECTS } from '../../src/api/cluster.ts';
import type { TrustPolicy } from '../../src/api/v1alpha1/trustpolicy.ts';
import { policyHolder } from '../../src/gateway/ledger-accounts.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { randomIds } from '../../src/lib/ids.ts';
import { createEvents } from '../../src/nats/events.ts';
import { createInbox } from '../../src/nats/inbox.ts';
import { openSharedLedger, type SharedLedger } from '../../src/nats/ledger.ts';
import { agentAccount } from '../../src/nats/ledger-spend.ts';
import { modelHealthStore } from '../../src/nats/model-health.ts';
import { documentsIn } from '../../src/nats/ledger-store.ts';
import { BUCKETS } from '../../src/nats/names.ts';
import { lookAtServer } from '../../src/nats/served-server.ts';
import { createWakes } from '../../src/nats/wakes.ts';
import { desiredStreams } from '../../src/nats/topology.ts';
import { createRegistry, registerMetrics } from '../../src/telemetry/prometheus.ts';
import { OPERATOR_METRICS } from '../../src/telemetry/temper-metrics.ts';
import { openBus } from '../../src/operator/bus/open.ts';
import { type PlainObject, type StoredAgent, type StoredPolicy, TYPES } from '../../src/operator/kube-types.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { createSecrets } from '../../src/telemetry/secrets.ts';
import type { NatsServer } from '../cluster/nats-server.ts';
import { type Installation, startInstallation } from './bus-installation.ts';
import { anOp } from './ledger-bench.ts';
import { newMessage, newUid } from './nats-bus.ts';
import { agentOf, eventually, isWriteRequest, policyOf, readyReason } from './operator-world.ts';

const PATIENCE = 20_000;
const LINE = { kind: 'reply', message: 'msg-1', text: 'done', ending: 'complete' } as const;
/** Between two sweeps, two looks at the Secrets, two looks at the server: they pass at once. */
const PAUSES = new Set([600_000, 60_000, 10_000]);
const hurried: Clock = {
  ...systemClock,
  sleep: (milliseconds, signal) => systemClock.sleep(PAUSES.has(milliseconds) ? 300 : milliseconds, signal),
};
const QUIET = { level: 'error' as const, destination: { write: () => undefined }, secrets: createSecrets() };
const never = new AbortController().signal;
const because = (reason: string) => (agent: StoredAgent) => readyReason(agent) === reason;

describe('an operator and the bus it makes', () => {
  let installation: Installation;
  let server: NatsServer;
  const bus = () => installation.operator.parts.bus;
  /** Connected, with all streams. */
  const connected = () =>
    eventually(
      () =>
        bus()
          .residents(never)
          .then(() => bus().sweep(newUid(), never))
          .then(
            () => true,
            () => false,
          ),
      (works) => works,
      'the bus works',
    );

  before(async () => {
    installation = await startInstallation();
  });
  after(async () => {
    await installation?.[Symbol.asyncDispose]();
  });

  it('works before there is a bus, and says since when it is away', async () => {
    await installation.world.namespace('team-a');
    await installation.world.apply(policyOf('team-a'));
    await installation.world.apply(agentOf('team-a', 'analyst'));
    await installation.world.agentWith('team-a', 'analyst', 'runs', because('Running'));
    assert.ok(bus().unavailableSince() instanceof Date);
    await assert.rejects(bus().pending(newUid(), never), { code: 'TEMPER_BUS_UNAVAILABLE' });
    await assert.rejects(bus().residents(never), { code: 'TEMPER_BUS_UNAVAILABLE' });
    const problems = installation.log.filter((line) => line.includes('the bus cannot be used yet'));
    assert.ok(problems.length >= 1 && problems.length < 5, problems.join(''));
  });

  it('writes Secrets that a server starts with, and both users connect with what the chart mounts', async () => {
    server = await installation.startServer();
    await connected();
    const gateway = await installation.gateway();
    const uid = newUid();
    await createInbox(gateway).publish(uid, { uid: 'person', key: 'one' }, newMessage('hello'));
    assert.equal(await bus().pending(uid, never), 1);
    assert.deepEqual(await bus().residents(never), [uid]);
    await bus().sweep(uid, never);
    assert.equal(await bus().pending(uid, never), 0);
    assert.deepEqual(await bus().residents(never), []);
  });

  it('knows when an agent last did anything', async () => {
    const uid = newUid();
    assert.equal((await bus().lastActivity(uid, never)).getTime(), 0);
    const gateway = await installation.gateway();
    const started = Date.now();
    await createEvents(gateway).append(uid, 's-1', LINE);
    const last = await bus().lastActivity(uid, never);
    assert.ok(Math.abs(last.getTime() - started) < PATIENCE, last.toISOString());
  });

  it('gives the streams all of the store the server was given', async () => {
    const gateway = await installation.gateway();
    const declared = desiredStreams({ storeBytes: installation.config.nats?.server?.storeBytes ?? 0 });
    const info = await gateway.manager.streams.info('temper-inbox');
    assert.equal(info.config.max_bytes, declared.find(({ name }) => name === 'temper-inbox')?.max_bytes);
    assert.equal(info.config.num_replicas, installation.config.nats?.replicas);
  });

  it('puts an agent to sleep when it did nothing, and wakes it for a message', async () => {
    const { world } = installation;
    await world.apply(agentOf('team-a', 'sleeper', { idle: { scaleToZeroAfter: '2s' } }));
    const asleep = await world.agentWith('team-a', 'sleeper', 'sleeps', because('Idle'));
    assert.equal(asleep.status?.pod, undefined);
    const { uid } = asleep.metadata;
    const gateway = await installation.gateway();
    await createInbox(gateway).publish(uid, { uid: 'person', key: 'wake' }, newMessage('good morning'));
    await createWakes(gateway).publish(uid);
    const awake = await world.agentWith('team-a', 'sleeper', 'runs', because('Running'));
    assert.ok(awake.status?.pod !== undefined);
    const inbox = createInbox(gateway);
    const delivery = await inbox.fetchNext(uid, PATIENCE, AbortSignal.timeout(PATIENCE));
    assert.equal(delivery?.message.text, 'good morning');
    if (delivery !== undefined) await inbox.ack(delivery.coordinates);
    await world.agentWith('team-a', 'sleeper', 'sleeps again', because('Idle'));
  });

  it('comes back to a server that was killed, and takes wakes as before', async () => {
    const { world } = installation;
    const { uid } = (await world.agent('team-a', 'sleeper')).metadata;
    const outages: (Date | undefined)[] = [];
    const watching = new AbortController();
    const watched = (async () => {
      for await (const since of bus().outages(100, watching.signal)) outages.push(since);
    })();
    await server.kill();
    await eventually(
      async () => outages.length,
      (count) => count === 1,
      'told that it is away',
    );
    const since = bus().unavailableSince();
    assert.ok(since instanceof Date && outages[0]?.getTime() === since.getTime());
    const start = performance.now();
    await assert.rejects(bus().pending(uid, never), { code: 'TEMPER_BUS_UNAVAILABLE' });
    assert.ok(performance.now() - start < 1_000, 'a question is answered at once');
    await server.restart();
    await connected();
    await eventually(
      async () => outages.length,
      (count) => count === 2,
      'told that it is back',
    );
    assert.equal(outages[1], undefined);
    watching.abort();
    await watched;
    const gateway = await installation.gateway();
    await createInbox(gateway).publish(uid, { uid: 'person', key: 'second' }, newMessage('again'));
    await createWakes(gateway).publish(uid);
    await world.agentWith('team-a', 'sleeper', 'runs', because('Running'));
  });

  it('makes the streams anew when the store was lost', async () => {
    await installation.wipe();
    await mkdir(installation.storeFolder);
    await server.restart();
    await connected();
    const gateway = await installation.gateway();
    // Those the gateway may look at.
    const names = desiredStreams().map(({ name }) => name);
    for (const name of names.filter((each) => !/wakes|promotions/.test(each))) await gateway.manager.streams.info(name);
  });

  it('gives the message of a pod that died to the next one at once, and never takes one from the pod that is bound', async () => {
    const { world } = installation;
    const { metadata, status } = await world.agentWith('team-a', 'analyst', 'runs', because('Running'));
    const inbox = createInbox(await installation.gateway());
    const next = () => inbox.fetchNext(metadata.uid, PATIENCE, AbortSignal.timeout(PATIENCE));
    await inbox.publish(metadata.uid, { uid: 'person', key: 'work' }, newMessage('work'));
    const first = await next();
    assert.ok(first !== undefined);
    // A change that keeps the pod, and one that keeps it and writes the status.
    await world.apply(agentOf('team-a', 'analyst', { prompt: { system: 'Be brief.' } }));
    const isSeen = (agent: StoredAgent) => agent.status?.observedGeneration === agent.metadata.generation;
    await world.agentWith('team-a', 'analyst', 'is seen', (agent) => isSeen(agent) && agent.metadata.generation > 1);
    assert.deepEqual(await inbox.waiting(metadata.uid), { waiting: 0, inFlight: 1 });
    const died = { namespace: 'team-a', name: status?.pod?.name ?? '' };
    const start = performance.now();
    await world.client.delete(TYPES.pods, died, { gracePeriodSeconds: 0 }, never);
    const isReplaced = (agent: StoredAgent) =>
      agent.status?.pod !== undefined && agent.status.pod.uid !== status?.pod?.uid;
    await world.agentWith('team-a', 'analyst', 'has another pod', isReplaced);
    const second = await next();
    assert.equal(second?.message.text, 'work');
    assert.equal(second?.coordinates.deliveries, 2);
    assert.ok(performance.now() - start < first.leaseMilliseconds / 2, 'before the lease was over');
    // What was held before is no more: the second delivery stays with whoever has it.
    const { streamSequence, consumerSequence } = first.coordinates;
    assert.equal(await bus().release(metadata.uid, { streamSequence, consumerSequence }, never), false);
    assert.deepEqual(await inbox.waiting(metadata.uid), { waiting: 0, inFlight: 1 });
    if (second !== undefined) await inbox.ack(second.coordinates);
    assert.equal(await bus().held(metadata.uid, never), undefined);
  });

  it('writes down what a policy spends, and a ledger that lost its counters begins with it', async () => {
    const { world } = installation;
    await world.apply(policyOf('team-a', { quotas: { tokensPerDay: 1_500 } }, 'counted'));
    const read = async () => {
      const ref = { namespace: 'team-a', name: 'counted' };
      const found = await world.client.get<StoredPolicy>(TYPES.trustPolicies, ref, never);
      assert.ok(found !== undefined);
      return found;
    };
    const policy = await read();
    const charge = async (tokens: number, calls = 0) => {
      const now = await read();
      const holder = policyHolder(policy as TrustPolicy, { policy: () => now as TrustPolicy });
      await using shared = await openLedger(installation);
      const ledger = shared.ledger([holder]);
      const answer = await ledger.reserve({ inputTokens: tokens, toolCalls: calls }, anOp());
      if (answer.granted)
        await ledger.settle(answer.id, { inputTokens: tokens, toolCalls: calls, costMicros: 2 * tokens });
      return answer.granted;
    };
    assert.equal(await charge(1_000), true);
    // Any change of it is a reason to look at once; else it is done each minute.
    await world.client.patch(TYPES.trustPolicies, policy.metadata, { spec: { autonomy: 'Semi' } }, never);
    const { status } = await eventually(read, (found) => found.status?.spend !== undefined, 'the spend');
    assert.deepEqual(
      status?.spend?.map(({ window, inputTokens, cost }) => [window, inputTokens, cost]),
      [
        ['hour', 1_000, '0.002'],
        ['day', 1_000, '0.002'],
        ['month', 1_000, '0.002'],
      ],
    );
    await installation.wipe();
    await mkdir(installation.storeFolder);
    await server.restart();
    await connected();
    assert.equal(await charge(0, 1), true, 'a call that no block is leased for opens the counters as well');
    assert.equal(await charge(600), false, 'what was spent before counts');
    assert.equal(await charge(400), true);
    await world.client.patch(TYPES.trustPolicies, policy.metadata, { spec: { autonomy: 'Full' } }, never);
    const isFolded = (found: StoredPolicy) => found.status?.spend?.[1]?.inputTokens === 1_400;
    await eventually(read, isFolded, 'all of it');
  });

  it('does not lose a wake that nobody acted upon', async () => {
    const gateway = await installation.gateway();
    await installation.operator[Symbol.asyncDispose]();
    const uid = newUid();
    await createWakes(gateway).publish(uid);
    const registry = createRegistry();
    const metrics = registerMetrics(registry, OPERATOR_METRICS);
    const parts = openBus(natsOf(installation), { clock: systemClock, log: createLogger(QUIET), metrics });
    try {
      for (let times = 0; times < 2; times += 1) {
        // The iteration ends before it asks for the next one: the first time nothing was done with it.
        for await (const woken of parts.bus.wakes(AbortSignal.timeout(PATIENCE))) {
          assert.equal(woken, uid);
          break;
        }
      }
      assert.match(await registry.metrics(), /^temper_bus_connected 1$/m);
    } finally {
      await parts[Symbol.asyncDispose]();
      installation.operator = await installation.startOperator();
    }
    await connected();
  });

  it('sweeps what is left of an agent that was deleted while no operator ran', async () => {
    const { world } = installation;
    await world.apply(agentOf('team-a', 'gone'));
    const { metadata } = await world.agentWith('team-a', 'gone', 'runs', because('Running'));
    const kept = (await world.agent('team-a', 'analyst')).metadata.uid;
    const gateway = await installation.gateway();
    for (const uid of [metadata.uid, kept]) {
      await createEvents(gateway).append(uid, 's-1', LINE);
      await createInbox(gateway).publish(uid, { uid: 'person', key: `left ${uid}` }, newMessage('hello'));
    }
    await installation.operator[Symbol.asyncDispose]();
    await world.client.delete(TYPES.agents, { namespace: 'team-a', name: 'gone' }, {}, never);
    installation.operator = await installation.startOperator(hurried);
    await connected();
    await eventually(
      () => bus().residents(never),
      (residents) => !residents.includes(metadata.uid),
      'swept',
    );
    assert.ok((await bus().residents(never)).includes(kept));
  });

  it('says of an agent at work that its budget is used up and that its model fails, and when both are over', async () => {
    const { world, seen } = installation;
    await world.apply(agentOf('team-a', 'worker', { quotas: { tokensPerHour: 5_000 } }));
    await world.apply(agentOf('team-a', 'bystander'));
    await world.agentWith('team-a', 'bystander', 'runs', because('Running'));
    const { metadata } = await world.agentWith('team-a', 'worker', 'runs', because('Running'));
    const reasonIs = (type: string, reason: string) => (agent: StoredAgent) =>
      agent.status?.conditions?.find((condition) => condition.type === type)?.reason === reason;
    const gateway = await installation.gateway();
    const providers = modelHealthStore(gateway);
    const since = new Date(Date.now() - 60_000).toISOString();
    await providers.put({ provider: 'openai', state: 'Unavailable', since, code: 'TEMPER_MODEL_OVERLOADED' });
    await createInbox(gateway).publish(metadata.uid, { uid: 'person', key: 'for the worker' }, newMessage('work'));
    await world.agentWith('team-a', 'worker', 'waits for its model', reasonIs('ModelAvailable', 'ModelUnavailable'));
    const idle = await world.agent('team-a', 'bystander');
    assert.ok(!reasonIs('ModelAvailable', 'ModelUnavailable')(idle), 'who does nothing is not written');
    await providers.put({ provider: 'openai', state: 'Available', since });
    await world.agentWith('team-a', 'worker', 'has its model', reasonIs('ModelAvailable', 'ModelReady'));
    {
      await using shared = await openLedger(installation);
      const own = { name: agentAccount(metadata.uid), quotas: {}, prefix: '' };
      const answer = await shared.ledger([own]).reserve({ inputTokens: 4_000 }, anOp());
      assert.ok(answer.granted);
      await shared.ledger([own]).settle(answer.id, { inputTokens: 4_000 });
    }
    await world.agentWith('team-a', 'worker', 'has spent', reasonIs('BudgetAvailable', 'TokenQuotaExceeded'));
    await world.apply(agentOf('team-a', 'worker', { quotas: { tokensPerHour: 50_000 } }));
    await world.agentWith('team-a', 'worker', 'may spend', reasonIs('BudgetAvailable', 'WithinBudget'));
    // Numbers are written with what is written anyway.
    const { status } = await world.agentWith('team-a', 'worker', 'waits', (agent) => agent.status?.queue === 1);
    assert.match(status?.summary ?? '', /^8\d?% of 5k tok\/h$|^8% of 50k tok\/h$/);
    await sleep(1_000);
    const before = seen.length;
    // Facts are learned anew several times meanwhile.
    await sleep(3_000);
    const written = seen.slice(before).filter(isWriteRequest);
    assert.deepEqual(
      written.map(({ method, path }) => `${method} ${path}`),
      [],
    );
  });

  it('tells what went with a store that was lost: who follows, whose messages waited, and each policy', async () => {
    const { world } = installation;
    await world.apply(agentOf('team-a', 'unlucky', { suspend: true }));
    const { metadata } = await world.agentWith('team-a', 'unlucky', 'is suspended', because('Suspended'));
    const isWaiting = (agent: StoredAgent) => agent.status?.queue === 1;
    const gateway = await installation.gateway();
    const lines = createEvents(gateway);
    const send = (key: string) =>
      createInbox(gateway).publish(metadata.uid, { uid: 'person', key }, newMessage('never read'));
    const told = async (name: string, reason: string) => {
      const fieldSelector = `involvedObject.name=${name},reason=${reason}`;
      const found = await world.client.list<PlainObject>(TYPES.events, { namespace: 'team-a', fieldSelector }, never);
      return found.map(({ message, count }) => ({ message: String(message), count: Number(count) }));
    };
    await send('first');
    await world.agentWith('team-a', 'unlucky', 'has a message', isWaiting);
    const place = await lines.append(metadata.uid, 's-1', LINE);
    const signal = AbortSignal.timeout(4 * PATIENCE);
    const follow = async (after: number, complete: boolean) => {
      for await (const line of lines.follow(metadata.uid, 's-1', { after, complete, signal })) return line;
      return undefined;
    };
    const certain = assert.rejects(follow(place, true), { code: 'TEMPER_BUS_STORE_LOST' });
    const open = follow(place, false);
    const before = (await told('standard', 'BusStoreLost')).reduce((sum, { count }) => sum + count, 0);
    await installation.wipe();
    await mkdir(installation.storeFolder);
    await server.restart();
    await certain;
    const next = await lines.append(metadata.uid, 's-1', { ...LINE, message: 'msg-2' });
    assert.ok(next > place, 'no place comes twice');
    assert.deepEqual(await open, { ...LINE, message: 'msg-2', seq: next });
    const [lost] = await eventually(
      () => told('unlucky', 'MessagesLost'),
      (found) => found.length > 0,
      'told of its message',
    );
    assert.match(lost?.message ?? '', /1 message that waited .* gone; send again/);
    await world.agentWith('team-a', 'unlucky', 'has none any more', (agent) => agent.status?.queue === 0);

    // The next one is lost while no operator runs.
    await send('second');
    await world.agentWith('team-a', 'unlucky', 'has a message again', isWaiting);
    await installation.operator[Symbol.asyncDispose]();
    await installation.wipe();
    await mkdir(installation.storeFolder);
    await server.restart();
    installation.operator = await installation.startOperator(hurried);
    await eventually(
      () => told('unlucky', 'MessagesLost'),
      (found) => found.reduce((sum, { count }) => sum + count, 0) === 2,
      'told of the second',
    );
    await eventually(
      () => told('standard', 'BusStoreLost'),
      (found) => found.reduce((sum, { count }) => sum + count, 0) === before + 2,
      'told once each',
    );
    assert.deepEqual(await told('bystander', 'MessagesLost'), [], 'who had none');
    await connected();
  });

  it('has the server take up a renewed certificate once its pod has it, and no connection notices', async () => {
    const { world, config } = installation;
    const { url } = natsOf(installation);
    const gateway = await installation.gateway();
    const served = async () => (await lookAtServer(url, AbortSignal.timeout(PATIENCE))).certificate;
    const before = await served();
    const { id } = await lookAtServer(url, AbortSignal.timeout(PATIENCE));
    const ref = { namespace: config.namespace, name: RELEASE_OBJECTS.natsCertificate };
    await world.client.delete(TYPES.secrets, ref, {}, never);
    const secret = await eventually(
      () => installation.secret(ref.name),
      (found) => found !== undefined,
      'a new certificate',
    );
    const renewed = new X509Certificate(secret?.['tls.crt'] ?? '').raw;
    assert.ok(!renewed.equals(before));
    await eventually(
      async () => installation.log.some((line) => line.includes('the files of before')),
      (told) => told,
      'asked too early',
    );
    assert.ok((await served()).equals(before), 'its pod has the files of before');
    await installation.mount();
    await eventually(served, (certificate) => certificate.equals(renewed), 'the new certificate');
    assert.equal((await lookAtServer(url, AbortSignal.timeout(PATIENCE))).id, id, 'it was not restarted');
    assert.equal(gateway.state().connected, true);
    await gateway.nats.flush();
    await installation.gateway();
  });

  it('has the server let in the new users when their keys were lost', async () => {
    const { world, config } = installation;
    const old = await installation.gateway();
    const ref = { namespace: config.namespace, name: RELEASE_OBJECTS.natsUsers };
    const before = await installation.secret(ref.name);
    await world.client.delete(TYPES.secrets, ref, {}, never);
    const configured = () => installation.secret(RELEASE_OBJECTS.natsConfiguration);
    const text = (await configured())?.['nats-server.conf'];
    await eventually(configured, (found) => found?.['nats-server.conf'] !== text, 'other users');
    assert.notDeepEqual(await installation.secret(ref.name), before);
    await installation.mount();
    await installation.gateway();
    await eventually(
      async () => old.state().connected,
      (isConnected) => isConnected,
      'the gateway of before',
    );
    await connected();
  });

  it('lets nobody else have the server read its files again', async () => {
    const gateway = await installation.gateway();
    const { id } = await lookAtServer(natsOf(installation).url, AbortSignal.timeout(PATIENCE));
    const asked = gateway.nats.request(`$SYS.REQ.SERVER.${id}.RELOAD`, '', { timeout: 2_000 });
    await assert.rejects(asked, /permissions violation/i);
    const users = await installation.secret(RELEASE_OBJECTS.natsUsers);
    assert.deepEqual(Object.keys(users ?? {}).sort(), ['gateway.nk', 'operator.nk']);
  });
});

async function openLedger(installation: Installation): Promise<SharedLedger> {
  const store = documentsIn(await installation.gateway(), BUCKETS.ledger);
  const failed = (error: unknown) => assert.fail(String(error));
  return openSharedLedger({ store, clock: systemClock, ids: randomIds, random: Math.random, failed });
}

function natsOf({ config }: Installation) {
  assert.ok(config.nats !== undefined);
  return config.nats;
}
