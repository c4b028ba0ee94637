import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../../src/lib/errors.ts';
import { createNatsInbox, type InboxDelivery } from '../../../src/nats/inbox/inbox.ts';
import { desiredStreams, reconcileTopology } from '../../../src/nats/jetstream/topology.ts';
import { newMessage, newUid, STORE_BYTES, startNatsFixture } from '../../support/nats/nats-fixture.ts';
import { poll } from '../../support/poll.ts';

const INBOXES = 10_000;
/** More agents than nats-server permits consumers per stream. */
const WAITING = 1_100;
const BATCH = 100;
/** Streams and consumers together: on three servers each is a Raft group. */
const MAX_ASSETS = 20;
const TIMEOUT_MS = 60_000;

async function inBatches<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let first = 0; first < items.length; first += BATCH) {
    await Promise.all(items.slice(first, first + BATCH).map(work));
  }
}

describe('many inboxes', () => {
  it(`${INBOXES} inboxes need no stream and no consumer of their own, and each delivers`, {
    timeout: 600_000,
  }, async () => {
    await using bus = await startNatsFixture();
    const [sending, fetching] = [await bus.connect('gateway'), await bus.connect('gateway')];
    const [sender, receiver] = [createNatsInbox(sending), createNatsInbox(fetching)];
    const uids = Array.from({ length: INBOXES }, newUid);
    const signal = AbortSignal.timeout(300_000);
    const waiting = uids.slice(0, WAITING).map((uid) => receiver.fetchNext(uid, 300_000, signal));
    await poll('all agents to wait', async () => {
      const { connections } = (await (await fetch(`${bus.monitoring}/connz`)).json()) as {
        connections: { subscriptions: number }[];
      };
      return connections.some(({ subscriptions }) => subscriptions > WAITING);
    });
    // A call that a busy machine timed out is repeated; the key is the same.
    await inBatches(uids, async (uid) => {
      for (;;) {
        try {
          await sender.publish(uid, { uid: 'user', key: uid }, newMessage(uid));
          return;
        } catch (error) {
          if (!isTemperError(error, 'TEMPER_BUS_UNAVAILABLE')) throw error;
        }
      }
    });
    const received = await Promise.all(waiting);
    assert.deepEqual(
      received.map((delivery) => delivery?.message.text),
      uids.slice(0, WAITING),
    );
    await inBatches(
      received.filter((delivery): delivery is InboxDelivery => delivery !== undefined),
      ({ coordinates }) => receiver.ack(coordinates),
    );
    const last = uids.at(-1) ?? '';
    const delivery = await poll('the last message', () => receiver.fetchNext(last, TIMEOUT_MS, signal));
    assert.equal(delivery.message.text, last);
    const { streams, consumers } = (await (await fetch(`${bus.monitoring}/jsz`)).json()) as Record<string, number>;
    assert.equal(streams, desiredStreams().length);
    assert.ok((streams ?? 0) + (consumers ?? 0) <= MAX_ASSETS, `${streams} streams and ${consumers} consumers`);
    assert.deepEqual(await receiver.depth(uids[0] ?? ''), { pending: 0, inFlight: 0 });
  });

  it('messages of a release with a consumer per agent are delivered, and the operator deletes the consumers', async () => {
    await using bus = await startNatsFixture({
      users: { older: { publish: ['$JS.API.>', '$JS.ACK.>'], subscribe: [] } },
    });
    const [operator, gateway, older] = [
      await bus.connect('operator'),
      await bus.connect('gateway'),
      await bus.connect('older'),
    ];
    const inbox = createNatsInbox(gateway);
    const uids = [newUid(), newUid()];
    for (const uid of uids) {
      for (const text of ['one', 'two'])
        await inbox.publish(uid, { uid: 'user', key: `${uid} ${text}` }, newMessage(text));
      const config = {
        durable_name: uid,
        filter_subject: `temper.inbox.${uid}`,
        ack_policy: 'explicit',
        max_ack_pending: 1,
      };
      await older.manager.consumers.add('temper-inbox', config as object);
      const consumer = await older.jetstream.consumers.get('temper-inbox', uid);
      assert.equal((await consumer.next())?.json<{ text: string }>().text, 'one');
    }
    assert.deepEqual((await reconcileTopology(operator, { storeBytes: STORE_BYTES })).drift, []);
    assert.equal((await operator.manager.streams.info('temper-inbox')).state.consumer_count, 0);
    for (const uid of uids) {
      for (const text of ['one', 'two']) {
        const delivery = await inbox.fetchNext(uid, TIMEOUT_MS, AbortSignal.timeout(TIMEOUT_MS));
        assert.equal(delivery?.message.text, text);
        if (delivery !== undefined) await inbox.ack(delivery.coordinates);
      }
    }
  });
});
