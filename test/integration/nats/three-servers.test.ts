import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isTemperError } from '../../../src/lib/errors.ts';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { createNatsInbox, type NatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { STREAMS } from '../../../src/nats/jetstream/names.ts';
import { reconcileTopology } from '../../../src/nats/jetstream/topology.ts';
import { CLUSTER_STORE_BYTES, type NatsClusterFixture, startNatsCluster } from '../../support/nats/cluster-fixture.ts';
import { newMessage, newUid } from '../../support/nats/nats-fixture.ts';
import { withRetry } from '../../support/nats/retry.ts';
import { poll, pollAssertion } from '../../support/poll.ts';

const TIMEOUT_MS = 60_000;
const AGENTS = 4;
const SESSIONS = ['s-1', 's-2', 's-3'];
const SERVERS = [0, 1, 2];
/** How often each server is killed, and how long the leader hangs; `make chaos` sets both higher. */
const KILLS = Number(process.env['KILLS'] ?? 2);
const HANG_MS = Number(process.env['HANG_SECONDS'] ?? 10) * 1_000;
const MESSAGES_PER_KILL = 4;
const TEST_TIMEOUT_MS = 300_000 + KILLS * 120_000 + HANG_MS;

/** Sends and receives while `disturb` runs, and checks that each message was acknowledged once, and delivered in the order of its session. */
async function exchange(
  cluster: NatsClusterFixture,
  { messages, servers }: { messages: number; servers: readonly [number | undefined, number | undefined] },
  disturb: (progress: { count: () => number; total: number; isStopped: () => boolean }) => Promise<void>,
): Promise<void> {
  const rules = { ackWaitsMs: Array.from({ length: 50 }, () => 2_000) };
  const [one, two] = servers;
  const inboxes = [
    createNatsInbox(await cluster.connect('gateway', one), rules),
    createNatsInbox(await cluster.connect('gateway', two), rules),
  ] as const;
  const uids = Array.from({ length: AGENTS }, newUid);
  const acked = new Map<string, string[]>();
  /** First deliveries. An acknowledgement whose response was lost is complete here only after later messages. */
  const delivered = new Map<string, string[]>();
  const deliveredAgain: string[] = [];
  const total = AGENTS * SESSIONS.length * messages;
  let count = 0;
  const stop = new AbortController();
  const send = async (uid: string): Promise<void> => {
    for (let index = 0; index < messages; index += 1) {
      for (const session of SESSIONS) {
        const key = { uid: 'user', key: `${uid} ${session} ${index}` };
        await withRetry(() => inboxes[index % 2 === 0 ? 0 : 1].publish(uid, key, newMessage(String(index), session)));
      }
    }
  };
  const receive = async (uid: string, inbox: NatsInbox, other: NatsInbox): Promise<void> => {
    while (count < total && !stop.signal.aborted) {
      const delivery = await withRetry(() => inbox.fetchNext(uid, 500, AbortSignal.timeout(TIMEOUT_MS)));
      if (delivery === undefined) continue;
      const { message, coordinates } = delivery;
      const key = `${uid} ${message.session}`;
      const ended = acked.get(key) ?? [];
      acked.set(key, ended);
      delivered.set(key, [...new Set([...(delivered.get(key) ?? []), message.text])]);
      if (ended.includes(message.text)) deliveredAgain.push(message.text);
      try {
        if (coordinates.deliveries === 1 && Number(message.text) % 4 === 1) {
          await withRetry(() => inbox.retry(coordinates, 50));
          continue;
        }
        await withRetry(() => other.ack(coordinates));
      } catch (error) {
        // The other receiver of this agent got it again meanwhile.
        assert.ok(
          isTemperError(error, 'TEMPER_DELIVERY_LOST') || isTemperError(error, 'TEMPER_NOT_FOUND'),
          String(error),
        );
        continue;
      }
      ended.push(message.text);
      count += 1;
    }
  };
  const working = Promise.all(
    uids.flatMap((uid) => [send(uid), receive(uid, inboxes[0], inboxes[1]), receive(uid, inboxes[1], inboxes[0])]),
  );
  working.catch(() => stop.abort());
  await disturb({ count: () => count, total, isStopped: () => stop.signal.aborted });
  await working;
  assert.deepEqual(deliveredAgain, []);
  const inOrder = Array.from({ length: messages }, (_, index) => String(index));
  for (const uid of uids) {
    for (const session of SESSIONS) {
      assert.deepEqual(delivered.get(`${uid} ${session}`), inOrder);
      assert.deepEqual(acked.get(`${uid} ${session}`)?.toSorted(byNumber), inOrder);
    }
    assert.deepEqual(await withRetry(() => inboxes[0].depth(uid)), { pending: 0, inFlight: 0 });
  }
}

const byNumber = (one: string, other: string): number => Number(one) - Number(other);

describe('inboxes on three servers', () => {
  let cluster: NatsClusterFixture;
  let operator: JetStreamConnection;
  before(async () => {
    cluster = await startNatsCluster();
    operator = await cluster.connect('operator');
    const options = { storeBytes: CLUSTER_STORE_BYTES, replicas: 3 };
    await pollAssertion('the streams', () => reconcileTopology(operator, options), { timeoutMs: TIMEOUT_MS });
  });
  after(async () => {
    await cluster?.[Symbol.asyncDispose]();
  });

  it(`no message is lost, delivered again after its acknowledgement or out of order while each server is killed ${KILLS} times`, {
    timeout: TEST_TIMEOUT_MS,
  }, async () => {
    const kills = SERVERS.length * KILLS;
    const options = { messages: MESSAGES_PER_KILL * kills, servers: [undefined, undefined] } as const;
    await exchange(cluster, options, async ({ count, total, isStopped }) => {
      for (let kill = 0; kill < kills && !isStopped(); kill += 1) {
        await poll('some messages', () => count() >= (total * kill) / kills || isStopped(), { timeoutMs: TIMEOUT_MS });
        const server = kill % SERVERS.length;
        await cluster.servers[server]?.kill();
        await cluster.servers[server]?.restart();
        // As a rolling update does: the next server ends only when this one has all streams again.
        await poll('the streams of the server', () => cluster.isHealthy(server, ''), { timeoutMs: TIMEOUT_MS });
      }
    });
  });

  it(`messages go on while the leader of the inboxes hangs for ${HANG_MS / 1_000} seconds, and none is lost or delivered again after it returns`, {
    timeout: TEST_TIMEOUT_MS,
  }, async () => {
    const info = await withRetry(() => operator.request(() => operator.manager.streams.info(STREAMS.inbox)));
    const leader = Number(/^temper-nats-(\d)$/.exec(info.cluster?.leader ?? '')?.[1]);
    const [one, two] = SERVERS.filter((server) => server !== leader);
    await exchange(cluster, { messages: 20, servers: [one, two] }, async ({ count, total, isStopped }) => {
      await poll('some messages', () => count() >= total / 4 || isStopped(), { timeoutMs: TIMEOUT_MS });
      cluster.servers[leader]?.pause();
      try {
        const before = count();
        const hang = sleep(HANG_MS);
        await poll('messages without the leader', () => count() >= before + total / 4 || isStopped(), {
          timeoutMs: TIMEOUT_MS,
        });
        await hang;
      } finally {
        cluster.servers[leader]?.resume();
      }
      await poll('the streams of the server', () => cluster.isHealthy(leader, ''), { timeoutMs: TIMEOUT_MS });
    });
  });
});
