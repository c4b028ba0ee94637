import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeClock } from '../../../test/support/clocks.ts';
import type { EventTrigger } from '../../api/v1alpha1/schedule/triggers.ts';
import type { Envelope } from '../../bus/port.ts';
import { MAX_AGENT_SUBSCRIPTIONS, MAX_EVENT_BYTES, MAX_PAST_EVENTS, MAX_RECIPIENTS } from '../../events/limits.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError } from '../../lib/errors.ts';
import { type Json, textAt } from '../../lib/json.ts';
import { memoryRecordStore, type RecordStore } from '../../lib/record-store.ts';
import { createDecider } from '../../policy/decider.ts';
import { LocalInboxes } from '../messages/local-inbox.ts';
import { inboxOf } from '../messages/message-entries.ts';
import { MessageLog, readInboxes } from '../messages/message-log.ts';
import type { Member } from '../team/member.ts';
import { LocalEvents } from './local-events.ts';

const PAID: EventTrigger = { name: 'paid', subject: 'orders.*.paid', message: 'Ship {{event.id}} ({{subject}}).' };
const EVENT = { subject: 'orders.eu.paid', data: { id: 'A-7' } };

interface Setup {
  records?: RecordStore;
  clock?: FakeClock;
  /** Triggers of the agent `shipping`. */
  triggers?: EventTrigger[];
  grants?: object;
  closed?: string[];
  suspended?: string[];
  depth?: number;
  policy?: object;
}

function aMember(name: string, spec: object, { closed = [], policy = {} }: Setup): Member {
  const scope = { name, namespace: 'team-a' };
  return {
    ...scope,
    agent: { metadata: scope, spec: { trustPolicyRef: { name: 'p' }, model: { primary: 'p/m' }, ...spec } },
    policy: { metadata: { name: 'p' }, spec: policy },
    sessions: { isClosed: async (session: string) => closed.includes(session) },
  } as unknown as Member;
}

/** A process over the records; another one over the same records is the next process. */
async function aProcess(setup: Setup = {}) {
  const { records = memoryRecordStore(), clock = new FakeClock('2026-03-02T10:00:00Z'), suspended = [] } = setup;
  const { triggers = [PAID], grants = { events: { publish: ['orders.>'], subscribe: ['orders.>'] } } } = setup;
  const shop = aMember('shop', { grants }, setup);
  const shipping = aMember('shipping', { grants, schedule: { mode: 'Proactive', triggers } }, setup);
  const inboxes = new LocalInboxes({ log: await MessageLog.open(records, clock.now().getTime()), clock });
  const events = new LocalEvents({
    inboxes,
    clock,
    workspace: '/work',
    members: () => [shop, shipping],
    isSuspended: (key) => suspended.includes(key),
  });
  const message = {
    id: 'm-1',
    root: 'root-1',
    session: 's-1',
    depth: setup.depth ?? 0,
    ancestors: ['team-a/lead'],
    deadline: '2026-03-02T12:00:00.000Z',
  } as unknown as Envelope;
  const signal = new AbortController().signal;
  const of = (member: Member, isTainted = false) => {
    const decider = (tainted: boolean) =>
      createDecider({
        agent: { name: member.name, namespace: 'team-a', spec: member.agent.spec },
        policy: { name: 'p', spec: member.policy.spec },
        level: 'standard',
        tainted,
        workspace: '/work',
      });
    const agent = { member, decider, current: () => ({ message, signal }), clean: (input: Json) => input };
    return events.of(agent, { session: 's-1', isTainted });
  };
  const op = (key: string) => ({ signal, deadline: Number.POSITIVE_INFINITY, key });
  const received = (name = 'shipping'): Envelope[] =>
    [...inboxOf(inboxes.inboxes, `team-a/${name}`).messages.values()].map((queued) => queued.message);
  const history = async () =>
    [...(await readInboxes(records)).values()].flatMap((inbox) => [...inbox.events.published.values()]);
  return { records, clock, inboxes, events, shop: of(shop), of, members: { shop, shipping }, op, received, history };
}

const failsWith = (code: ErrorCode) => (error: unknown) => isTemperError(error, code);

const isDeniedBy = (rule: string) => (error: unknown) => {
  assert.ok(isTemperError(error, 'TEMPER_POLICY_DENIED'));
  assert.equal(error.details['rule'], rule);
  return true;
};

describe('the events of agents of one process', () => {
  it('an event is one message for a matching trigger, in the chain of its publisher, also when the call is repeated by the next process', async () => {
    const first = await aProcess();
    const receipt = await first.shop.publish(EVENT, first.op('call-1'));
    assert.deepEqual(receipt, { id: receipt['id'], messages: 1, refused: 0 });
    const [message] = first.received();
    assert.equal(message?.text, 'Ship A-7 (orders.eu.paid).');
    assert.deepEqual([message?.source, message?.from, message?.tainted], ['Trigger', 'trigger', undefined]);
    assert.match(message?.session ?? '', /^trigger-paid-[0-9a-f]{16}$/);
    assert.deepEqual([message?.root, message?.depth, message?.deadline], ['root-1', 1, '2026-03-02T12:00:00.000Z']);
    assert.deepEqual(message?.ancestors, ['team-a/lead', 'team-a/shop']);
    const second = await aProcess(first);
    assert.deepEqual(await second.shop.publish(EVENT, second.op('call-1')), receipt);
    assert.equal(second.received().length, 1);
    const [past, ...others] = await second.history();
    assert.deepEqual([past?.subject, past?.messages, past?.excerpt], ['orders.eu.paid', 1, '{"id":"A-7"}']);
    assert.deepEqual(others, []);
  });

  it('a process that ends before the change is stored leaves no message and no event, and one that ends after it leaves both', async () => {
    const records = memoryRecordStore();
    const { shop, op } = await aProcess({
      records: { ...records, append: () => Promise.reject(new Error('the process ends')) },
    });
    await assert.rejects(shop.publish(EVENT, op('call-1')), /the process ends/);
    const next = await aProcess({ records });
    assert.deepEqual([next.received(), await next.history()], [[], []]);
    await next.shop.publish(EVENT, next.op('call-1'));
    const last = await aProcess({ records });
    assert.deepEqual([last.received().length, (await last.history()).length], [1, 1]);
  });

  it('subjects that do not match, the own agent, another addressee, a trigger that is off and a suspended agent give no message', async () => {
    const { shop, op, received, of, members } = await aProcess();
    const none = { messages: 0, refused: 0 };
    const counts = async (input: Json, key: string, from = shop) => {
      const { messages, refused } = await from.publish(input, op(key));
      return { messages, refused };
    };
    assert.deepEqual(await counts({ subject: 'orders.paid' }, 'a'), none);
    assert.deepEqual(await counts(EVENT, 'b', of(members.shipping)), none);
    assert.deepEqual(await counts({ ...EVENT, to: 'shop' }, 'c'), none);
    assert.deepEqual(await counts({ ...EVENT, to: 'shipping' }, 'd'), { messages: 1, refused: 0 });
    assert.equal(received().length, 1);
    const off = await aProcess({ triggers: [{ ...PAID, enabled: false }] });
    assert.equal((await off.shop.publish(EVENT, off.op('a')))['messages'], 0);
    const still = await aProcess({ suspended: ['team-a/shipping'] });
    assert.equal((await still.shop.publish(EVENT, still.op('a')))['refused'], 1);
    assert.deepEqual(still.received(), []);
  });

  it('the limits of a trigger hold across processes', async () => {
    const first = await aProcess({ triggers: [{ ...PAID, maxFires: 2, cooldown: '10s' }] });
    const publish = async (on: typeof first, key: string) => (await on.shop.publish(EVENT, on.op(key)))['messages'];
    assert.equal(await publish(first, 'a'), 1);
    assert.equal(await publish(first, 'b'), 0, 'the cooldown has not passed');
    first.clock.skipTo('2026-03-02T10:01:00Z');
    const second = await aProcess({ ...first, triggers: [{ ...PAID, maxFires: 2, cooldown: '10s' }] });
    assert.equal(await publish(second, 'c'), 1);
    second.clock.skipTo('2026-03-02T10:02:00Z');
    assert.equal(await publish(second, 'd'), 0, 'it fired as often as it may');
  });

  it('grants, the platform subjects, untrusted content, the depth, the size and the number of recipients limit what is published', async () => {
    const { shop, op, of, members, history } = await aProcess();
    await assert.rejects(shop.publish({ subject: 'bills.paid' }, op('a')), isDeniedBy('grant.events.publish'));
    await assert.rejects(shop.publish({ subject: 'temper.message' }, op('b')), isDeniedBy('event.subject'));
    const large = { subject: 'orders.x', data: 'x'.repeat(MAX_EVENT_BYTES) };
    await assert.rejects(shop.publish(large, op('c')), failsWith('TEMPER_EVENT_REFUSED'));
    const deep = await aProcess({ depth: 5 });
    await assert.rejects(deep.shop.publish(EVENT, deep.op('a')), failsWith('TEMPER_MESSAGE_DEPTH'));
    const many = Array.from({ length: MAX_RECIPIENTS + 1 }, (_, index) => ({ ...PAID, name: `paid-${index}` }));
    const crowd = await aProcess({ triggers: many });
    await assert.rejects(crowd.shop.publish(EVENT, crowd.op('a')), failsWith('TEMPER_EVENT_REFUSED'));
    assert.deepEqual(crowd.received(), []);
    const denied = await aProcess({ policy: { tainted: { deny: ['message'] } } });
    await assert.rejects(
      denied.of(denied.members.shop, true).publish(EVENT, denied.op('a')),
      isDeniedBy('tainted.message'),
    );
    assert.deepEqual(await history(), []);
    await of(members.shop, false).publish(EVENT, op('d'));
    assert.equal((await history()).length, 1);
  });

  it('the event of a session with untrusted content taints the sessions that get it, whatever sources the policy trusts', async () => {
    const { of, members, op, received, history } = await aProcess({ policy: { tainted: { deny: [], sources: [] } } });
    await of(members.shop, true).publish(EVENT, op('a'));
    assert.equal(received()[0]?.tainted, true);
    assert.equal((await history())[0]?.tainted, true);
  });

  it('an agent that publishes faster than its rate is refused, and a repeated call is not counted', async () => {
    const { shop, op, clock } = await aProcess();
    for (let index = 0; index < 60; index += 1) await shop.publish({ subject: 'orders.x' }, op(`call-${index}`));
    await shop.publish({ subject: 'orders.x' }, op('call-0'));
    await assert.rejects(shop.publish({ subject: 'orders.x' }, op('next')), failsWith('TEMPER_RATE_LIMITED'));
    clock.skip(1_000);
    await shop.publish({ subject: 'orders.x' }, op('next'));
  });

  it('an inbox without space counts as refused, and its trigger has not fired', async () => {
    const { shop, op, inboxes, received } = await aProcess({ triggers: [{ ...PAID, maxFires: 1 }] });
    const filling = { to: 'shipping', from: 'x', text: '', depth: 0, deadline: '2027-01-01T00:00:00Z', time: '' };
    for (let index = 0; index < 1_000; index += 1)
      await inboxes.publish('team-a/shipping', `fill-${index}`, { ...filling, session: `f-${index}` });
    assert.deepEqual((await shop.publish(EVENT, op('a')))['refused'], 1);
    const delivery = await inboxes.receiver('team-a/shipping').next(op('work'));
    await delivery.ack();
    assert.deepEqual((await shop.publish(EVENT, op('b')))['messages'], 1);
    assert.equal(received().length, 1_000);
  });

  it('the history has the latest events of the namespace, also after many processes', async () => {
    const { records, clock, events, inboxes } = await aProcess({ triggers: [{ ...PAID, subject: 'temper.>' }] });
    for (let index = 0; index < MAX_PAST_EVENTS + 5; index += 1) {
      const failed = { id: `m-${index}`, session: 's', source: 'Agent' } as unknown as Envelope;
      await inboxes.change((all) => {
        const entries = events.failed(all, 'team-a/shop', failed, 'TEMPER_INTERNAL');
        return { entries: entries.filter(({ op }) => op === 'event-published'), result: undefined };
      });
      clock.skip(1_000);
    }
    const next = await aProcess({ records, clock });
    const past = await next.history();
    assert.equal(past.length, MAX_PAST_EVENTS);
    assert.equal(past[0]?.id, 'evt-failed-m-5');
  });
});

describe('the subscriptions of agents of one process', () => {
  it('a subscription gives its session a message for each event until it ends, also in the next process', async () => {
    const first = await aProcess();
    const own = first.of(first.members.shipping);
    const made = await own.subscribe({ subject: 'orders.>', message: 'Seen {{event.id}}' }, first.op('sub'));
    assert.deepEqual(await own.subscribe({ subject: 'orders.>', message: 'Seen' }, first.op('sub')), made);
    const next = await aProcess(first);
    const receipt = await next.shop.publish(EVENT, next.op('a'));
    assert.equal(receipt['messages'], 2, 'the trigger and the subscription');
    assert.deepEqual(
      next.received().flatMap(({ session, text }) => (session === 's-1' ? [text] : [])),
      ['Seen A-7'],
    );
    const listed = (await next.of(next.members.shipping).list(next.op('list')))['subscriptions'];
    assert.deepEqual(listed, [{ ...made, subject: 'orders.>', session: 's-1', fires: 1 }]);
    const id = textAt(made, ['id']);
    assert.deepEqual(
      await next.of(next.members.shop).unsubscribe(id, next.op('x')),
      { ended: false },
      'of another agent',
    );
    assert.deepEqual(await next.of(next.members.shipping).unsubscribe(id, next.op('y')), { ended: true });
    assert.equal((await next.shop.publish(EVENT, next.op('b')))['messages'], 1);
  });

  it('a subscription outside the grant, with a wrong template or beyond the limit of the agent is refused', async () => {
    const { of, members, op } = await aProcess();
    const own = of(members.shipping);
    await assert.rejects(own.subscribe({ subject: '>' }, op('a')), isDeniedBy('grant.events.subscribe'));
    await assert.rejects(
      own.subscribe({ subject: 'orders.>', message: '{{secret}}' }, op('b')),
      failsWith('TEMPER_TOOL_INPUT_INVALID'),
    );
    for (let index = 0; index < MAX_AGENT_SUBSCRIPTIONS; index += 1)
      await own.subscribe({ subject: 'orders.>' }, op(`sub-${index}`));
    await assert.rejects(own.subscribe({ subject: 'orders.>' }, op('last')), failsWith('TEMPER_QUOTA_EXCEEDED'));
  });

  it('an expired subscription, a closed session and a grant that was taken away give no message', async () => {
    const first = await aProcess({ triggers: [] });
    await first.of(first.members.shipping).subscribe({ subject: 'orders.>', ttlSeconds: 60 }, first.op('sub'));
    const closed = await aProcess({ ...first, triggers: [], closed: ['s-1'] });
    assert.equal((await closed.shop.publish(EVENT, closed.op('a')))['refused'], 1);
    const denied = await aProcess({ ...first, triggers: [], grants: { events: { publish: ['orders.>'] } } });
    assert.equal((await denied.shop.publish(EVENT, denied.op('b')))['refused'], 1);
    first.clock.skip(61_000);
    const later = await aProcess({ ...first, triggers: [] });
    assert.deepEqual([(await later.shop.publish(EVENT, later.op('c')))['refused'], later.received()], [0, []]);
    assert.deepEqual(await later.of(later.members.shipping).list(later.op('list')), { subscriptions: [] });
  });
});

describe('the event of a message that failed', () => {
  const failed = (source: string) => ({ id: 'm-9', session: 's-2', source }) as unknown as Envelope;

  it('agents that wait for it get a message, in the change that ends the failed one', async () => {
    const trigger = { name: 'failed', subject: 'temper.message.failed', message: '{{event.agent}} {{event.code}}' };
    const { events, inboxes, received } = await aProcess({ triggers: [trigger] });
    for (const source of ['Trigger', 'User'])
      assert.deepEqual(events.failed(inboxes.inboxes, 'team-a/shop', failed(source), 'TEMPER_INTERNAL'), []);
    await inboxes.change((all) => {
      const entries = events.failed(all, 'team-a/shop', failed('Schedule'), 'TEMPER_TIMEOUT');
      return { entries, result: undefined };
    });
    assert.deepEqual(
      received().map(({ text, depth, root, id }) => [text, depth, root === id]),
      [['shop TEMPER_TIMEOUT', 0, true]],
    );
  });

  it('an event without a matching trigger is not stored', async () => {
    const { events, inboxes } = await aProcess();
    assert.deepEqual(events.failed(inboxes.inboxes, 'team-a/shop', failed('Agent'), 'TEMPER_TIMEOUT'), []);
  });
});
