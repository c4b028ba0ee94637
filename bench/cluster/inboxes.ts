import { createNatsInbox, type InboxDelivery } from '../../src/nats/inbox/inbox.ts';
import { newMessage, newUid, startNatsFixture, type NatsFixture } from '../../test/support/nats/nats-fixture.ts';
import { quantile } from '../baseline/baseline.ts';
import { atMost, mebibytes, milliseconds, plain, type Row } from './row.ts';

const SIZES = [100, 10_000, 100_000];
const STORE_BYTES = 2 * 1_024 ** 3;
const BATCH = 200;
const ROUNDS = 500;
/** Streams and consumers, and so Raft groups on three servers, however many agents there are. */
const MAX_ASSETS = 20;
const TIMEOUT_MS = 60_000;

/** Deliveries while more and more inboxes have a message: publish, fetch and acknowledge, each confirmed by a synced store. */
export async function benchInboxes(): Promise<Row[]> {
  await using nats = await startNatsFixture({ storeBytes: STORE_BYTES });
  const inbox = createNatsInbox(await nats.connect('gateway'));
  const uids: string[] = [];
  const rows: Row[] = [];
  for (const size of SIZES) {
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
    const { assets, bytes } = await serverLoad(nats);
    const note = `p99 ${milliseconds(quantile(times, 0.99))}, server memory ${mebibytes(bytes)}`;
    rows.push(
      {
        what: `publish, fetch and acknowledge, ${size} inboxes, p50`,
        kind: 'reference',
        value: milliseconds(quantile(times, 0.5)),
        note,
      },
      atMost('requirement', `streams and consumers of ${size} inboxes`, assets, MAX_ASSETS, plain),
    );
  }
  return rows;
}

async function next(fetching: Promise<InboxDelivery | undefined>): Promise<InboxDelivery> {
  const delivery = await fetching;
  if (delivery === undefined) throw new Error('no message arrived');
  return delivery;
}

async function serverLoad({ monitoring }: NatsFixture): Promise<{ assets: number; bytes: number }> {
  const read = async (path: string) => (await (await fetch(`${monitoring}/${path}`)).json()) as Record<string, number>;
  const [{ streams = 0, consumers = 0 }, { mem = 0 }] = await Promise.all([read('jsz'), read('varz')]);
  return { assets: streams + consumers, bytes: mem };
}
