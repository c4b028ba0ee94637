import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isTemperError } from '../../src/lib/errors.ts';
import type { BusConnection } from '../../src/nats/connection.ts';
import { createEvents } from '../../src/nats/events.ts';
import { createInbox } from '../../src/nats/inbox.ts';
import { createSessionStore } from '../../src/nats/session-store.ts';
import { user } from '../contracts/stores.ts';
import { newMessage, newUid, startBus, type TestBus } from './nats-bus.ts';

const ROUNDS = 20;
const LEASES = { leasesMilliseconds: Array.from({ length: 50 }, () => 1_500) };
const PATIENCE = 60_000;

/** As every caller does: the same call again while the bus is away. */
async function persistent<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      // A full inbox is how a sender learns that it is too quick.
      if (!isTemperError(error) || error.retry !== 'backoff') throw error;
      await sleep(20);
    }
  }
}

/** Kills the server in the middle of the work, again and again, then lets the work end. */
async function crashing(bus: TestBus, connections: BusConnection[], work: (over: () => boolean) => Promise<void>[]) {
  const stop = new AbortController();
  const works = Promise.all(work(() => stop.signal.aborted)).finally(() => stop.abort());
  // Told below; a failure in between must not be nobody's.
  works.catch(() => undefined);
  for (let round = 0; round < ROUNDS && !stop.signal.aborted; round += 1) {
    await sleep(100 + (round % 5) * 30);
    await bus.server.kill();
    await bus.server.restart();
    await Promise.all(connections.map((connection) => connection.ready(PATIENCE)));
  }
  stop.abort();
  await works;
}

describe(`a server that is killed ${ROUNDS} times in the middle of the work`, () => {
  it('loses no message it confirmed and gives none again whose end it confirmed', { timeout: 120_000 }, async () => {
    await using bus = await startBus();
    const [sending, fetching, settling] = [
      await bus.connect('gateway'),
      await bus.connect('gateway'),
      await bus.connect('gateway'),
    ];
    const [sender, fetcher, settler] = [createInbox(sending), createInbox(fetching, LEASES), createInbox(settling)];
    const uids = [newUid(), newUid()];
    const sent = new Map<string, Set<string>>(uids.map((uid) => [uid, new Set()]));
    const ended = new Set<string>();
    const endedTwice: string[] = [];
    let redelivered = 0;
    const send = async (uid: string, over: () => boolean): Promise<void> => {
      for (let index = 0; !over(); index += 1) {
        const key = { uid, key: String(index) };
        const { id } = await persistent(() => sender.publish(uid, key, newMessage(String(index))));
        sent.get(uid)?.add(id);
      }
    };
    const take = async (uid: string, over: () => boolean): Promise<void> => {
      for (;;) {
        const delivery = await persistent(() => fetcher.fetchNext(uid, 500, AbortSignal.timeout(PATIENCE)));
        if (delivery === undefined) {
          const { waiting, inFlight } = await persistent(() => fetcher.waiting(uid));
          if (over() && waiting + inFlight === 0) return;
          continue;
        }
        if (delivery.coordinates.deliveries > 1) redelivered += 1;
        if (ended.has(delivery.message.id)) endedTwice.push(delivery.message.id);
        await persistent(() => settler.ack(delivery.coordinates));
        ended.add(delivery.message.id);
      }
    };
    await crashing(bus, [sending, fetching, settling], (over) =>
      uids.flatMap((uid) => [send(uid, over), take(uid, over)]),
    );
    const all = uids.flatMap((uid) => [...(sent.get(uid) ?? [])]);
    assert.ok(all.length > 100, `only ${all.length} messages were sent`);
    assert.deepEqual(
      all.filter((id) => !ended.has(id)),
      [],
    );
    assert.deepEqual(endedTwice, []);
    console.log(`${all.length} messages, ${redelivered} delivered again, 0 lost, 0 twice`);
  });

  it('keeps sessions whole and followers without gaps', { timeout: 120_000 }, async () => {
    await using bus = await startBus();
    const connection = await bus.connect('gateway');
    const uid = newUid();
    const [store, events] = [createSessionStore(connection, uid), createEvents(connection)];
    let [items, lines] = [0, 0];
    const seen: string[] = [];
    const follower = new AbortController();
    const follow = async (): Promise<void> => {
      let after = 0;
      while (!follower.signal.aborted) {
        await persistent(async () => {
          for await (const line of events.follow(uid, 's', { after, signal: follower.signal })) {
            after = line.seq;
            if (line.kind === 'reply') seen.push(line.message);
          }
        });
      }
    };
    const following = follow();
    await crashing(bus, [connection], (over) => [
      (async () => {
        for (; !over(); ) items = await persistent(() => store.append('s', items, [user(String(items))]));
      })(),
      (async () => {
        for (; !over(); lines += 1) {
          const line = { kind: 'reply', message: `m${lines}`, text: 'x', ending: 'complete' } as const;
          await persistent(() => events.append(uid, 's', line));
        }
      })(),
    ]);
    const history = await persistent(() => store.load('s'));
    assert.deepEqual(
      history.items.map(({ text }) => text),
      Array.from({ length: items }, (_, index) => String(index)),
    );
    const end = performance.now() + PATIENCE;
    while (seen.length < lines && performance.now() < end) await sleep(50);
    follower.abort();
    await following;
    assert.deepEqual(
      seen,
      Array.from({ length: lines }, (_, index) => `m${index}`),
    );
    console.log(`${items} appends, ${lines} lines, none lost, none twice`);
  });
});
