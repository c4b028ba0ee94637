import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { headers } from '@nats-io/transport-node';
import { isTemperError } from '../../src/lib/errors.ts';
import type { BusConnection } from '../../src/nats/connection.ts';
import { createDeadLetters } from '../../src/nats/dead-letters.ts';
import { createEvents } from '../../src/nats/events.ts';
import { createInbox, type Inbox, type InboxDelivery, messageId, type Waiting } from '../../src/nats/inbox.ts';
import { newMessage, newUid, startBus, type TestBus } from './nats-bus.ts';

const PATIENCE = 20_000;
const QUICK = { leasesMilliseconds: [400, 400, 400] };

let bus: TestBus;
let gateway: BusConnection;
let other: BusConnection;
let inbox: Inbox;
let operator: Inbox;
before(async () => {
  bus = await startBus({ users: { stranger: { publish: ['temper.inbox.>', '$JS.EVENT.>'], subscribe: [] } } });
  gateway = await bus.connect('gateway');
  other = await bus.connect('gateway');
  inbox = createInbox(gateway);
  operator = createInbox(await bus.connect('operator'));
});
after(async () => {
  await bus[Symbol.asyncDispose]();
});

async function next(from: Inbox, uid: string): Promise<InboxDelivery> {
  const delivery = await from.fetchNext(uid, PATIENCE, AbortSignal.timeout(PATIENCE));
  assert.ok(delivery !== undefined, 'no message came');
  return delivery;
}

async function nothing(from: Inbox, uid: string): Promise<void> {
  assert.equal(await from.fetchNext(uid, 300, AbortSignal.timeout(PATIENCE)), undefined);
}

/** Waits until it holds; the test's own limit ends it. */
async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + PATIENCE;
  while (!(await holds())) {
    assert.ok(performance.now() < end, 'it did not come to hold');
    await sleep(50);
  }
}

describe('the inbox of an agent', () => {
  it('gives messages in order, one at a time, each once', async () => {
    const uid = newUid();
    for (const key of ['a', 'b', 'c'])
      await inbox.publish(uid, { uid: 'person', key: `order ${key}` }, newMessage(key));
    const three: Waiting = { waiting: 3, inFlight: 0 };
    assert.deepEqual(await inbox.waiting(uid), three);
    for (const key of ['a', 'b', 'c']) {
      const { message, coordinates } = await next(inbox, uid);
      assert.equal(message.text, key);
      assert.equal(message.id, messageId({ uid: 'person', key: `order ${key}` }));
      assert.equal(message.root, message.id);
      await nothing(inbox, uid);
      await inbox.ack(coordinates);
    }
    await nothing(inbox, uid);
    assert.deepEqual(await inbox.waiting(uid), { waiting: 0, inFlight: 0 });
  });
  it('takes the same key of the same sender once, and another sender with that key as another', async () => {
    const uid = newUid();
    const first = await inbox.publish(uid, { uid: 'one', key: 'k' }, newMessage('first'));
    const again = await inbox.publish(uid, { uid: 'one', key: 'k' }, newMessage('again'));
    const apart = await inbox.publish(uid, { uid: 'two', key: 'k' }, newMessage('apart'));
    assert.deepEqual(again, { id: first.id, duplicate: true });
    assert.equal(apart.duplicate, false);
    assert.equal((await inbox.waiting(uid)).waiting, 2);
    assert.equal((await next(inbox, uid)).message.text, 'first');
  });
  it('wakes who waits when a message comes', async () => {
    const uid = newUid();
    const waiting = next(inbox, uid);
    await sleep(300);
    await inbox.publish(uid, { uid: 'person', key: 'late' }, newMessage('late'));
    assert.equal((await waiting).message.text, 'late');
  });
  it('lets another process settle what one fetched, from its coordinates as text', async () => {
    const uid = newUid();
    const elsewhere = createInbox(other);
    await inbox.publish(uid, { uid: 'person', key: 'a' }, newMessage('a'));
    const first = await next(inbox, uid);
    await elsewhere.working(JSON.parse(JSON.stringify(first.coordinates)));
    await elsewhere.retry(JSON.parse(JSON.stringify(first.coordinates)), 0);
    const second = await next(elsewhere, uid);
    assert.equal(second.coordinates.deliveries, 2);
    // Both at once, and again: the end of a message is one.
    await Promise.all([inbox.ack(second.coordinates), elsewhere.ack(JSON.parse(JSON.stringify(second.coordinates)))]);
    await inbox.ack(second.coordinates);
    await nothing(inbox, uid);
    assert.deepEqual(await inbox.waiting(uid), { waiting: 0, inFlight: 0 });
  });
  it('gives a message again after the time asked for, not before', async () => {
    const uid = newUid();
    await inbox.publish(uid, { uid: 'person', key: 'later' }, newMessage('later'));
    const { coordinates } = await next(inbox, uid);
    const start = performance.now();
    await inbox.retry(coordinates, 700);
    await next(inbox, uid);
    assert.ok(performance.now() - start >= 650, `after ${performance.now() - start} ms`);
  });
  it('keeps to the time asked for, however often it was delivered and however long its lease is now', async () => {
    const uid = newUid();
    const slow = createInbox(gateway, { leasesMilliseconds: [2_000, 60_000, 60_000, 60_000] });
    await slow.publish(uid, { uid: 'person', key: 'long' }, newMessage('long'));
    let { coordinates } = await next(slow, uid);
    for (const wait of [1, 0, 300]) {
      const start = performance.now();
      await slow.retry(coordinates, wait);
      ({ coordinates } = await next(slow, uid));
      assert.ok(performance.now() - start >= wait * 0.9, `after ${performance.now() - start} ms`);
    }
    assert.equal(coordinates.deliveries, 4);
  });
  it('gives a message again when nobody gave a sign, and not while there are signs', async () => {
    const uid = newUid();
    const quick = createInbox(gateway, QUICK);
    await quick.publish(uid, { uid: 'person', key: 'sign' }, newMessage('sign'));
    const first = await next(quick, uid);
    assert.equal(first.leaseMilliseconds, 400);
    for (let sign = 0; sign < 6; sign += 1) {
      await sleep(150);
      await quick.working(first.coordinates);
    }
    assert.deepEqual(await quick.waiting(uid), { waiting: 0, inFlight: 1 });
    const second = await next(quick, uid);
    assert.equal(second.coordinates.deliveries, 2);
    await quick.ack(second.coordinates);
  });
  it('gives back at once what a pod held that is gone', async () => {
    const uid = newUid();
    assert.equal(await inbox.release(uid), false);
    for (const key of ['done', 'held', 'behind']) {
      await inbox.publish(uid, { uid: 'person', key: `release ${key}` }, newMessage(key));
    }
    await inbox.ack((await next(inbox, uid)).coordinates);
    assert.equal((await next(inbox, uid)).message.text, 'held');
    assert.equal(await createInbox(other).release(uid), true);
    const again = await next(inbox, uid);
    assert.equal(again.message.text, 'held');
    await inbox.ack(again.coordinates);
    assert.equal((await next(inbox, uid)).message.text, 'behind');
  });
  it('loses nothing to who stopped waiting', async () => {
    const uid = newUid();
    await inbox.publish(uid, { uid: 'person', key: 'open' }, newMessage('open'));
    await inbox.ack((await next(inbox, uid)).coordinates);
    for (let round = 0; round < 10; round += 1) {
      const leaving = new AbortController();
      const left = inbox.fetchNext(uid, PATIENCE, leaving.signal);
      await sleep(20);
      const sent = inbox.publish(uid, { uid: 'person', key: `abort ${round}` }, newMessage(String(round)));
      leaving.abort();
      const [delivery] = await Promise.all([left, sent]);
      const start = performance.now();
      const { message, coordinates } = delivery ?? (await next(inbox, uid));
      assert.equal(message.text, String(round));
      assert.ok(performance.now() - start < 10_000, 'it was held until its lease was over');
      await inbox.ack(coordinates);
    }
  });
  it('refuses more than it may hold with an error of its own, and takes more when one is gone', async () => {
    const uid = newUid();
    const fill = Array.from({ length: 1_000 }, (_, index) =>
      inbox.publish(uid, { uid: 'person', key: `full ${index}` }, newMessage('x')),
    );
    await Promise.all(fill);
    const more = () => inbox.publish(uid, { uid: 'person', key: 'one more' }, newMessage('x'));
    await assert.rejects(more, (error) => isTemperError(error, 'TEMPER_BUS_FULL') && error.retry === 'backoff');
    await inbox.publish(newUid(), { uid: 'person', key: 'neighbour' }, newMessage('x'));
    await inbox.ack((await next(inbox, uid)).coordinates);
    assert.equal((await more()).duplicate, false);
    await operator.remove(uid);
  });
  it('refuses what is too large before it is sent', async () => {
    const send = inbox.publish(newUid(), { uid: 'person', key: 'large' }, newMessage('x'.repeat(201 * 1_024)));
    await assert.rejects(send, (error) => isTemperError(error, 'TEMPER_BUS_TOO_LARGE'));
  });
  it('refuses a uid that would name other subjects', async () => {
    for (const uid of ['', '*', '>', 'a.b', 'a b', 'a\r\nPUB x', 'x'.repeat(65)]) {
      await assert.rejects(inbox.publish(uid, { uid: 'person', key: 'k' }, newMessage('x')), isTemperError, uid);
      await assert.rejects(inbox.publish(newUid(), { uid, key: 'k' }, newMessage('x')), isTemperError, uid);
      await assert.rejects(inbox.fetchNext(uid, 10, AbortSignal.timeout(PATIENCE)), isTemperError, uid);
    }
  });
  it('says that an inbox is gone when its consumer is', async () => {
    const uid = newUid();
    await inbox.publish(uid, { uid: 'person', key: 'gone' }, newMessage('gone'));
    const { coordinates } = await next(inbox, uid);
    assert.ok((await inbox.agents()).includes(uid));
    await operator.remove(uid);
    assert.ok(!(await inbox.agents()).includes(uid));
    await assert.rejects(inbox.working(coordinates), (error) => isTemperError(error, 'TEMPER_NOT_FOUND'));
    assert.deepEqual(await inbox.waiting(uid), { waiting: 0, inFlight: 0 });
  });
  it('lets no text of a sender become a header', async () => {
    const uid = newUid();
    const key = 'k\r\nNats-Rollup: all\r\nNats-Msg-Id: other';
    await inbox.publish(uid, { uid: 'person', key: 'before' }, newMessage('before'));
    const message = { ...newMessage('text\r\nNats-Rollup: all'), headers: { 'Nats-Rollup': 'all' }, id: 'chosen' };
    const { id } = await inbox.publish(uid, { uid: 'person', key }, message);
    assert.equal((await inbox.waiting(uid)).waiting, 2);
    const { state } = await gateway.manager.streams.info('temper-inbox');
    const stored = await gateway.manager.streams.getMessage('temper-inbox', { seq: state.last_seq });
    assert.deepEqual([...(stored?.header ?? [])], [['Nats-Msg-Id', [`person:${id}`]]]);
    assert.ok(!('headers' in (stored?.json<object>() ?? {})));
  });
  it('carries the trace of who sent it in a header, and takes no other text for one', async () => {
    const uid = newUid();
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    await inbox.publish(uid, { uid: 'person', key: 'traced' }, { ...newMessage('traced'), traceparent });
    const traced = await next(inbox, uid);
    assert.equal(traced.message.traceparent, traceparent);
    const last = { last_by_subj: `temper.inbox.${uid}` };
    const data = (await gateway.manager.streams.getMessage('temper-inbox', last))?.string() ?? '';
    assert.ok(!data.includes(traceparent));
    await inbox.ack(traced.coordinates);
    const wrong = `${traceparent}\r\nNats-Rollup: all`;
    await inbox.publish(uid, { uid: 'person', key: 'wrong' }, { ...newMessage('wrong'), traceparent: wrong });
    const untraced = await next(inbox, uid);
    assert.equal(untraced.message.traceparent, undefined);
    await inbox.ack(untraced.coordinates);
    const stranger = headers();
    stranger.set('traceparent', 'whatever');
    const text = Buffer.from(data.replace(traced.message.id, 'msg-of-a-stranger'));
    await gateway.jetstream.publish(`temper.inbox.${uid}`, text, { headers: stranger });
    assert.equal((await next(inbox, uid)).message.traceparent, undefined);
  });
  it('is not emptied by a rollup, whoever sends it', async () => {
    const uid = newUid();
    await inbox.publish(uid, { uid: 'person', key: 'kept' }, newMessage('kept'));
    const stranger = await bus.connect('stranger');
    const rollup = headers();
    rollup.set('Nats-Rollup', 'all');
    await assert.rejects(stranger.jetstream.publish(`temper.inbox.${uid}`, '{}', { headers: rollup }));
    assert.equal((await next(inbox, uid)).message.text, 'kept');
  });
});

describe('dead letters', () => {
  it('hold what was delivered too often, once, whoever tells; and send it again', { timeout: 60_000 }, async () => {
    const uid = newUid();
    const quick = createInbox(gateway, QUICK);
    const letters = [createDeadLetters(gateway), createDeadLetters(other)];
    const stop = new AbortController();
    const failures: unknown[] = [];
    const running = letters.map((one) => one.run(stop.signal, (error) => failures.push(error)));
    const sent = await quick.publish(uid, { uid: 'person', key: 'poisonous' }, newMessage('poisonous'));
    await quick.publish(uid, { uid: 'person', key: 'behind it' }, newMessage('behind it'));
    for (const deliveries of [1, 2, 3]) assert.equal((await next(quick, uid)).coordinates.deliveries, deliveries);
    const behind = await next(quick, uid);
    assert.equal(behind.message.text, 'behind it');
    await quick.ack(behind.coordinates);
    const letter = createDeadLetters(gateway);
    await eventually(async () => (await letter.count(uid)) > 0);
    await Promise.all(letters.map((one) => one.reconcile()));
    const [buried, ...more] = await letter.list(uid);
    assert.deepEqual(more, []);
    assert.equal(buried?.message?.id, sent.id);
    assert.deepEqual([buried?.code, buried?.deliveries], ['TEMPER_MESSAGE_UNDELIVERED', 3]);
    const told = await createEvents(gateway).read(uid, 's-1', 0, 10);
    assert.deepEqual(
      told.map((line) => line.kind === 'failed' && [line.message, line.code]),
      [[sent.id, 'TEMPER_MESSAGE_UNDELIVERED']],
    );
    assert.deepEqual(await quick.waiting(uid), { waiting: 0, inFlight: 0 });
    const id = buried?.id ?? '';
    await Promise.allSettled([letters[0]?.retry(uid, id), letters[1]?.retry(uid, id)]);
    assert.equal(await letter.count(uid), 0);
    const again = await next(quick, uid);
    assert.deepEqual([again.message.id, again.message.text], [sent.id, 'poisonous']);
    assert.equal(again.coordinates.deliveries, 1);
    await quick.ack(again.coordinates);
    await nothing(quick, uid);
    await assert.rejects(letter.retry(uid, id), (error) => isTemperError(error, 'TEMPER_NOT_FOUND'));
    stop.abort();
    await Promise.all(running);
    assert.deepEqual(failures, []);
  });
  it('hold what was given up while nobody listened', { timeout: 60_000 }, async () => {
    const uid = newUid();
    const quick = createInbox(gateway, QUICK);
    const letters = createDeadLetters(gateway);
    await quick.publish(uid, { uid: 'person', key: 'unheard' }, newMessage('unheard'));
    for (const _ of [1, 2, 3]) await next(quick, uid);
    // The server gives up when it is asked for the next one. What it says of it, nobody takes here.
    assert.equal(await quick.fetchNext(uid, 1_500, AbortSignal.timeout(PATIENCE)), undefined);
    await quick.publish(uid, { uid: 'person', key: 'alive' }, newMessage('alive'));
    const alive = await next(quick, uid);
    assert.equal(await quick.release(uid), true);
    assert.equal((await next(quick, uid)).coordinates.streamSequence, alive.coordinates.streamSequence);
    assert.equal(await letters.reconcile(), 1);
    assert.equal(await letters.reconcile(), 0);
    assert.equal((await letters.list(uid))[0]?.message?.text, 'unheard');
    await quick.ack(alive.coordinates);
    assert.deepEqual([await letters.count(uid), await letters.reconcile()], [1, 0]);
  });
  it('hold what was rejected, with its reason, printable; and can be dropped', async () => {
    const uid = newUid();
    const letters = createDeadLetters(gateway);
    await inbox.publish(uid, { uid: 'person', key: 'rejected' }, newMessage('rejected'));
    const { coordinates } = await next(inbox, uid);
    await createInbox(other).reject(coordinates, 'TEMPER_TURN_LIMIT', 'bad\u001b[31m\nreason');
    const [buried] = await letters.list(uid);
    assert.deepEqual([buried?.code, buried?.deliveries], ['TEMPER_TURN_LIMIT', 1]);
    assert.equal(buried?.reason, 'bad\\u{1b}[31m\\nreason');
    await nothing(inbox, uid);
    assert.deepEqual(await letters.get(uid, buried?.id ?? ''), buried);
    await letters.drop(uid, buried?.id ?? '');
    assert.equal(await letters.count(uid), 0);
    for (const id of [buried?.id ?? '', '', '*', '>', '1-*', '../x']) {
      await assert.rejects(letters.drop(uid, id), (error) => isTemperError(error, 'TEMPER_NOT_FOUND'), id);
    }
  });
  it('hold what is no message or comes too late, and the next one is delivered', async () => {
    const uid = newUid();
    const letters = createDeadLetters(gateway);
    const stranger = await bus.connect('stranger');
    const fine = { ...newMessage('x'), id: 'i', root: 'r' };
    const poison = [
      '',
      'no json',
      '[]',
      '{}',
      JSON.stringify({ ...fine, depth: -1 }),
      JSON.stringify({ ...fine, id: 7 }),
    ];
    for (const data of poison) await stranger.jetstream.publish(`temper.inbox.${uid}`, data);
    const late = { ...newMessage('late'), deadline: new Date(Date.now() - 1).toISOString() };
    await inbox.publish(uid, { uid: 'person', key: 'too late' }, late);
    await inbox.publish(uid, { uid: 'person', key: 'good' }, newMessage('good'));
    assert.equal((await next(inbox, uid)).message.text, 'good');
    const buried = await letters.list(uid);
    assert.deepEqual(buried.map(({ code }) => code).toReversed(), [
      ...poison.map(() => 'TEMPER_MESSAGE_INVALID'),
      'TEMPER_TIMEOUT',
    ]);
    const invalid = letters.retry(uid, buried.at(-1)?.id ?? '');
    await assert.rejects(invalid, (error) => isTemperError(error, 'TEMPER_MESSAGE_INVALID'));
  });
  it('say of a message that was ended before it was copied that it was', async () => {
    const uid = newUid();
    await inbox.publish(uid, { uid: 'person', key: 'ended' }, newMessage('ended'));
    const { coordinates } = await next(inbox, uid);
    await gateway.nats.request(`$JS.ACK.temper-inbox.${uid}.1.${coordinates.streamSequence}.1.0.0`, '+TERM');
    const letters = createDeadLetters(gateway);
    const stop = new AbortController();
    const running = letters.run(stop.signal);
    await eventually(async () => (await letters.count(uid)) === 1);
    const [buried] = await letters.list(uid);
    assert.deepEqual([buried?.code, buried?.message], ['TEMPER_MESSAGE_UNDELIVERED', undefined]);
    stop.abort();
    await running;
  });
});
