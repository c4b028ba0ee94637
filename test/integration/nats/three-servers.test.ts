import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../../src/lib/errors.ts';
import { createNatsInbox, type NatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { reconcileTopology } from '../../../src/nats/jetstream/topology.ts';
import { CLUSTER_STORE_BYTES, startNatsCluster } from '../../support/nats/cluster-fixture.ts';
import { newMessage, newUid } from '../../support/nats/nats-fixture.ts';
import { withRetry } from '../../support/nats/retry.ts';
import { poll, pollAssertion } from '../../support/poll.ts';

const TIMEOUT_MS = 60_000;
const AGENTS = 4;
const SESSIONS = ['s-1', 's-2', 's-3'];
const MESSAGES = 24;
/** How often each server is killed. */
const ROUNDS = 2;
const SERVERS = [0, 1, 2];

describe('inboxes on three servers', () => {
  it('no message is lost, delivered again after its acknowledgement or out of order while each server is killed twice', {
    timeout: 300_000,
  }, async () => {
    await using cluster = await startNatsCluster();
    const operator = await cluster.connect('operator');
    await pollAssertion(
      'the streams',
      () => reconcileTopology(operator, { storeBytes: CLUSTER_STORE_BYTES, replicas: 3 }).then(() => undefined),
      { timeoutMs: TIMEOUT_MS },
    );
    const rules = { ackWaitsMs: Array.from({ length: 50 }, () => 2_000) };
    const inboxes = [
      createNatsInbox(await cluster.connect('gateway'), rules),
      createNatsInbox(await cluster.connect('gateway'), rules),
    ] as const;
    const uids = Array.from({ length: AGENTS }, newUid);
    const acked = new Map<string, string[]>();
    const deliveredAgain: string[] = [];
    const total = AGENTS * SESSIONS.length * MESSAGES;
    let count = 0;
    const stop = new AbortController();
    const send = async (uid: string): Promise<void> => {
      for (let index = 0; index < MESSAGES; index += 1) {
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
        const ended = acked.get(`${uid} ${message.session}`) ?? [];
        acked.set(`${uid} ${message.session}`, ended);
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
    const kills = SERVERS.length * ROUNDS;
    for (let kill = 0; kill < kills && !stop.signal.aborted; kill += 1) {
      const enough = (total * kill) / kills;
      await poll('some messages', () => count >= enough || stop.signal.aborted, { timeoutMs: TIMEOUT_MS });
      const server = kill % SERVERS.length;
      await cluster.servers[server]?.kill();
      await cluster.servers[server]?.restart();
      // As a rolling update does: the next server ends only when this one has all streams again.
      await poll('the streams of the server', () => cluster.isHealthy(server, ''), { timeoutMs: TIMEOUT_MS });
    }
    await working;
    assert.deepEqual(deliveredAgain, []);
    const inOrder = Array.from({ length: MESSAGES }, (_, index) => String(index));
    for (const uid of uids) {
      for (const session of SESSIONS) assert.deepEqual(acked.get(`${uid} ${session}`), inOrder);
      assert.deepEqual(await withRetry(() => inboxes[0].depth(uid)), { pending: 0, inFlight: 0 });
    }
  });
});
