import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { headers } from '@nats-io/transport-node';
import { withInboxMetrics } from '../../../src/gateway/delivery/instrumented-inbox.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { isTemperError } from '../../../src/lib/errors.ts';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { createDeadLetters } from '../../../src/nats/dead-letters/dead-letters.ts';
import { createSessionEvents } from '../../../src/nats/session-events.ts';
import {
  createNatsInbox,
  type NatsInbox,
  type InboxDelivery,
  messageId,
  type InboxDepth,
} from '../../../src/nats/inbox/inbox.ts';
import { readDeliveries } from '../../../src/nats/inbox/nats-inbox-store.ts';
import { subjects } from '../../../src/nats/jetstream/names.ts';
import { NotificationListener, notify } from '../../../src/nats/notify/notifications.ts';
import { createRegistry, registerMetrics } from '../../../src/telemetry/prometheus.ts';
import { GATEWAY_METRICS } from '../../../src/telemetry/temper-metrics.ts';
import { newMessage, newUid, startNatsFixture, type NatsFixture } from '../../support/nats/nats-fixture.ts';
import { poll } from '../../support/poll.ts';

const TIMEOUT_MS = 60_000;
const SHORT_DEADLINES = { ackWaitsMs: [400, 400, 400] };

let bus: NatsFixture;
let gateway: JetStreamConnection;
let other: JetStreamConnection;
let inbox: NatsInbox;
let operator: NatsInbox;
before(async () => {
  bus = await startNatsFixture({ users: { untrusted: { publish: ['temper.inbox.>', '$JS.EVENT.>'], subscribe: [] } } });
  gateway = await bus.connect('gateway');
  other = await bus.connect('gateway');
  inbox = createNatsInbox(gateway);
  operator = createNatsInbox(await bus.connect('operator'));
});
after(async () => {
  await bus[Symbol.asyncDispose]();
});

async function next(from: NatsInbox, uid: string): Promise<InboxDelivery> {
  const delivery = await from.fetchNext(uid, TIMEOUT_MS, AbortSignal.timeout(TIMEOUT_MS));
  assert.ok(delivery !== undefined, 'no message arrived');
  return delivery;
}

async function assertEmpty(from: NatsInbox, uid: string): Promise<void> {
  assert.equal(await from.fetchNext(uid, 300, AbortSignal.timeout(TIMEOUT_MS)), undefined);
}

describe('the inbox of an agent', () => {
  it('the inbox delivers messages in order, one at a time and once', async () => {
    const uid = newUid();
    for (const key of ['a', 'b', 'c']) await inbox.publish(uid, { uid: 'user', key: `order ${key}` }, newMessage(key));
    const three: InboxDepth = { pending: 3, inFlight: 0 };
    assert.deepEqual(await inbox.depth(uid), three);
    for (const key of ['a', 'b', 'c']) {
      const { message, coordinates } = await next(inbox, uid);
      assert.equal(message.text, key);
      assert.equal(message.id, messageId({ uid: 'user', key: `order ${key}` }));
      assert.equal(message.root, message.id);
      await assertEmpty(inbox, uid);
      await inbox.ack(coordinates);
    }
    await assertEmpty(inbox, uid);
    assert.deepEqual(await inbox.depth(uid), { pending: 0, inFlight: 0 });
  });
  it('the inbox deduplicates by sender and idempotency key', async () => {
    const uid = newUid();
    const first = await inbox.publish(uid, { uid: 'one', key: 'k' }, newMessage('first'));
    const again = await inbox.publish(uid, { uid: 'one', key: 'k' }, newMessage('again'));
    const apart = await inbox.publish(uid, { uid: 'two', key: 'k' }, newMessage('apart'));
    assert.deepEqual(again, { ...first, duplicate: true });
    assert.equal(apart.duplicate, false);
    assert.equal((await inbox.depth(uid)).pending, 2);
    assert.equal((await next(inbox, uid)).message.text, 'first');
  });
  it('a waiting fetch returns when a message arrives', async () => {
    const uid = newUid();
    const waiting = next(inbox, uid);
    await poll('a waiting call', () => bus.hasSubscription(`temper.notify.${uid}`));
    await inbox.publish(uid, { uid: 'user', key: 'late' }, newMessage('late'));
    assert.equal((await waiting).message.text, 'late');
  });
  it('a waiting process gets its own notification once and before the server does, and that of another process', async () => {
    const [uid, elsewhere] = [newUid(), newUid()];
    using listener = new NotificationListener(gateway, subjects.notifyInbox(uid));
    using others = new NotificationListener(other, subjects.notifyInbox(uid));
    await poll('both subscriptions', () => bus.hasSubscription(subjects.notifyInbox(uid)));
    await gateway.nats.flush();
    await other.nats.flush();
    const ended = new AbortController();
    notify(gateway, subjects.notifyInbox(elsewhere));
    notify(gateway, subjects.notifyInbox(uid));
    ended.abort();
    assert.equal(await listener.wait(0, ended.signal), true, 'before the server knows');
    listener.reset();
    assert.equal(await others.wait(60_000, AbortSignal.timeout(60_000)), true);
    // The server has sent its own one by now too.
    await gateway.nats.flush();
    assert.equal(await listener.wait(0, ended.signal), false, 'a second time');
    notify(other, subjects.notifyInbox(uid));
    assert.equal(await listener.wait(60_000, AbortSignal.timeout(60_000)), true);
  });
  it('a poll of an idle agent is one request, and one that finds the message of a notification reads it and its state', async () => {
    const uid = newUid();
    const connection = await bus.connect('gateway');
    const waiting = createNatsInbox(connection);
    await assertEmpty(waiting, uid);
    const operations: string[] = [];
    connection.onRequest((operation) => operations.push(operation));
    await assertEmpty(waiting, uid);
    assert.deepEqual(operations.splice(0), ['get']);
    const fetching = next(waiting, uid);
    await poll('the look of the poll', () => operations.length === 1);
    await inbox.publish(uid, { uid: 'user', key: 'k' }, newMessage('hello'));
    await waiting.ack((await fetching).coordinates);
    // The message, its delivery and whether it has ended; then the delivery again, its end, and what is removed.
    assert.deepEqual(operations.slice(1).toSorted(), ['get', 'get', 'get', 'other', 'publish', 'publish', 'publish']);
  });
  it('messages larger than a read of the inbox come one after the other in their order', async () => {
    const uid = newUid();
    const texts = Array.from({ length: 12 }, (_, index) => `${index} ${'x'.repeat(index % 2 === 0 ? 150_000 : 10)}`);
    for (const text of texts) await inbox.publish(uid, { uid: 'user', key: text.slice(0, 3) }, newMessage(text));
    for (const text of texts) {
      const { message, coordinates } = await next(inbox, uid);
      assert.equal(message.text, text);
      await inbox.ack(coordinates);
    }
    await assertEmpty(inbox, uid);
  });
  it('another process can acknowledge a delivery with its serialized coordinates', async () => {
    const uid = newUid();
    const elsewhere = createNatsInbox(other);
    await inbox.publish(uid, { uid: 'user', key: 'a' }, newMessage('a'));
    const first = await next(inbox, uid);
    await elsewhere.working(JSON.parse(JSON.stringify(first.coordinates)));
    await elsewhere.retry(JSON.parse(JSON.stringify(first.coordinates)), 0);
    const second = await next(elsewhere, uid);
    assert.equal(second.coordinates.deliveries, 2);
    // Concurrent and repeated acks have the effect of one.
    await Promise.all([inbox.ack(second.coordinates), elsewhere.ack(JSON.parse(JSON.stringify(second.coordinates)))]);
    await inbox.ack(second.coordinates);
    await assertEmpty(inbox, uid);
    assert.deepEqual(await inbox.depth(uid), { pending: 0, inFlight: 0 });
  });
  it('a retried message is redelivered after the given delay', async () => {
    const uid = newUid();
    await inbox.publish(uid, { uid: 'user', key: 'later' }, newMessage('later'));
    const { coordinates } = await next(inbox, uid);
    const start = performance.now();
    await inbox.retry(coordinates, 700);
    await next(inbox, uid);
    assert.ok(performance.now() - start >= 650, `after ${performance.now() - start} ms`);
  });
  it('a session that waits for its redelivery keeps its order and delays no other session', async () => {
    const uid = newUid();
    const sent = [
      ['a1', 'a'],
      ['a2', 'a'],
      ['b1', 'b'],
      ['c1', 'c.d'],
    ] as const;
    for (const [text, session] of sent) await inbox.publish(uid, { uid: 'user', key: text }, newMessage(text, session));
    const first = await next(inbox, uid);
    assert.equal(first.message.text, 'a1');
    await inbox.retry(first.coordinates, 600_000);
    const elsewhere = createNatsInbox(other);
    for (const text of ['b1', 'c1']) {
      const { message, coordinates } = await next(elsewhere, uid);
      assert.equal(message.text, text);
      await assertEmpty(inbox, uid);
      await inbox.ack(coordinates);
    }
    await assertEmpty(elsewhere, uid);
    assert.deepEqual(await inbox.depth(uid), { pending: 2, inFlight: 0 });
  });
  it('an entry whose id or session cannot be part of a subject does not block the inbox', async () => {
    const uid = newUid();
    const untrusted = await bus.connect('untrusted');
    const wrong = [{ id: 'a.b' }, { id: '*' }, { session: 'a b' }, { session: '>' }];
    for (const change of wrong) {
      const entry = { ...newMessage('x'), id: 'i', root: 'r', ...change };
      await untrusted.jetstream.publish(`temper.inbox.${uid}`, JSON.stringify(entry));
    }
    await inbox.publish(uid, { uid: 'user', key: 'behind' }, newMessage('behind'));
    assert.equal((await next(inbox, uid)).message.text, 'behind');
    assert.equal(await createDeadLetters(gateway).count(uid), wrong.length);
  });
  it('an acknowledgement of an earlier delivery is refused before its reply is stored', async () => {
    const uid = newUid();
    const quick = createNatsInbox(gateway, SHORT_DEADLINES);
    await quick.publish(uid, { uid: 'user', key: 'twice' }, newMessage('twice'));
    const first = await next(quick, uid);
    const second = await next(quick, uid);
    const replies: string[] = [];
    const store = (text: string) => async (isCurrent: Promise<void>) => {
      await isCurrent;
      replies.push(text);
    };
    const late = inbox.ack(first.coordinates, store('first'));
    await assert.rejects(late, (error) => isTemperError(error, 'TEMPER_DELIVERY_LOST'));
    await inbox.ack(second.coordinates, store('second'));
    await inbox.ack(second.coordinates, store('repeated'));
    assert.deepEqual(replies, ['second']);
    await assert.rejects(inbox.ack(first.coordinates), isTemperError);
  });
  it('the retry delay does not depend on the number of deliveries and on the ack deadline', async () => {
    const uid = newUid();
    const slow = createNatsInbox(gateway, { ackWaitsMs: [2_000, 60_000, 60_000, 60_000] });
    await slow.publish(uid, { uid: 'user', key: 'long' }, newMessage('long'));
    let { coordinates } = await next(slow, uid);
    for (const wait of [1, 0, 300]) {
      const start = performance.now();
      await slow.retry(coordinates, wait);
      ({ coordinates } = await next(slow, uid));
      assert.ok(performance.now() - start >= wait * 0.9, `after ${performance.now() - start} ms`);
    }
    assert.equal(coordinates.deliveries, 4);
  });
  it('a message is redelivered when progress signals stop, and not before', async () => {
    const uid = newUid();
    const quick = createNatsInbox(gateway, SHORT_DEADLINES);
    await quick.publish(uid, { uid: 'user', key: 'sign' }, newMessage('sign'));
    const first = await next(quick, uid);
    assert.equal(first.ackWaitMs, 400);
    for (let sign = 0; sign < 6; sign += 1) {
      await sleep(150);
      await quick.working(first.coordinates);
    }
    assert.deepEqual(await quick.depth(uid), { pending: 0, inFlight: 1 });
    const second = await next(quick, uid);
    assert.equal(second.coordinates.deliveries, 2);
    await quick.ack(second.coordinates);
  });
  it('the operator reads the deliveries of many agents at once, with the time of the last report', async () => {
    const [working, waiting] = [newUid(), newUid()];
    for (const uid of [working, waiting]) await inbox.publish(uid, { uid: 'user', key: uid }, newMessage('x'));
    const read = await bus.connect('operator');
    const reported = async (): Promise<number> => {
      const found = await readDeliveries(read, [working, waiting, newUid()]);
      assert.deepEqual(
        found.map(({ agentUid, state }) => [agentUid, state.current.length, state.waiting.length]),
        [[working, 1, 0]],
      );
      return found[0]?.writtenAt ?? 0;
    };
    const { coordinates } = await next(inbox, working);
    const delivered = await reported();
    assert.ok(Math.abs(Date.now() - delivered) < TIMEOUT_MS);
    await inbox.working(coordinates);
    assert.ok((await reported()) > delivered);
    await inbox.ack(coordinates);
  });

  it('release redelivers the in-flight message of a deleted pod at once', async () => {
    const uid = newUid();
    assert.equal(await inbox.redeliver(uid), 0);
    for (const key of ['done', 'held', 'behind']) {
      await inbox.publish(uid, { uid: 'user', key: `release ${key}` }, newMessage(key));
    }
    await inbox.ack((await next(inbox, uid)).coordinates);
    assert.equal((await next(inbox, uid)).message.text, 'held');
    assert.equal(await createNatsInbox(other).redeliver(uid), 1);
    const again = await next(inbox, uid);
    assert.equal(again.message.text, 'held');
    await inbox.ack(again.coordinates);
    assert.equal((await next(inbox, uid)).message.text, 'behind');
  });
  it('each redelivery is counted with its reason, also when another gateway delivers the message', async () => {
    const uid = newUid();
    const registry = createRegistry();
    const metrics = registerMetrics(registry, GATEWAY_METRICS);
    const counted = withInboxMetrics(createNatsInbox(other, SHORT_DEADLINES), metrics, systemClock);
    await counted.publish(uid, { uid: 'user', key: 'counted' }, newMessage('counted'));
    assert.equal((await next(counted, uid)).redelivery, undefined);
    // No acknowledgement.
    const late = await next(counted, uid);
    assert.equal(late.redelivery, 'timeout');
    await createNatsInbox(gateway).retry(late.coordinates, 0);
    assert.equal((await next(counted, uid)).redelivery, 'retry');
    const quick = createNatsInbox(gateway, { ackWaitsMs: Array.from({ length: 9 }, () => TIMEOUT_MS) });
    const held = newUid();
    await quick.publish(held, { uid: 'user', key: 'held' }, newMessage('held'));
    await next(quick, held);
    assert.equal(await operator.redeliver(held), 1);
    await next(counted, held);
    const text = await registry.metrics();
    for (const reason of ['timeout', 'retry', 'podDeleted'])
      assert.match(text, new RegExp(`^temper_redeliveries_total\\{reason="${reason}"\\} 1$`, 'm'));
  });
  it('a cancelled fetch loses no message', async () => {
    const uid = newUid();
    await inbox.publish(uid, { uid: 'user', key: 'open' }, newMessage('open'));
    await inbox.ack((await next(inbox, uid)).coordinates);
    for (let round = 0; round < 60; round += 1) {
      const cancel = new AbortController();
      const cancelled = inbox.fetchNext(uid, TIMEOUT_MS, cancel.signal);
      // One round trip: the server has received the pull request when it has answered.
      await inbox.depth(uid);
      const sent = inbox.publish(uid, { uid: 'user', key: `abort ${round}` }, newMessage(String(round)));
      // Cancels at another point of the delivery in each round.
      for (let turn = 0; turn < round; turn += 1) await setImmediate();
      cancel.abort();
      const [delivery] = await Promise.all([cancelled, sent]);
      const { message, coordinates, redelivery } = delivery ?? (await next(inbox, uid));
      assert.equal(message.text, String(round));
      assert.notEqual(redelivery, 'timeout', 'the message stayed with the cancelled fetch until its ack deadline');
      await inbox.ack(coordinates);
    }
  });
  it('a full inbox rejects messages with TEMPER_BUS_FULL until one is acknowledged', async () => {
    const uid = newUid();
    const fill = Array.from({ length: 1_000 }, (_, index) =>
      inbox.publish(uid, { uid: 'user', key: `full ${index}` }, newMessage('x')),
    );
    await Promise.all(fill);
    const more = () => inbox.publish(uid, { uid: 'user', key: 'one more' }, newMessage('x'));
    await assert.rejects(more, (error) => isTemperError(error, 'TEMPER_BUS_FULL') && error.retry === 'backoff');
    await inbox.publish(newUid(), { uid: 'user', key: 'neighbour' }, newMessage('x'));
    await inbox.ack((await next(inbox, uid)).coordinates);
    assert.equal((await more()).duplicate, false);
    await operator.remove(uid);
  });
  it('a message that is too large is rejected before it is sent', async () => {
    const send = inbox.publish(newUid(), { uid: 'user', key: 'large' }, newMessage('x'.repeat(201 * 1_024)));
    await assert.rejects(send, (error) => isTemperError(error, 'TEMPER_BUS_TOO_LARGE'));
  });
  it('a uid that would change the subject is rejected', async () => {
    for (const uid of ['', '*', '>', 'a.b', 'a b', 'a\r\nPUB x', 'x'.repeat(65)]) {
      await assert.rejects(inbox.publish(uid, { uid: 'user', key: 'k' }, newMessage('x')), isTemperError, uid);
      await assert.rejects(inbox.publish(newUid(), { uid, key: 'k' }, newMessage('x')), isTemperError, uid);
      await assert.rejects(inbox.fetchNext(uid, 10, AbortSignal.timeout(TIMEOUT_MS)), isTemperError, uid);
    }
  });
  it('operations on a removed inbox fail with TEMPER_NOT_FOUND', async () => {
    const uid = newUid();
    await inbox.publish(uid, { uid: 'user', key: 'gone' }, newMessage('gone'));
    const { coordinates } = await next(inbox, uid);
    await operator.remove(uid);
    await assert.rejects(inbox.working(coordinates), (error) => isTemperError(error, 'TEMPER_NOT_FOUND'));
    assert.deepEqual(await inbox.depth(uid), { pending: 0, inFlight: 0 });
  });
  it('text of a sender cannot become a NATS header', async () => {
    const uid = newUid();
    const key = 'k\r\nNats-Rollup: all\r\nNats-Msg-Id: other';
    await inbox.publish(uid, { uid: 'user', key: 'before' }, newMessage('before'));
    const message = { ...newMessage('text\r\nNats-Rollup: all'), headers: { 'Nats-Rollup': 'all' }, id: 'chosen' };
    const { id } = await inbox.publish(uid, { uid: 'user', key }, message);
    assert.equal((await inbox.depth(uid)).pending, 2);
    const { state } = await gateway.manager.streams.info('temper-inbox');
    const stored = await gateway.manager.streams.getMessage('temper-inbox', { seq: state.last_seq });
    assert.deepEqual([...(stored?.header ?? [])], [['Nats-Msg-Id', [`user:${id}`]]]);
    assert.ok(!('headers' in (stored?.json<object>() ?? {})));
  });
  it('the trace context of the sender is stored in a header, and invalid text is dropped', async () => {
    const uid = newUid();
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    await inbox.publish(uid, { uid: 'user', key: 'traced' }, { ...newMessage('traced'), traceparent });
    const traced = await next(inbox, uid);
    assert.equal(traced.message.traceparent, traceparent);
    const last = { last_by_subj: `temper.inbox.${uid}` };
    const data = (await gateway.manager.streams.getMessage('temper-inbox', last))?.string() ?? '';
    assert.ok(!data.includes(traceparent));
    await inbox.ack(traced.coordinates);
    const wrong = `${traceparent}\r\nNats-Rollup: all`;
    await inbox.publish(uid, { uid: 'user', key: 'wrong' }, { ...newMessage('wrong'), traceparent: wrong });
    const untraced = await next(inbox, uid);
    assert.equal(untraced.message.traceparent, undefined);
    await inbox.ack(untraced.coordinates);
    const invalid = headers();
    invalid.set('traceparent', 'invalid');
    const text = Buffer.from(data.replace(traced.message.id, 'msg-untrusted'));
    await gateway.jetstream.publish(`temper.inbox.${uid}`, text, { headers: invalid });
    assert.equal((await next(inbox, uid)).message.traceparent, undefined);
  });
  it('a rollup header cannot empty an inbox', async () => {
    const uid = newUid();
    await inbox.publish(uid, { uid: 'user', key: 'kept' }, newMessage('kept'));
    const untrusted = await bus.connect('untrusted');
    const rollup = headers();
    rollup.set('Nats-Rollup', 'all');
    await assert.rejects(untrusted.jetstream.publish(`temper.inbox.${uid}`, '{}', { headers: rollup }));
    assert.equal((await next(inbox, uid)).message.text, 'kept');
  });
});

describe('dead letters', () => {
  it('a message past its delivery limit becomes one dead letter, which can be retried', {
    timeout: 300_000,
  }, async () => {
    const uid = newUid();
    const quick = createNatsInbox(gateway, SHORT_DEADLINES);
    const letters = [createDeadLetters(gateway), createDeadLetters(other)];
    const sent = await quick.publish(uid, { uid: 'user', key: 'poisonous' }, newMessage('poisonous'));
    await quick.publish(uid, { uid: 'user', key: 'behind it' }, newMessage('behind it'));
    for (const deliveries of [1, 2, 3]) assert.equal((await next(quick, uid)).coordinates.deliveries, deliveries);
    const behind = await next(quick, uid);
    assert.equal(behind.message.text, 'behind it');
    await quick.ack(behind.coordinates);
    const letter = createDeadLetters(gateway);
    const [deadLetter, ...more] = await letter.list(uid);
    assert.deepEqual(more, []);
    assert.equal(deadLetter?.message?.id, sent.id);
    assert.deepEqual([deadLetter?.code, deadLetter?.deliveries], ['TEMPER_MESSAGE_UNDELIVERED', 3]);
    const events = await createSessionEvents(gateway).read(uid, 's-1', 0, 10);
    assert.deepEqual(
      events.map((line) => line.kind === 'failed' && [line.message, line.code]),
      [[sent.id, 'TEMPER_MESSAGE_UNDELIVERED']],
    );
    assert.deepEqual(await quick.depth(uid), { pending: 0, inFlight: 0 });
    const id = deadLetter?.id ?? '';
    await Promise.allSettled([letters[0]?.retry(uid, id), letters[1]?.retry(uid, id)]);
    assert.equal(await letter.count(uid), 0);
    const again = await next(quick, uid);
    assert.deepEqual([again.message.id, again.message.text], [sent.id, 'poisonous']);
    assert.equal(again.coordinates.deliveries, 1);
    await quick.ack(again.coordinates);
    await assertEmpty(quick, uid);
    await assert.rejects(letter.retry(uid, id), (error) => isTemperError(error, 'TEMPER_NOT_FOUND'));
  });
  it('two gateways that notice an exhausted message write one dead letter', { timeout: 300_000 }, async () => {
    const uid = newUid();
    const [one, two] = [createNatsInbox(gateway, SHORT_DEADLINES), createNatsInbox(other, SHORT_DEADLINES)];
    const letters = createDeadLetters(gateway);
    await one.publish(uid, { uid: 'user', key: 'crashes' }, newMessage('crashes'));
    for (const from of [one, two, one]) await next(from, uid);
    const asking = () => AbortSignal.timeout(TIMEOUT_MS);
    const nothing = await Promise.all([one.fetchNext(uid, 1_500, asking()), two.fetchNext(uid, 1_500, asking())]);
    assert.deepEqual(nothing, [undefined, undefined]);
    assert.deepEqual(
      (await letters.list(uid)).map(({ deliveries, message }) => [deliveries, message?.text]),
      [[3, 'crashes']],
    );
    assert.deepEqual(await two.depth(uid), { pending: 0, inFlight: 0 });
  });
  it('a rejected message becomes a dead letter with an escaped reason, which can be dropped', async () => {
    const uid = newUid();
    const letters = createDeadLetters(gateway);
    await inbox.publish(uid, { uid: 'user', key: 'rejected' }, newMessage('rejected'));
    const { coordinates } = await next(inbox, uid);
    await createNatsInbox(other).reject(coordinates, 'TEMPER_TURN_LIMIT', 'bad\u001b[31m\nreason');
    const [deadLetter] = await letters.list(uid);
    assert.deepEqual([deadLetter?.code, deadLetter?.deliveries], ['TEMPER_TURN_LIMIT', 1]);
    assert.equal(deadLetter?.reason, 'bad\\u{1b}[31m\\nreason');
    await assertEmpty(inbox, uid);
    assert.deepEqual(await letters.get(uid, deadLetter?.id ?? ''), deadLetter);
    await letters.drop(uid, deadLetter?.id ?? '');
    assert.equal(await letters.count(uid), 0);
    for (const id of [deadLetter?.id ?? '', '', '*', '>', '1-*', '../x']) {
      await assert.rejects(letters.drop(uid, id), (error) => isTemperError(error, 'TEMPER_NOT_FOUND'), id);
    }
  });
  it('invalid and expired messages become dead letters, and the next message is delivered', async () => {
    const uid = newUid();
    const letters = createDeadLetters(gateway);
    const untrusted = await bus.connect('untrusted');
    const fine = { ...newMessage('x'), id: 'i', root: 'r' };
    const poison = [
      '',
      'no json',
      '[]',
      '{}',
      JSON.stringify({ ...fine, depth: -1 }),
      JSON.stringify({ ...fine, id: 7 }),
    ];
    for (const data of poison) await untrusted.jetstream.publish(`temper.inbox.${uid}`, data);
    const late = { ...newMessage('late'), deadline: new Date(Date.now() - 1).toISOString() };
    await inbox.publish(uid, { uid: 'user', key: 'too late' }, late);
    await inbox.publish(uid, { uid: 'user', key: 'good' }, newMessage('good'));
    assert.equal((await next(inbox, uid)).message.text, 'good');
    const deadLetters = await letters.list(uid);
    assert.deepEqual(deadLetters.map(({ code }) => code).toReversed(), [
      ...poison.map(() => 'TEMPER_MESSAGE_INVALID'),
      'TEMPER_TIMEOUT',
    ]);
    const invalid = letters.retry(uid, deadLetters.at(-1)?.id ?? '');
    await assert.rejects(invalid, (error) => isTemperError(error, 'TEMPER_MESSAGE_INVALID'));
  });
});
