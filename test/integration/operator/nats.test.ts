import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { RELEASE_OBJECTS } from '../../../src/api/cluster.ts';
import type { TrustPolicy } from '../../../src/api/v1alpha1/trustpolicy.ts';
import { policyHolder } from '../../../src/gateway/ledger/accounts.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { ulids } from '../../../src/lib/ids.ts';
import { createSessionEvents } from '../../../src/nats/session-events.ts';
import { createNatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { openSharedLedger, type SharedLedger } from '../../../src/nats/ledger/ledger.ts';
import { agentAccount } from '../../../src/nats/ledger/spend-summary.ts';
import { createModelHealthStore } from '../../../src/nats/model-health.ts';
import { createDocumentStore } from '../../../src/nats/jetstream/document-store.ts';
import { BUCKETS } from '../../../src/nats/jetstream/names.ts';
import { readServerInfo } from '../../../src/nats/server/server-info.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import { createResidents } from '../../../src/nats/residents/residents.ts';
import { createWakeups } from '../../../src/nats/wakeups.ts';
import { desiredStreams } from '../../../src/nats/jetstream/topology.ts';
import { createRegistry, registerMetrics } from '../../../src/telemetry/prometheus.ts';
import { OPERATOR_METRICS } from '../../../src/telemetry/temper-metrics.ts';
import { openOperatorNats } from '../../../src/operator/nats/open.ts';
import { type PlainObject, type StoredAgent, type StoredPolicy, TYPES } from '../../../src/operator/kube/types.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import type { NatsServer } from '../../cluster/nats-server.ts';
import { type OperatorNatsFixture, startOperatorNatsFixture } from '../../support/nats/operator-nats-fixture.ts';
import { newMessage, newUid } from '../../support/nats/nats-fixture.ts';

import { buildAgent, buildTrustPolicy, readyReason } from '../../support/builders.ts';
import { isWriteRequest } from '../../support/operator/start-operator.ts';
import { withRetry } from '../../support/nats/retry.ts';
import { pollAssertion, pollValue } from '../../support/poll.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';
import { callOptions } from '../../support/call-options.ts';
import { scheduleTests } from '../../support/operator/schedule-tests.ts';
import { platformEventTests } from '../../support/operator/platform-event-tests.ts';
import { trustTests } from '../../support/operator/trust-tests.ts';
import { clockWithShortPauses } from '../../support/clocks.ts';

const TIMEOUT_MS = 60_000;
const LINE = { kind: 'reply', message: 'msg-1', text: 'done', finishReason: 'complete' } as const;
/** The intervals of garbage collection, of the Secret check and of the server check: this clock shortens them to 300 ms. */
const SHORTENED_PAUSES_MS = new Set([600_000, 60_000, 10_000]);
const shortPauses = clockWithShortPauses(SHORTENED_PAUSES_MS, 300);
const QUIET = { level: 'error' as const, destination: { write: () => undefined }, secrets: createSecretRedactor() };
const hasReadyReason = (reason: string) => (agent: StoredAgent) => readyReason(agent) === reason;

describe('an operator and its NATS server', () => {
  let fixture: OperatorNatsFixture;
  let server: NatsServer;
  const agentActivity = () => fixture.operator.parts.agentActivity;
  const agentOf = (uid: string, namespace = 'team-a') => ({ namespace, name: 'analyst', uid });
  const residentUids = async () => {
    const uids: string[] = [];
    for await (const { uid } of agentActivity().residents(NEVER_ABORTED)) uids.push(uid);
    return uids;
  };
  /** Waits until the operator is connected and all streams exist. */
  const waitUntilConnected = () =>
    pollValue(
      'a connection with all streams',
      () =>
        residentUids()
          .then(() => agentActivity().deleteAgentData(agentOf(newUid()), NEVER_ABORTED))
          .then(
            () => true,
            () => false,
          ),
      (works) => works,
    );

  before(async () => {
    fixture = await startOperatorNatsFixture();
  });
  after(async () => {
    await fixture?.[Symbol.asyncDispose]();
  });

  it('the operator works without NATS and reports since when it is unavailable', async () => {
    await fixture.apiServer.createNamespace('team-a');
    await fixture.apiServer.apply(buildTrustPolicy('team-a'));
    await fixture.apiServer.apply(buildAgent('team-a', 'analyst'));
    await fixture.apiServer.waitForAgent('team-a', 'analyst', 'runs', hasReadyReason('Running'));
    assert.ok(agentActivity().unavailableSince() instanceof Date);
    await assert.rejects(agentActivity().pending(newUid(), NEVER_ABORTED), { code: 'TEMPER_BUS_UNAVAILABLE' });
    await assert.rejects(residentUids(), { code: 'TEMPER_BUS_UNAVAILABLE' });
    const problems = fixture.logLines.filter((line) => line.includes('NATS is not usable yet'));
    assert.ok(problems.length >= 1 && problems.length < 5, problems.join(''));
  });

  it('nats-server starts with the Secrets of the operator, and operator and gateway connect with the mounted files', async () => {
    server = await fixture.startServer();
    await waitUntilConnected();
    const gateway = await fixture.connectGateway();
    const uid = newUid();
    await createNatsInbox(gateway).publish(uid, { uid: 'user', key: 'one' }, newMessage('hello'));
    assert.equal(await agentActivity().pending(uid, NEVER_ABORTED), 1);
    await createResidents(gateway).ensure(agentOf(uid), 'temper');
    assert.deepEqual(await residentUids(), [uid]);
    await agentActivity().deleteAgentData(agentOf(uid), NEVER_ABORTED);
    assert.equal(await agentActivity().pending(uid, NEVER_ABORTED), 0);
    assert.deepEqual(await residentUids(), []);
  });

  it('the operator reads the last activity of an agent', async () => {
    const uid = newUid();
    assert.equal((await agentActivity().lastActivity(uid, NEVER_ABORTED)).getTime(), 0);
    const gateway = await fixture.connectGateway();
    const started = Date.now();
    await createSessionEvents(gateway).append(uid, 's-1', LINE);
    const last = await agentActivity().lastActivity(uid, NEVER_ABORTED);
    assert.ok(Math.abs(last.getTime() - started) < TIMEOUT_MS, last.toISOString());
  });

  it('the streams use the whole store of the server', async () => {
    const gateway = await fixture.connectGateway();
    const declared = desiredStreams({ storeBytes: fixture.config.nats?.server?.storeBytes ?? 0 });
    const info = await gateway.manager.streams.info('temper-inbox');
    assert.equal(info.config.max_bytes, declared.find(({ name }) => name === 'temper-inbox')?.max_bytes);
    assert.equal(info.config.num_replicas, fixture.config.nats?.replicas);
  });

  it('an idle agent is scaled to zero, and a message starts it again', async () => {
    const { apiServer } = fixture;
    await apiServer.apply(buildAgent('team-a', 'sleeper', { idle: { scaleToZeroAfter: '2s' } }));
    const idle = await apiServer.waitForAgent('team-a', 'sleeper', 'is idle', hasReadyReason('Idle'));
    assert.equal(idle.status?.pod, undefined);
    const { uid } = idle.metadata;
    const gateway = await fixture.connectGateway();
    await createNatsInbox(gateway).publish(uid, { uid: 'user', key: 'wakeup' }, newMessage('good morning'));
    await createWakeups(gateway).publish(uid);
    const awake = await apiServer.waitForAgent('team-a', 'sleeper', 'runs', hasReadyReason('Running'));
    assert.ok(awake.status?.pod !== undefined);
    const inbox = createNatsInbox(gateway);
    const delivery = await inbox.fetchNext(uid, TIMEOUT_MS, AbortSignal.timeout(TIMEOUT_MS));
    assert.equal(delivery?.message.text, 'good morning');
    if (delivery !== undefined) await inbox.ack(delivery.coordinates);
    await apiServer.waitForAgent('team-a', 'sleeper', 'is idle again', hasReadyReason('Idle'));
  });

  it('the operator reconnects to a killed server and handles wakeups again', async () => {
    const { apiServer } = fixture;
    const { uid } = (await apiServer.getAgent('team-a', 'sleeper')).metadata;
    const outages: (Date | undefined)[] = [];
    const watching = new AbortController();
    const watched = (async () => {
      for await (const since of agentActivity().outages(100, watching.signal)) outages.push(since);
    })();
    await server.kill();
    await pollValue(
      'a reported outage',
      async () => outages.length,
      (count) => count === 1,
    );
    const since = agentActivity().unavailableSince();
    assert.ok(since instanceof Date && outages[0]?.getTime() === since.getTime());
    // The server comes back only after this request: one that waited for the connection would not end.
    await assert.rejects(agentActivity().pending(uid, NEVER_ABORTED), { code: 'TEMPER_BUS_UNAVAILABLE' });
    await server.restart();
    await waitUntilConnected();
    await pollValue(
      'a reported end of the outage',
      async () => outages.length,
      (count) => count === 2,
    );
    assert.equal(outages[1], undefined);
    watching.abort();
    await watched;
    const gateway = await fixture.connectGateway();
    await createNatsInbox(gateway).publish(uid, { uid: 'user', key: 'second' }, newMessage('again'));
    await createWakeups(gateway).publish(uid);
    await apiServer.waitForAgent('team-a', 'sleeper', 'runs', hasReadyReason('Running'));
  });

  it('the operator recreates the streams after the store was lost', async () => {
    await fixture.loseStore();
    await mkdir(fixture.storeFolder);
    await server.restart();
    await waitUntilConnected();
    const gateway = await fixture.connectGateway();
    // The gateway may read the info of these streams.
    const names = desiredStreams().map(({ name }) => name);
    for (const name of names.filter((each) => !/wakeups|promotions$|panel-reviews/.test(each)))
      await gateway.manager.streams.info(name);
  });

  it('the message of a deleted pod is redelivered to the next pod at once, and never taken from the bound pod', async () => {
    const { apiServer } = fixture;
    const { metadata, status } = await apiServer.waitForAgent('team-a', 'analyst', 'runs', hasReadyReason('Running'));
    const inbox = createNatsInbox(await fixture.connectGateway());
    const next = () => inbox.fetchNext(metadata.uid, TIMEOUT_MS, AbortSignal.timeout(TIMEOUT_MS));
    await inbox.publish(metadata.uid, { uid: 'user', key: 'work' }, newMessage('work'));
    const first = await next();
    assert.ok(first !== undefined);
    // This change keeps the pod and updates the status.
    await apiServer.apply(buildAgent('team-a', 'analyst', { prompt: { system: 'Be brief.' } }));
    const isSeen = (agent: StoredAgent) => agent.status?.observedGeneration === agent.metadata.generation;
    await apiServer.waitForAgent(
      'team-a',
      'analyst',
      'is observed',
      (agent) => isSeen(agent) && agent.metadata.generation > 1,
    );
    assert.deepEqual(await inbox.depth(metadata.uid), { pending: 0, inFlight: 1 });
    const died = { namespace: 'team-a', name: status?.pod?.name ?? '' };
    await apiServer.client.delete(TYPES.pods, died, { gracePeriodSeconds: 0 }, NEVER_ABORTED);
    const isReplaced = (agent: StoredAgent) =>
      agent.status?.pod !== undefined && agent.status.pod.uid !== status?.pod?.uid;
    await apiServer.waitForAgent('team-a', 'analyst', 'has another pod', isReplaced);
    const second = await next();
    assert.equal(second?.message.text, 'work');
    assert.equal(second?.coordinates.deliveries, 2);
    assert.equal(second?.redelivery, 'podDeleted', 'the operator redelivered it, and not its ack deadline');
    // The first delivery has ended: releasing it must not affect the second delivery.
    const { streamSequence, deliveries } = first.coordinates;
    assert.equal(await agentActivity().redeliver(metadata.uid, [{ streamSequence, deliveries }], NEVER_ABORTED), 0);
    assert.deepEqual(await inbox.depth(metadata.uid), { pending: 0, inFlight: 1 });
    if (second !== undefined) await inbox.ack(second.coordinates);
    assert.deepEqual(await agentActivity().inFlightMessages(metadata.uid, NEVER_ABORTED), []);
  });

  it('the operator records the spend of a policy, and a ledger with lost counters starts from it', async () => {
    const { apiServer } = fixture;
    await apiServer.apply(buildTrustPolicy('team-a', { quotas: { tokensPerDay: 1_500 } }, 'counted'));
    const read = async () => {
      const ref = { namespace: 'team-a', name: 'counted' };
      const found = await apiServer.client.get<StoredPolicy>(TYPES.trustPolicies, ref, NEVER_ABORTED);
      assert.ok(found !== undefined);
      return found;
    };
    const policy = await read();
    const charge = async (tokens: number) => {
      const now = await read();
      const holder = policyHolder(policy as TrustPolicy, { policy: () => now as TrustPolicy });
      await using shared = await openLedger(fixture);
      const ledger = shared.ledger([holder]);
      const answer = await ledger.reserve({ inputTokens: tokens }, callOptions());
      if (answer.granted) await ledger.commit(answer.id, { inputTokens: tokens, costMicros: 2 * tokens });
      return answer.granted;
    };
    assert.equal(await charge(1_000), true);
    // A change of the policy triggers a reconcile; otherwise the spend is recorded every minute.
    await apiServer.client.patch(TYPES.trustPolicies, policy.metadata, { spec: { autonomy: 'Semi' } }, NEVER_ABORTED);
    const { status } = await pollValue('the recorded spend', read, (found) => found.status?.spend !== undefined);
    assert.deepEqual(
      status?.spend?.map(({ window, inputTokens, cost }) => [window, inputTokens, cost]),
      [
        ['hour', 1_000, '0.002'],
        ['day', 1_000, '0.002'],
        ['month', 1_000, '0.002'],
      ],
    );
    await fixture.loseStore();
    await mkdir(fixture.storeFolder);
    await server.restart();
    await waitUntilConnected();
    assert.equal(await charge(0), true, 'a call that needs no allocation is granted at once');
    assert.equal(await charge(600), false, 'the recorded spend counts');
    assert.equal(await charge(400), true);
    await apiServer.client.patch(TYPES.trustPolicies, policy.metadata, { spec: { autonomy: 'Full' } }, NEVER_ABORTED);
    const isFolded = (found: StoredPolicy) => found.status?.spend?.[1]?.inputTokens === 1_400;
    await pollValue('the whole spend', read, isFolded);
  });

  it('a wakeup that was not handled is redelivered', async () => {
    const gateway = await fixture.connectGateway();
    await fixture.operator[Symbol.asyncDispose]();
    const uid = newUid();
    await createWakeups(gateway).publish(uid);
    const registry = createRegistry();
    const metrics = registerMetrics(registry, OPERATOR_METRICS);
    const parts = openOperatorNats(natsOf(fixture), { clock: systemClock, log: createLogger(QUIET), metrics });
    try {
      for (let times = 0; times < 2; times += 1) {
        // Leaving the loop early means that the first wakeup was not handled.
        for await (const woken of parts.agentActivity.wakeups(AbortSignal.timeout(TIMEOUT_MS))) {
          assert.equal(woken, uid);
          break;
        }
      }
      assert.match(await registry.metrics(), /^temper_nats_connected 1$/m);
    } finally {
      await parts[Symbol.asyncDispose]();
      fixture.operator = await fixture.startOperator();
    }
    await waitUntilConnected();
  });

  it('the operator removes the data of an agent that was deleted while no operator ran, and nothing of others', async () => {
    const { apiServer } = fixture;
    await apiServer.apply(buildAgent('team-a', 'gone'));
    const { metadata } = await apiServer.waitForAgent('team-a', 'gone', 'runs', hasReadyReason('Running'));
    const kept = (await apiServer.getAgent('team-a', 'analyst')).metadata.uid;
    const gateway = await fixture.connectGateway();
    const residents = createResidents(gateway);
    const foreign = agentOf(newUid());
    for (const uid of [metadata.uid, kept, foreign.uid]) {
      await createSessionEvents(gateway).append(uid, 's-1', LINE);
      await createNatsInbox(gateway).publish(uid, { uid: 'user', key: `left ${uid}` }, newMessage('hello'));
    }
    await residents.ensure(agentOf(metadata.uid), 'temper');
    await residents.ensure(agentOf(kept), 'temper');
    await residents.ensure(foreign, 'another-release');
    await fixture.operator[Symbol.asyncDispose]();
    await apiServer.client.delete(TYPES.agents, { namespace: 'team-a', name: 'gone' }, {}, NEVER_ABORTED);
    fixture.operator = await fixture.startOperator(shortPauses);
    await waitUntilConnected();
    await pollValue('the removal of the data', residentUids, (uids) => !uids.includes(metadata.uid));
    assert.equal(await agentActivity().pending(metadata.uid, NEVER_ABORTED), 0);
    const uids = await residentUids();
    assert.ok(uids.includes(kept) && uids.includes(foreign.uid));
    assert.equal(await agentActivity().pending(foreign.uid, NEVER_ABORTED), 1);
    const records = await createNatsAudit(gateway).read('team-a', 'observed', 0, 100);
    const deletions = records.filter(({ action }) => action === 'agent.data-deleted');
    assert.deepEqual(
      deletions.map(({ subject, actor }) => [subject, actor]),
      [[metadata.uid, 'system']],
    );
    await agentActivity().deleteAgentData(foreign, NEVER_ABORTED);
  });

  it('an active agent shows an exhausted quota and a failing model, and their recovery', async () => {
    const { apiServer, apiRequests } = fixture;
    await apiServer.apply(buildAgent('team-a', 'worker', { quotas: { tokensPerHour: 5_000 } }));
    await apiServer.apply(buildAgent('team-a', 'bystander'));
    await apiServer.waitForAgent('team-a', 'bystander', 'runs', hasReadyReason('Running'));
    const { metadata } = await apiServer.waitForAgent('team-a', 'worker', 'runs', hasReadyReason('Running'));
    const reasonIs = (type: string, reason: string) => (agent: StoredAgent) =>
      agent.status?.conditions?.find((condition) => condition.type === type)?.reason === reason;
    const gateway = await fixture.connectGateway();
    const providers = createModelHealthStore(gateway);
    const since = new Date(Date.now() - 60_000).toISOString();
    await providers.put({ provider: 'openai', state: 'Unavailable', since, code: 'TEMPER_MODEL_OVERLOADED' });
    await createNatsInbox(gateway).publish(metadata.uid, { uid: 'user', key: 'for the worker' }, newMessage('work'));
    await apiServer.waitForAgent(
      'team-a',
      'worker',
      'waits for its model',
      reasonIs('ModelAvailable', 'ModelUnavailable'),
    );
    const idle = await apiServer.getAgent('team-a', 'bystander');
    assert.ok(!reasonIs('ModelAvailable', 'ModelUnavailable')(idle), 'the status of an inactive agent is not written');
    await providers.put({ provider: 'openai', state: 'Available', since });
    await apiServer.waitForAgent('team-a', 'worker', 'has its model', reasonIs('ModelAvailable', 'ModelReady'));
    {
      await using shared = await openLedger(fixture);
      const own = { name: agentAccount(metadata.uid), quotas: {}, prefix: '' };
      const answer = await shared.ledger([own]).reserve({ inputTokens: 4_000 }, callOptions());
      assert.ok(answer.granted);
      await shared.ledger([own]).commit(answer.id, { inputTokens: 4_000 });
    }
    await apiServer.waitForAgent('team-a', 'worker', 'has spent', reasonIs('BudgetAvailable', 'TokenQuotaExceeded'));
    await apiServer.apply(buildAgent('team-a', 'worker', { quotas: { tokensPerHour: 50_000 } }));
    await apiServer.waitForAgent('team-a', 'worker', 'may spend', reasonIs('BudgetAvailable', 'WithinBudget'));
    // Numbers are written together with other status changes.
    const { status } = await apiServer.waitForAgent('team-a', 'worker', 'waits', (agent) => agent.status?.queue === 1);
    assert.match(status?.summary ?? '', /^8\d?% of 5k tok\/h$|^8% of 50k tok\/h$/);
    await pollAssertion('a period without writes', async () => {
      const before = apiRequests.length;
      // The operator refreshes its data several times in this period.
      await sleep(3_000);
      const written = apiRequests.slice(before).filter(isWriteRequest);
      assert.deepEqual(
        written.map(({ method, path }) => `${method} ${path}`),
        [],
      );
    });
  });

  it('a lost store is reported to followers, to agents with queued messages and to every policy', async () => {
    const { apiServer } = fixture;
    await apiServer.apply(buildAgent('team-a', 'unlucky', { suspend: true }));
    const { metadata } = await apiServer.waitForAgent('team-a', 'unlucky', 'is suspended', hasReadyReason('Suspended'));
    const isWaiting = (agent: StoredAgent) => agent.status?.queue === 1;
    const gateway = await fixture.connectGateway();
    const lines = createSessionEvents(gateway);
    const send = (key: string) =>
      createNatsInbox(gateway).publish(metadata.uid, { uid: 'user', key }, newMessage('never read'));
    const eventsOf = async (name: string, reason: string) => {
      const fieldSelector = `involvedObject.name=${name},reason=${reason}`;
      const found = await apiServer.client.list<PlainObject>(
        TYPES.events,
        { namespace: 'team-a', fieldSelector },
        NEVER_ABORTED,
      );
      return found.map(({ message, count }) => ({ message: String(message), count: Number(count) }));
    };
    await send('first');
    await apiServer.waitForAgent('team-a', 'unlucky', 'has a message', isWaiting);
    const sequence = await lines.append(metadata.uid, 's-1', LINE);
    const signal = AbortSignal.timeout(4 * TIMEOUT_MS);
    const followOnce = async (after: number, complete: boolean) => {
      for await (const line of lines.follow(metadata.uid, 's-1', { after, failOnStoreLoss: complete, signal }))
        return line;
      return undefined;
    };
    // A follower asks again when NATS does not answer.
    const follow = (after: number, complete: boolean) => withRetry(() => followOnce(after, complete));
    const certain = assert.rejects(follow(sequence, true), { code: 'TEMPER_NATS_DATA_LOST' });
    const open = follow(sequence, false);
    const before = (await eventsOf('standard', 'NATSDataLost')).reduce((sum, { count }) => sum + count, 0);
    await fixture.loseStore();
    await mkdir(fixture.storeFolder);
    await server.restart();
    await certain;
    const next = await withRetry(() => lines.append(metadata.uid, 's-1', { ...LINE, message: 'msg-2' }));
    assert.ok(next > sequence, 'sequence numbers are not reused');
    assert.deepEqual(await open, { ...LINE, message: 'msg-2', seq: next });
    const [lost] = await pollValue(
      'an Event about the lost message',
      () => eventsOf('unlucky', 'MessagesLost'),
      (found) => found.length > 0,
    );
    assert.match(lost?.message ?? '', /1 message that was waiting .* lost; send unanswered messages again/);
    await apiServer.waitForAgent('team-a', 'unlucky', 'has an empty queue', (agent) => agent.status?.queue === 0);

    // The next store is lost while no operator runs.
    await send('second');
    await apiServer.waitForAgent('team-a', 'unlucky', 'has a message again', isWaiting);
    await fixture.operator[Symbol.asyncDispose]();
    await fixture.loseStore();
    await mkdir(fixture.storeFolder);
    await server.restart();
    fixture.operator = await fixture.startOperator(shortPauses);
    await pollValue(
      'an Event about the second message',
      () => eventsOf('unlucky', 'MessagesLost'),
      (found) => found.reduce((sum, { count }) => sum + count, 0) === 2,
    );
    await pollValue(
      'one Event per lost store',
      () => eventsOf('standard', 'NATSDataLost'),
      (found) => found.reduce((sum, { count }) => sum + count, 0) === before + 2,
    );
    assert.deepEqual(await eventsOf('bystander', 'MessagesLost'), [], 'agents without messages get no Event');
    await waitUntilConnected();
  });

  it('nats-server loads a renewed certificate once it is mounted, without closing connections', async () => {
    const { apiServer, config } = fixture;
    const { url } = natsOf(fixture);
    const gateway = await fixture.connectGateway();
    const served = async () => (await readServerInfo(url, AbortSignal.timeout(TIMEOUT_MS))).certificate;
    const before = await served();
    const { id } = await readServerInfo(url, AbortSignal.timeout(TIMEOUT_MS));
    const ref = { namespace: config.namespace, name: RELEASE_OBJECTS.natsCertificate };
    await apiServer.client.delete(TYPES.secrets, ref, {}, NEVER_ABORTED);
    const secret = await pollValue(
      'a new certificate',
      () => fixture.readSecret(ref.name),
      (found) => found !== undefined,
    );
    const renewed = new X509Certificate(secret?.['tls.crt'] ?? '').raw;
    assert.ok(!renewed.equals(before));
    await pollValue(
      'a reload before the mount',
      async () => fixture.logLines.some((line) => line.includes('server has not reloaded')),
      (logged) => logged,
    );
    assert.ok((await served()).equals(before), 'the server still has the previous files');
    await fixture.mountSecrets();
    await pollValue('the new certificate', served, (certificate) => certificate.equals(renewed));
    assert.equal((await readServerInfo(url, AbortSignal.timeout(TIMEOUT_MS))).id, id, 'the server was not restarted');
    assert.equal(gateway.state().connected, true);
    await gateway.nats.flush();
    await fixture.connectGateway();
  });

  trustTests(() => fixture);

  scheduleTests(() => fixture);

  platformEventTests(() => fixture);

  it('nats-server accepts new users after their keys were lost', async () => {
    const { apiServer, config } = fixture;
    // The suites before this one leave an operator that looks at its Secrets once a minute.
    await fixture.operator[Symbol.asyncDispose]();
    fixture.operator = await fixture.startOperator(shortPauses);
    await waitUntilConnected();
    const old = await fixture.connectGateway();
    const ref = { namespace: config.namespace, name: RELEASE_OBJECTS.natsUsers };
    const before = await fixture.readSecret(ref.name);
    await apiServer.client.delete(TYPES.secrets, ref, {}, NEVER_ABORTED);
    const configured = () => fixture.readSecret(RELEASE_OBJECTS.natsConfiguration);
    const text = (await configured())?.['nats-server.conf'];
    await pollValue('a configuration with new users', configured, (found) => found?.['nats-server.conf'] !== text);
    assert.notDeepEqual(await fixture.readSecret(ref.name), before);
    await fixture.mountSecrets();
    await fixture.connectGateway();
    await pollValue(
      'the previous gateway connection',
      async () => old.state().connected,
      (isConnected) => isConnected,
    );
    await waitUntilConnected();
  });

  it('only the operator can reload nats-server', async () => {
    const gateway = await fixture.connectGateway();
    const { id } = await readServerInfo(natsOf(fixture).url, AbortSignal.timeout(TIMEOUT_MS));
    const reload = gateway.nats.request(`$SYS.REQ.SERVER.${id}.RELOAD`, '', { timeout: TIMEOUT_MS });
    await assert.rejects(reload, /permissions violation/i);
    const users = await fixture.readSecret(RELEASE_OBJECTS.natsUsers);
    assert.deepEqual(Object.keys(users ?? {}).sort(), ['gateway.nk', 'operator.nk']);
  });
});

async function openLedger(fixture: OperatorNatsFixture): Promise<SharedLedger> {
  const store = createDocumentStore(await fixture.connectGateway(), BUCKETS.ledger);
  const failed = (error: unknown) => assert.fail(String(error));
  return openSharedLedger({ store, clock: systemClock, ids: ulids, random: Math.random, onError: failed });
}

function natsOf({ config }: OperatorNatsFixture) {
  assert.ok(config.nats !== undefined);
  return config.nats;
}
