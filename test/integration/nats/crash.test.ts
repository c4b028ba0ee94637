import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { createSessionEvents } from '../../../src/nats/session-events.ts';
import { createNatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { createSessionStore } from '../../../src/nats/sessions/session-store.ts';
import { userMessage } from '../../contracts/stores.ts';
import { newMessage, newUid, startNatsFixture, type NatsFixture } from '../../support/nats/nats-fixture.ts';
import { withRetry } from '../../support/nats/retry.ts';
import { poll, pollValue } from '../../support/poll.ts';

/** `make chaos` sets more. */
const ROUNDS = Number(process.env['KILLS'] ?? 5);
const SHORT_DEADLINES = { ackWaitsMs: Array.from({ length: 50 }, () => 1_500) };
const TIMEOUT_MS = 60_000;

/** Kills and restarts nats-server repeatedly while the work runs, each time after it has done something, then waits until the work ends. */
async function whileCrashing(
  bus: NatsFixture,
  connections: JetStreamConnection[],
  done: () => number,
  work: (isStopping: () => boolean) => Promise<void>[],
) {
  const stop = new AbortController();
  const works = Promise.all(work(() => stop.signal.aborted)).finally(() => stop.abort());
  // `await works` below reports a failure; this handler only prevents an unhandled rejection.
  works.catch(() => undefined);
  for (let round = 0; round < ROUNDS && !stop.signal.aborted; round += 1) {
    const before = done();
    await sleep(100 + (round % 5) * 30);
    await poll(`work in round ${round}`, () => done() > before || stop.signal.aborted);
    await bus.server.kill();
    await bus.server.restart();
    await Promise.all(connections.map((connection) => connection.ready(TIMEOUT_MS)));
  }
  stop.abort();
  await works;
}

describe(`NATS while nats-server is killed ${ROUNDS} times`, () => {
  it('the inbox loses no confirmed message and redelivers no acknowledged one', {
    timeout: 60_000 + ROUNDS * 30_000,
  }, async () => {
    await using bus = await startNatsFixture();
    const [sending, fetching, settling] = [
      await bus.connect('gateway'),
      await bus.connect('gateway'),
      await bus.connect('gateway'),
    ];
    const [sender, fetcher, settler] = [
      createNatsInbox(sending),
      createNatsInbox(fetching, SHORT_DEADLINES),
      createNatsInbox(settling),
    ];
    const uids = [newUid(), newUid()];
    const sent = new Map<string, Set<string>>(uids.map((uid) => [uid, new Set()]));
    const ended = new Set<string>();
    const endedTwice: string[] = [];
    let redelivered = 0;
    const send = async (uid: string, isStopping: () => boolean): Promise<void> => {
      for (let index = 0; !isStopping(); index += 1) {
        const key = { uid, key: String(index) };
        const { id } = await withRetry(() => sender.publish(uid, key, newMessage(String(index))));
        sent.get(uid)?.add(id);
      }
    };
    const take = async (uid: string, isStopping: () => boolean): Promise<void> => {
      for (;;) {
        const delivery = await withRetry(() => fetcher.fetchNext(uid, 500, AbortSignal.timeout(TIMEOUT_MS)));
        if (delivery === undefined) {
          const { pending: waiting, inFlight } = await withRetry(() => fetcher.depth(uid));
          if (isStopping() && waiting + inFlight === 0) return;
          continue;
        }
        if (delivery.coordinates.deliveries > 1) redelivered += 1;
        if (ended.has(delivery.message.id)) endedTwice.push(delivery.message.id);
        await withRetry(() => settler.ack(delivery.coordinates));
        ended.add(delivery.message.id);
      }
    };
    const confirmed = () => uids.reduce((sum, uid) => sum + (sent.get(uid)?.size ?? 0), 0);
    await whileCrashing(bus, [sending, fetching, settling], confirmed, (isStopping) =>
      uids.flatMap((uid) => [send(uid, isStopping), take(uid, isStopping)]),
    );
    const all = uids.flatMap((uid) => [...(sent.get(uid) ?? [])]);
    assert.ok(all.length >= ROUNDS, `only ${all.length} messages were sent`);
    assert.deepEqual(
      all.filter((id) => !ended.has(id)),
      [],
    );
    assert.deepEqual(endedTwice, []);
    console.log(`${all.length} messages, ${redelivered} delivered again, 0 lost, 0 twice`);
  });

  it('sessions stay complete and followers have no gaps', { timeout: 60_000 + ROUNDS * 30_000 }, async () => {
    await using bus = await startNatsFixture();
    const connection = await bus.connect('gateway');
    const uid = newUid();
    const [store, events] = [createSessionStore(connection, uid), createSessionEvents(connection)];
    let [items, lines] = [0, 0];
    const seen: string[] = [];
    const follower = new AbortController();
    const follow = async (): Promise<void> => {
      let after = 0;
      while (!follower.signal.aborted) {
        await withRetry(async () => {
          for await (const line of events.follow(uid, 's', { after, signal: follower.signal })) {
            after = line.seq;
            if (line.kind === 'reply') seen.push(line.message);
          }
        });
      }
    };
    const following = follow();
    const written = () => Math.min(items, lines);
    await whileCrashing(bus, [connection], written, (isStopping) => [
      (async () => {
        for (; !isStopping(); ) items = await withRetry(() => store.append('s', items, [userMessage(String(items))]));
      })(),
      (async () => {
        for (; !isStopping(); lines += 1) {
          const line = { kind: 'reply', message: `m${lines}`, text: 'x', finishReason: 'complete' } as const;
          await withRetry(() => events.append(uid, 's', line));
        }
      })(),
    ]);
    const history = await withRetry(() => store.load('s'));
    assert.deepEqual(
      history.items.map(({ text }) => text),
      Array.from({ length: items }, (_, index) => String(index)),
    );
    try {
      await pollValue(
        `${lines} followed lines`,
        () => seen.length,
        (count) => count >= lines,
      );
    } finally {
      follower.abort();
      await following;
    }
    assert.deepEqual(
      seen,
      Array.from({ length: lines }, (_, index) => `m${index}`),
    );
    console.log(`${items} appends, ${lines} lines, none lost, none twice`);
  });
});
