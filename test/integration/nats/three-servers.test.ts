import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createUser } from '@nats-io/nkeys';
import { systemClock } from '../../../src/lib/clock.ts';
import { isTemperError } from '../../../src/lib/errors.ts';
import { connectNats, type JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { createNatsInbox, type NatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { reconcileTopology } from '../../../src/nats/jetstream/topology.ts';
import { type NatsServer, startNats } from '../../cluster/nats-server.ts';
import { freePorts } from '../../cluster/process.ts';
import { newMessage, newUid } from '../../support/nats/nats-fixture.ts';
import { poll, pollAssertion } from '../../support/poll.ts';

const STORE_BYTES = 64 * 1_024 * 1_024;
const TIMEOUT_MS = 60_000;
const AGENTS = 4;
const SESSIONS = ['s-1', 's-2', 's-3'];
const MESSAGES = 12;

interface Cluster extends AsyncDisposable {
  servers: readonly NatsServer[];
  /** A connection to one of the servers only. */
  connect(server: number): Promise<JetStreamConnection>;
}

async function startCluster(): Promise<Cluster> {
  const stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'temper-cluster-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const user = createUser();
  const seedFile = join(folder, 'user.nk');
  await writeFile(seedFile, `${Buffer.from(user.getSeed()).toString()}\n`, { mode: 0o600 });
  const ports = Object.values(await freePorts('one', 'two', 'three'));
  const routes = ports.map((port) => `nats://127.0.0.1:${port}`).join(', ');
  const config = (port: number, index: number): string => `
    server_name: n${index}
    cluster { name: test, listen: "127.0.0.1:${port}", routes: [${routes}] }
    jetstream { max_file_store: ${STORE_BYTES}, sync_interval: always }
    authorization { users: [{ nkey: ${user.getPublicKey()} }] }`;
  const servers = await Promise.all(
    ports.map(async (port, index) => stack.use(await startNats({ jetstream: true, config: config(port, index) }))),
  );
  const connect = async (server: number): Promise<JetStreamConnection> => {
    const url = servers[server]?.url ?? '';
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const options = { servers: url, name: 'test', user: 'gateway', seedFile, clock: systemClock, signal };
    return stack.use(await connectNats(options));
  };
  return { servers, connect, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** Repeats the call while NATS is unavailable, as every caller does. */
async function withRetry<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isTemperError(error) || error.retry !== 'backoff') throw error;
      await sleep(50);
    }
  }
}

describe('inboxes on three servers', () => {
  it('no message is lost, delivered again after its acknowledgement or out of order while a server is killed', {
    timeout: 300_000,
  }, async () => {
    await using cluster = await startCluster();
    const operator = await cluster.connect(2);
    await pollAssertion(
      'the streams',
      () => reconcileTopology(operator, { storeBytes: STORE_BYTES, replicas: 3 }).then(() => undefined),
      { timeoutMs: TIMEOUT_MS },
    );
    const rules = { ackWaitsMs: [2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000] };
    const inboxes = [
      createNatsInbox(await cluster.connect(1), rules),
      createNatsInbox(await cluster.connect(2), rules),
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
    for (let round = 0; round < 2 && !stop.signal.aborted; round += 1) {
      const enough = (total * (round + 1)) / 4;
      await poll('some messages', () => count >= enough || stop.signal.aborted, { timeoutMs: TIMEOUT_MS });
      // Server 0 serves no client: it is a replica, and with luck the leader of some streams.
      await cluster.servers[0]?.kill();
      await cluster.servers[0]?.restart();
    }
    await working;
    assert.deepEqual(deliveredAgain, []);
    const inOrder = Array.from({ length: MESSAGES }, (_, index) => String(index));
    for (const uid of uids) {
      for (const session of SESSIONS) assert.deepEqual(acked.get(`${uid} ${session}`), inOrder);
      assert.deepEqual(await inboxes[0].depth(uid), { pending: 0, inFlight: 0 });
    }
  });
});
