import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { PublishedEvent } from '../../../../src/events/event.ts';
import type { PodDelivery } from '../../../../src/gateway-api/pod-api.ts';
import { createAcceptedEvents } from '../../../../src/nats/events/accepted-events.ts';
import { createEventHistory } from '../../../../src/nats/events/event-history.ts';
import { createSubscriptions } from '../../../../src/nats/events/subscriptions.ts';
import { createTriggerFires } from '../../../../src/nats/events/trigger-fires.ts';
import { createNatsInbox } from '../../../../src/nats/inbox/inbox.ts';
import { BUCKETS, bucketStream, bucketSubject } from '../../../../src/nats/jetstream/names.ts';
import { createSessionStore } from '../../../../src/nats/sessions/session-store.ts';
import { messageCounts } from '../../../../src/nats/jetstream/stream-reader.ts';
import type { HttpResponse } from '../../../support/gateway/gateway-fixture.ts';
import { assertError, type MessageClient, parsed, type RunningAgent } from '../../../support/gateway/message-client.ts';
import { pollValue } from '../../../support/poll.ts';

const POLICY = { autonomy: 'Full', level: { initial: 'restricted' } };
const TOOLS = ['event_*'];

interface Receipt {
  id: string;
  messages: number;
  refused: number;
}

/** Events of a namespace. `open` gives the client of two replicas. */
export function eventTests(open: () => MessageClient): void {
  let agents = 0;

  async function agent(spec: object = {}, policy: object = {}): Promise<RunningAgent & { name: string }> {
    const { fixture } = open();
    agents += 1;
    const name = `eventful-${agents}`;
    await fixture.createPolicy('team-a', `events-${agents}`, { ...POLICY, ...policy });
    const found = await open().createReadyAgent(name, { trustPolicyRef: { name: `events-${agents}` }, ...spec });
    return { ...found, name };
  }

  const publisher = (subject: string) => agent({ grants: { tools: TOOLS, events: { publish: [subject] } } });
  const listener = (...triggers: object[]) => agent({ schedule: { mode: 'Proactive', triggers } });
  const post = (from: RunningAgent, path: string, body: object, key = 'k-1', gateway = open().one) =>
    gateway.call('POST', path, { token: from.token, key, body });
  const publish = (
    from: RunningAgent,
    { deliveryToken }: PodDelivery,
    event: object,
    key = 'k-1',
    gateway = open().one,
  ): Promise<HttpResponse> => post(from, '/v1/events', { deliveryToken, event }, key, gateway);
  const receiptIn = (response: HttpResponse) => parsed(response) as Receipt;

  async function work(on: RunningAgent & { name: string }): Promise<PodDelivery> {
    parsed(await open().sendMessage(on.name, 'work'));
    return open().next(on);
  }

  it('an event is one message for each trigger that matches, also when it is published again at another gateway', async () => {
    const shop = await publisher('shop-1.>');
    const paid = { name: 'paid', subject: 'shop-1.*.paid', message: 'Ship {{event.order}} ({{subject}}).' };
    const [first, second] = [await listener(paid), await listener({ ...paid, session: 'orders' })];
    const other = await listener({ ...paid, subject: 'shop-1.paid' }, { ...paid, name: 'off', enabled: false });
    const delivery = await work(shop);
    const event = { subject: 'shop-1.eu.paid', data: { order: 'A-7' } };
    const receipt = receiptIn(await publish(shop, delivery, event));
    assert.deepEqual(receipt, { id: receipt.id, messages: 2, refused: 0 });
    assert.deepEqual(receiptIn(await publish(shop, delivery, event, 'k-1', open().other)), receipt);
    const inbox = createNatsInbox(await open().fixture.nats.connect('gateway'));
    const depths = await Promise.all([first, second, other].map(({ uid }) => inbox.depth(uid)));
    assert.deepEqual(
      depths.map(({ pending }) => pending),
      [1, 1, 0],
    );
    const { message } = await open().next(second);
    const { text, source, session, root, depth, deadline } = message;
    assert.deepEqual([text, source, session], ['Ship A-7 (shop-1.eu.paid).', 'Trigger', 'orders']);
    assert.deepEqual([root, depth, deadline], [delivery.message.root, 1, delivery.message.deadline]);
    const history = createEventHistory(await open().fixture.nats.connect('gateway'));
    const past = (await history.read('team-a')).filter(({ id }) => id === receipt.id);
    assert.deepEqual(
      past.map(({ agent: from, messages, data }) => [from, messages, data]),
      [[shop.name, 2, { order: 'A-7' }]],
    );
  });

  it('an agent publishes and subscribes only within its grants, and nothing below temper', async () => {
    const shop = await publisher('shop-2.>');
    const delivery = await work(shop);
    const { deliveryToken } = delivery;
    const denied = [
      { subject: 'other.paid' },
      { subject: 'temper.agent.x' },
      { subject: 'shop-2.*' },
      { subject: 'shop-2..a' },
    ];
    for (const [index, event] of denied.entries())
      assertError(await publish(shop, delivery, event, `d-${index}`), 403, 'TEMPER_POLICY_DENIED');
    const subscription = { subject: 'shop-2.paid' };
    assertError(
      await post(shop, '/v1/subscriptions', { deliveryToken, subscription }, 's-1'),
      403,
      'TEMPER_POLICY_DENIED',
    );
    const large = { subject: 'shop-2.a', data: 'x'.repeat(9_000) };
    assertError(await publish(shop, delivery, large, 'l-1'), 422, 'TEMPER_EVENT_REFUSED');
  });

  it('a trigger fires within its limits, and a chain of events ends at the depth of messages', async () => {
    const shop = await publisher('shop-3.>');
    const limited = await listener(
      { name: 'once', subject: 'shop-3.a', message: 'x', maxFires: 1 },
      { name: 'calm', subject: 'shop-3.a', message: 'x', cooldown: '1h' },
      { name: 'few', subject: 'shop-3.a', message: 'x', maxFiresPerHour: 1 },
    );
    const delivery = await work(shop);
    const outcomes = [];
    for (const key of ['a', 'b']) outcomes.push(receiptIn(await publish(shop, delivery, { subject: 'shop-3.a' }, key)));
    assert.deepEqual(
      outcomes.map(({ messages, refused }) => [messages, refused]),
      [
        [3, 0],
        [0, 3],
      ],
    );
    const fires = createTriggerFires(await open().fixture.nats.connect('gateway'));
    const { changed, sequence } = await fires.changes(0);
    const own = changed
      .filter(({ agentUid }) => agentUid === limited.uid)
      .toSorted((one, other) => one.key.localeCompare(other.key));
    assert.deepEqual(
      own.map(({ key, fires: of }) => [key, of.fires, of.refused, of.lastRefusal?.reason]),
      [
        ['calm', 1, 1, 'Cooldown'],
        ['few', 1, 1, 'HourlyLimit'],
        ['once', 1, 1, 'MaxFires'],
      ],
    );
    assert.equal(await fires.revision(), sequence);

    const grants = { tools: TOOLS, events: { publish: ['ping.>'] } };
    const trigger = (subject: string) => ({ triggers: [{ name: 't', subject, message: '{{event}}' }] });
    const ping = await agent({ grants, schedule: { mode: 'Proactive', ...trigger('ping.to-ping') } });
    const pong = await agent({ grants, schedule: { mode: 'Proactive', ...trigger('ping.to-pong') } });
    let current = await work(ping);
    for (let depth = 1; depth <= 5; depth += 1) {
      const [from, to, subject] = depth % 2 === 1 ? [ping, pong, 'ping.to-pong'] : [pong, ping, 'ping.to-ping'];
      assert.equal(receiptIn(await publish(from, current, { subject }, `p-${depth}`)).messages, 1);
      current = await open().next(to);
      assert.equal(current.message.depth, depth);
    }
    assertError(await publish(pong, current, { subject: 'ping.to-ping' }, 'p-6'), 422, 'TEMPER_MESSAGE_DEPTH');
  });

  it('a subscription gives its session messages until it ends, and none without the grant', async () => {
    const shop = await publisher('shop-4.>');
    const watcher = await agent({ grants: { tools: TOOLS, events: { subscribe: ['shop-4.>'] } } });
    const watching = await work(watcher);
    const delivery = await work(shop);
    const { deliveryToken } = watching;
    const subscription = { subject: 'shop-4.*', message: 'Seen {{event}}' };
    const body = { deliveryToken, subscription };
    const added = parsed(await post(watcher, '/v1/subscriptions', body)) as { id: string; expiresAt: string };
    assert.deepEqual(parsed(await post(watcher, '/v1/subscriptions', body, 'k-1', open().other)), added);
    parsed(
      await open().postDelivery(watcher, { deliveryToken, action: 'ack', reply: 'ok', finishReason: 'complete' }),
      204,
    );
    assert.equal(receiptIn(await publish(shop, delivery, { subject: 'shop-4.a', data: 1 }, 'e-1')).messages, 1);
    const fired = await open().next(watcher);
    assert.deepEqual([fired.message.text, fired.message.session], ['Seen 1', watching.message.session]);
    const list = await post(watcher, '/v1/subscriptions/list', { deliveryToken: fired.deliveryToken });
    assert.deepEqual(parsed(list), {
      subscriptions: [
        { id: added.id, subject: 'shop-4.*', session: watching.message.session, expiresAt: added.expiresAt, fires: 1 },
      ],
    });
    const end = { deliveryToken: fired.deliveryToken, id: added.id };
    const fires = createTriggerFires(await open().fixture.nats.connect('gateway'));
    assert.equal((await fires.read(watcher.uid, added.id)).fires, 1);
    assert.deepEqual(parsed(await post(watcher, '/v1/subscriptions/end', end, 'u-1')), { ended: true });
    assert.equal((await fires.read(watcher.uid, added.id)).fires, 0);
    assert.equal(receiptIn(await publish(shop, delivery, { subject: 'shop-4.a' }, 'e-2')).messages, 0);

    parsed(await post(watcher, '/v1/subscriptions', { ...body, deliveryToken: fired.deliveryToken }, 'k-2'));
    await open().fixture.patchAgent('team-a', watcher.name, { spec: { grants: { tools: TOOLS } } });
    const later = await pollValue(
      'the end of the grant',
      () => publish(shop, delivery, { subject: 'shop-4.b' }, `e-${Math.random()}`),
      (response) => receiptIn(response).messages === 0,
    );
    assert.equal(receiptIn(later).refused, 1);
  });

  it('nothing stays of what a subscription fired after it ended, or expired and another one follows', async () => {
    const connection = await open().fixture.nats.connect('gateway');
    const [store, fires] = [createSubscriptions(connection), createTriggerFires(connection)];
    const owner = { uid: 'u-forgetful', namespace: 'team-a' };
    const add = (key: string, milliseconds: number) => {
      const expiresAt = new Date(Date.now() + milliseconds).toISOString();
      return store.add(owner, key, { subject: 'shop-6.a', message: 'x', session: 's-1', expiresAt });
    };
    const fire = ({ id }: { id: string }) => fires.fire(owner.uid, id, { maxFiresPerHour: 9, cooldownMs: 0 }, 'evt-1');
    const [short, long] = [await add('short', 300), await add('long', 60_000)];
    for (const subscription of [short, long]) await fire(subscription);
    assert.equal(await store.end(owner, long.id), true);
    // One that an event of this moment fires for the last time.
    await fire(long);
    await pollValue(
      'the end of the subscription',
      () => store.of('team-a'),
      (all) => !all.some(({ id }) => id === short.id),
    );
    const later = [await add('first', 60_000), await add('second', 60_000)];
    await pollValue(
      'the keys that are left',
      () => messageCounts(connection, bucketStream(BUCKETS.triggers), bucketSubject(BUCKETS.triggers, 'u-forgetful.>')),
      (counts) => !Object.keys(counts).some((subject) => subject.includes('.fires.')),
    );
    for (const { id } of later) assert.equal(await store.end(owner, id), true);
  });

  it('a message that fails is an event of the platform, and the failed message of a trigger is none', async () => {
    const failing = await agent();
    const data = '{{event.agent}} {{event.code}}';
    const watcher = await listener({ name: 'failed', subject: 'temper.message.*', message: data });
    const fail = async (on: RunningAgent, { deliveryToken }: PodDelivery): Promise<void> => {
      const outcome = { deliveryToken, action: 'reject', code: 'TEMPER_TIMEOUT', message: 'too late' };
      parsed(await open().postDelivery(on, outcome), 204);
    };
    await fail(failing, await work(failing));
    const informed = await open().next(watcher);
    assert.deepEqual([informed.message.text, informed.message.source], [`${failing.name} TEMPER_TIMEOUT`, 'Trigger']);
    await fail(watcher, informed);
    await fail(failing, await work(failing));
    const again = await open().next(watcher);
    assert.equal(again.message.text, `${failing.name} TEMPER_TIMEOUT`, 'not the failure of the watcher');
  });

  it('an event that a gateway accepted before its end is continued by another one, with one message for each agent', async () => {
    const trigger = { name: 'late', subject: 'shop-5.a', message: '{{event}}', maxFires: 5 };
    const [first, second] = [await listener(trigger), await listener(trigger)];
    const connection = await open().fixture.nats.connect('gateway');
    const event: PublishedEvent = {
      id: 'evt-left',
      subject: 'shop-5.a',
      data: 'left',
      source: 'Agent',
      agent: first.name,
      time: new Date(Date.now() - 60_000).toISOString(),
      tainted: false,
    };
    const recipients = [first, second].map(({ uid }) => ({ agentUid: uid, trigger: 'late' }));
    const store = createAcceptedEvents(connection);
    await store.add({ event, namespace: 'team-a', ownerUid: first.uid, recipients });
    await pollValue(
      'the end of the event',
      () => store.open(),
      (left) => left.length === 0,
    );
    const inbox = createNatsInbox(connection);
    for (const { uid } of [first, second]) assert.equal((await inbox.depth(uid)).pending, 1);
    const { message } = await open().next(second);
    assert.deepEqual([message.text, message.source, message.depth, message.root], ['left', 'Trigger', 0, message.id]);
  });

  it('an event that the operator announces is one message for each trigger, also when it is announced again, and nothing without one', async () => {
    const trigger = { name: 'gone', subject: 'temper.agent.*', message: '{{event.agent}} {{source}}' };
    const watchers = [await listener(trigger), await listener(trigger)];
    const connection = await open().fixture.nats.connect('gateway');
    const store = createAcceptedEvents(connection);
    const announced = (id: string, subject: string) => ({
      event: {
        id,
        subject,
        data: { agent: 'lost' },
        source: 'Platform' as const,
        agent: 'lost',
        time: new Date().toISOString(),
        tainted: false,
      },
      namespace: 'team-a',
      ownerUid: 'u-lost',
    });
    const taken = () =>
      pollValue(
        'the end of the events',
        () => store.open(),
        (left) => left.length === 0,
      );
    await store.announce(announced('evt-terminated', 'temper.agent.terminated'));
    await store.announce(announced('evt-unmatched', 'temper.tool.shared'));
    await taken();
    await store.announce(announced('evt-terminated', 'temper.agent.terminated'));
    await taken();
    const inbox = createNatsInbox(connection);
    for (const { uid } of watchers) assert.equal((await inbox.depth(uid)).pending, 1);
    const { message } = await open().next(watchers[1] ?? assert.fail());
    assert.deepEqual([message.text, message.source, message.depth], ['lost Platform', 'Trigger', 0]);
    const history = await createEventHistory(connection).read('team-a');
    assert.deepEqual(
      history.filter(({ id }) => id === 'evt-terminated' || id === 'evt-unmatched').map(({ messages }) => messages),
      [2],
    );
  });

  it('the event of a tainted session taints the sessions that get it and is private data of them, and that of another one is neither', async () => {
    const shop = await agent(
      { grants: { tools: TOOLS, events: { publish: ['shop-7.>'] } } },
      { tainted: { deny: [] } },
    );
    const watcher = await listener({ name: 'read', subject: 'shop-7.a', message: '{{event}}' });
    const publishFrom = async (session: string, tainted: boolean): Promise<boolean | undefined> => {
      parsed(await open().sendMessage(shop.name, 'work', session));
      const delivery = await open().next(shop);
      const store = createSessionStore(await open().fixture.nats.connect('gateway'), shop.uid);
      if (tainted) await store.append(session, 0, [{ role: 'user', text: 'read' }], { tainted });
      assert.equal(
        receiptIn(await publish(shop, delivery, { subject: 'shop-7.a', data: session }, session)).messages,
        1,
      );
      const { deliveryToken } = delivery;
      const end = { deliveryToken, action: 'ack', reply: 'ok', finishReason: 'complete' };
      parsed(await open().postDelivery(shop, end), 204);
      const { message, deliveryToken: received } = await open().next(watcher);
      assert.equal(message.text, session);
      parsed(await open().postDelivery(watcher, { ...end, deliveryToken: received }), 204);
      const bus = await open().fixture.nats.connect('gateway');
      const { hasPrivateData } = await createSessionStore(bus, watcher.uid).marks(message.session);
      assert.equal(hasPrivateData, tainted);
      return message.tainted;
    };
    assert.equal(await publishFrom('s-tainted', true), true);
    assert.equal(await publishFrom('s-clean', false), undefined);
    const past = await createEventHistory(await open().fixture.nats.connect('gateway')).read('team-a');
    assert.deepEqual(
      past.filter(({ subject }) => subject === 'shop-7.a').map(({ data, tainted }) => [data, tainted]),
      [
        ['s-tainted', true],
        ['s-clean', false],
      ],
    );
  });

  it('a file that an agent creates is an event of its chain, and its messages are tainted', async () => {
    const writer = await agent();
    const watcher = await listener({ name: 'files', subject: 'temper.file.created', message: '{{event.path}}' });
    const { deliveryToken, message } = await work(writer);
    const stamp = { time: new Date().toISOString(), agent: 'x', session: message.session, rootMessage: message.root };
    const created = { type: 'file-created', path: 'inbox/a.json', bytes: 2, ...stamp };
    const report = { deliveryToken, events: [created, { ...created, session: 'of-another' }] };
    parsed(await post(writer, '/v1/reports', report, 'r-1'), 204);
    parsed(await post(writer, '/v1/reports', report, 'r-1', open().other), 204);
    const inbox = createNatsInbox(await open().fixture.nats.connect('gateway'));
    assert.equal((await inbox.depth(watcher.uid)).pending, 1);
    const informed = await open().next(watcher);
    assert.deepEqual(
      [informed.message.text, informed.message.root, informed.message.depth, informed.message.tainted],
      ['inbox/a.json', message.root, 1, true],
    );
  });
}
