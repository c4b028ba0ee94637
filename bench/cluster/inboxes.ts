import { createNatsInbox, type InboxDelivery } from '../../src/nats/inbox/inbox.ts';
import type { JetStreamConnection } from '../../src/nats/connection/connection.ts';
import { reconcileTopology } from '../../src/nats/jetstream/topology.ts';
import { pollAssertion } from '../../test/support/poll.ts';
import { newMessage, newUid, startNatsFixture } from '../../test/support/nats/nats-fixture.ts';
import { quantile } from '../baseline/baseline.ts';
import { type NatsUsage, NatsCluster, usageOf } from './scale/nats-cluster.ts';
import { atMost, mebibytes, milliseconds, plain, type Row } from './row.ts';

const SIZES = [100, 10_000];
const STORE_BYTES = 2 * 1_024 ** 3;
const BATCH = 200;
const ROUNDS = 500;
/** Streams and consumers, and so Raft groups on three servers, however many agents there are. */
const MAX_ASSETS = 20;
const TIMEOUT_MS = 60_000;

/** The p99 of a delivery with the most inboxes, relative to the fewest. */
const MAX_RATIO = 1.3;

interface InboxServers {
  readonly label: string;
  /** The largest number of inboxes. */
  readonly most: number;
  readonly connection: JetStreamConnection;
  readonly usage: () => Promise<NatsUsage>;
}

/** Deliveries while more and more inboxes have a message: publish, fetch and acknowledge, each confirmed by a synced store. */
export async function benchInboxes(most: number): Promise<Row[]> {
  await using nats = await startNatsFixture({ storeBytes: STORE_BYTES });
  const usage = () => usageOf(nats.monitoring);
  return await measureInboxes({ label: 'inboxes', most, connection: await nats.connect('gateway'), usage });
}

/** The same on three servers that replicate every stream. */
export async function benchReplicatedInboxes(most: number): Promise<Row[]> {
  await using nats = await NatsCluster.start();
  const operator = await nats.connect('operator');
  const reconcile = async () => void (await reconcileTopology(operator, { storeBytes: STORE_BYTES, replicas: 3 }));
  await pollAssertion('the streams', reconcile, { timeoutMs: TIMEOUT_MS });
  return await measureInboxes({
    label: 'inboxes on three servers',
    most,
    connection: await nats.connect('gateway'),
    usage: () => nats.usage(),
  });
}

async function measureInboxes({ label, most, connection, usage }: InboxServers): Promise<Row[]> {
  const inbox = createNatsInbox(connection);
  const uids: string[] = [];
  const rows: Row[] = [];
  const slowest: number[] = [];
  const sizes = [...SIZES.filter((size) => size < most), most];
  for (const size of sizes) {
    while (uids.length < size) {
      const batch = Array.from({ length: Math.min(BATCH, size - uids.length) }, newUid);
      await Promise.all(batch.map((uid) => inbox.publish(uid, { uid: 'user', key: uid }, newMessage('waits'))));
      uids.push(...batch);
    }
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const uid = uids[(round * 7_919) % size] ?? '';
      const start = performance.now();
      await inbox.publish(uid, { uid: 'user', key: `${uid} ${size} ${round}` }, newMessage('x'.repeat(400)));
      await inbox.ack((await next(inbox.fetchNext(uid, TIMEOUT_MS, AbortSignal.timeout(TIMEOUT_MS)))).coordinates);
      times.push(performance.now() - start);
    }
    const { streams, consumers, bytes } = await usage();
    slowest.push(quantile(times, 0.99));
    const note = `p99 ${milliseconds(quantile(times, 0.99))}, server memory ${mebibytes(bytes)}`;
    rows.push(
      {
        what: `publish, fetch and acknowledge, ${size} ${label}, p50`,
        kind: 'reference',
        value: milliseconds(quantile(times, 0.5)),
        note,
      },
      atMost('requirement', `streams and consumers of ${size} ${label}`, streams + consumers, MAX_ASSETS, plain),
    );
  }
  const ratio = (slowest.at(-1) ?? 0) / (slowest[0] ?? 1);
  const what = `publish, fetch and acknowledge: p99 of ${most} ${label} relative to ${sizes[0]}`;
  return [...rows, atMost('goal', what, ratio, MAX_RATIO, plain)];
}

async function next(fetching: Promise<InboxDelivery | undefined>): Promise<InboxDelivery> {
  const delivery = await fetching;
  if (delivery === undefined) throw new Error('no message arrived');
  return delivery;
}
