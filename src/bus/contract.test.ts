import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { isTemperError } from '../lib/errors.ts';
import type { Op } from '../lib/operation.ts';
import type { Bus, BusEvent, Delivery, Envelope } from './port.ts';

/** One bus under test, seen by its users. Whoever adapts the port to another carrier runs the same suite on it. */
export interface BusUnderTest {
  client(name: string): Bus;
  agent(name: string): Bus;
  within(agent: string, delivery: Delivery): Bus;
  publish(event: BusEvent): void | Promise<void>;
  deadLetters():
    | readonly { message: Envelope; code: ErrorCode }[]
    | Promise<readonly { message: Envelope; code: ErrorCode }[]>;
  close(): void | Promise<void>;
}

export interface BusSettings {
  /** Milliseconds after which an unsettled delivery is given to another. */
  leaseMilliseconds?: number;
  deliveries?: number;
  /** Milliseconds from the first message to the deadline of its chain. */
  chainMilliseconds?: number;
}

let keys = 0;

function op(milliseconds = 2_000, key = `key-${(keys += 1)}`, signal = new AbortController().signal): Op {
  return { signal, deadline: systemClock.monotonic() + milliseconds, key };
}

/** Long enough to show that nothing comes. */
const NOTHING_COMES = 60;

async function nothingFor(bus: Bus): Promise<void> {
  await assert.rejects(bus.next(op(NOTHING_COMES)), (error) => isTemperError(error, 'TEMPER_TIMEOUT'));
}

/** The contract of the bus port. */
export function busContract(name: string, make: (settings: BusSettings) => BusUnderTest | Promise<BusUnderTest>): void {
  const withBus = async (work: (bus: BusUnderTest) => Promise<void>, settings: BusSettings = {}): Promise<void> => {
    const bus = await make(settings);
    try {
      await work(bus);
    } finally {
      await bus.close();
    }
  };
  describe(`bus contract: ${name}: sending`, () => sendingContract(withBus));
  describe(`bus contract: ${name}: receiving`, () => receivingContract(withBus));
  describe(`bus contract: ${name}: chains`, () => chainContract(withBus));
  describe(`bus contract: ${name}: events`, () => eventContract(withBus));
}

type WithBus = (work: (bus: BusUnderTest) => Promise<void>, settings?: BusSettings) => Promise<void>;

function sendingContract(withBus: WithBus): void {
  it('delivers a message with who sent it, its root, its depth and its deadline', () =>
    withBus(async (bus) => {
      const receipt = await bus.client('ann').send({ to: 'analyst', session: 's-1', text: 'hi' }, op());
      const { message } = await bus.agent('analyst').next(op());
      assert.deepEqual([message.id, message.root, message.depth, message.from], [receipt.id, receipt.id, 0, 'ann']);
      assert.deepEqual([message.to, message.session, message.text], ['analyst', 's-1', 'hi']);
      assert.ok(Date.parse(message.deadline) > Date.parse(message.time));
    }));
  it('takes the same key of one sender for the same message', () =>
    withBus(async (bus) => {
      const draft = { to: 'analyst', session: 's-1', text: 'hi' };
      const first = await bus.client('ann').send(draft, op(2_000, 'same'));
      assert.deepEqual(await bus.client('ann').send(draft, op(2_000, 'same')), { id: first.id, duplicate: true });
      const other = await bus.client('bob').send(draft, op(2_000, 'same'));
      assert.equal(other.duplicate, false, 'a key is the sender’s own');
      await (await bus.agent('analyst').next(op())).ack();
      await (await bus.agent('analyst').next(op())).ack();
      await nothingFor(bus.agent('analyst'));
    }));
  it('keeps a message for an agent that is not there yet, and from every other', () =>
    withBus(async (bus) => {
      await bus.client('ann').send({ to: 'analyst', session: 's-1', text: 'hi' }, op());
      await nothingFor(bus.agent('other'));
      assert.equal((await bus.agent('analyst').next(op())).message.text, 'hi');
    }));
  it('wakes an agent that waits', () =>
    withBus(async (bus) => {
      const waiting = bus.agent('analyst').next(op());
      await bus.client('ann').send({ to: 'analyst', session: 's-1', text: 'hi' }, op());
      assert.equal((await waiting).message.text, 'hi');
    }));
}

function receivingContract(withBus: WithBus): void {
  const sendAll = async (bus: BusUnderTest, ...messages: [session: string, text: string][]): Promise<void> => {
    for (const [session, text] of messages) await bus.client('ann').send({ to: 'analyst', session, text }, op());
  };
  it('has one message of a session in flight, and other sessions beside it', () =>
    withBus(async (bus) => {
      await sendAll(bus, ['s-1', 'first'], ['s-1', 'second'], ['s-2', 'other']);
      const agent = bus.agent('analyst');
      const first = await agent.next(op());
      assert.equal(first.message.text, 'first');
      assert.equal((await agent.next(op())).message.text, 'other');
      await nothingFor(agent);
      await first.ack();
      assert.equal((await agent.next(op())).message.text, 'second');
    }));
  it('gives a message again after a retry, before later ones of its session', () =>
    withBus(async (bus) => {
      await sendAll(bus, ['s-1', 'first'], ['s-1', 'second']);
      const agent = bus.agent('analyst');
      await (await agent.next(op())).retry(NOTHING_COMES * 2);
      await nothingFor(agent);
      const again = await agent.next(op());
      assert.equal(again.message.text, 'first');
      await again.ack();
      assert.equal((await agent.next(op())).message.text, 'second');
    }));
  it('gives up a message that is rejected, and goes on', () =>
    withBus(async (bus) => {
      await sendAll(bus, ['s-1', 'poison'], ['s-1', 'second']);
      const agent = bus.agent('analyst');
      await (await agent.next(op())).reject('TEMPER_SESSION_INVALID');
      assert.equal((await agent.next(op())).message.text, 'second');
      const [letter] = await bus.deadLetters();
      assert.deepEqual([letter?.message.text, letter?.code], ['poison', 'TEMPER_SESSION_INVALID']);
    }));
  it('gives up a message that was delivered as often as allowed', () =>
    withBus(
      async (bus) => {
        await sendAll(bus, ['s-1', 'poison']);
        const agent = bus.agent('analyst');
        await (await agent.next(op())).retry(0);
        await (await agent.next(op())).retry(0);
        await nothingFor(agent);
        assert.equal((await bus.deadLetters()).length, 1);
      },
      { deliveries: 2 },
    ));
  it('gives a message to another when its lease runs out, and the first may not settle it any more', () =>
    withBus(
      async (bus) => {
        await sendAll(bus, ['s-1', 'first']);
        const agent = bus.agent('analyst');
        const lost = await agent.next(op());
        const again = await agent.next(op());
        assert.equal(again.message.id, lost.message.id);
        assert.notEqual(again.lease, lost.lease);
        await assert.rejects(lost.ack(), (error) => isTemperError(error, 'TEMPER_TIMEOUT'));
        await again.ack();
        await nothingFor(agent);
      },
      { leaseMilliseconds: NOTHING_COMES * 3 },
    ));
  it('settles a delivery once', () =>
    withBus(async (bus) => {
      await sendAll(bus, ['s-1', 'first']);
      const delivery = await bus.agent('analyst').next(op());
      await delivery.ack();
      for (const again of [() => delivery.ack(), () => delivery.retry(0), () => delivery.reject('TEMPER_INTERNAL')]) {
        await assert.rejects(again(), (error) => isTemperError(error, 'TEMPER_TIMEOUT'));
      }
    }));
  it('stops waiting when asked, and loses no message to one who left', () =>
    withBus(async (bus) => {
      const stop = new AbortController();
      const waiting = bus.agent('analyst').next(op(2_000, 'waiting', stop.signal));
      stop.abort();
      await assert.rejects(waiting, (error) => isTemperError(error, 'TEMPER_CANCELLED'));
      await sendAll(bus, ['s-1', 'first']);
      assert.equal((await bus.agent('analyst').next(op())).message.text, 'first');
    }));
  it('does not deliver what is past its deadline', () =>
    withBus(
      async (bus) => {
        await sendAll(bus, ['s-1', 'late']);
        await new Promise((resolve) => setTimeout(resolve, NOTHING_COMES));
        await nothingFor(bus.agent('analyst'));
        assert.equal((await bus.deadLetters())[0]?.code, 'TEMPER_TIMEOUT');
      },
      { chainMilliseconds: 20 },
    ));
}

function chainContract(withBus: WithBus): void {
  it('passes root and deadline on, one level deeper, whatever the sender says', () =>
    withBus(async (bus) => {
      await bus.client('ann').send({ to: 'one', session: 's-1', text: 'go' }, op());
      const delivery = await bus.agent('one').next(op());
      const lies = {
        to: 'two',
        session: 's-2',
        text: 'go on',
        root: 'mine',
        depth: 0,
        deadline: '2099-01-01T00:00:00Z',
        from: 'ann',
      };
      await bus.within('one', delivery).send(lies, op());
      const { message } = await bus.agent('two').next(op());
      const { root, deadline } = delivery.message;
      assert.deepEqual([message.root, message.deadline, message.depth, message.from], [root, deadline, 1, 'one']);
      delivery.message.depth = -100;
      await bus.within('one', delivery).send({ to: 'three', session: 's-3', text: 'x' }, op());
      assert.equal(
        (await bus.agent('three').next(op())).message.depth,
        1,
        'the sender’s copy of the message counts for nothing',
      );
    }));
  it('lets no agent begin a chain', () =>
    withBus(async (bus) => {
      await assert.rejects(bus.agent('one').send({ to: 'two', session: 's', text: 'x' }, op()), (error) =>
        isTemperError(error, 'TEMPER_POLICY_DENIED'),
      );
      await bus.client('ann').send({ to: 'one', session: 's-1', text: 'go' }, op());
      const delivery = await bus.agent('one').next(op());
      await assert.rejects(bus.within('two', delivery).send({ to: 'x', session: 's', text: 'x' }, op()), (error) =>
        isTemperError(error, 'TEMPER_POLICY_DENIED'),
      );
      await delivery.ack();
      await assert.rejects(bus.within('one', delivery).send({ to: 'x', session: 's', text: 'x' }, op()), (error) =>
        isTemperError(error, 'TEMPER_POLICY_DENIED'),
      );
    }));
  it('refuses the sixth level', () =>
    withBus(async (bus) => {
      await bus.client('ann').send({ to: 'agent-0', session: 's', text: 'go' }, op());
      for (let depth = 0; depth <= 5; depth += 1) {
        const delivery = await bus.agent(`agent-${depth}`).next(op());
        assert.equal(delivery.message.depth, depth);
        const sent = bus
          .within(`agent-${depth}`, delivery)
          .send({ to: `agent-${depth + 1}`, session: 's', text: 'on' }, op());
        if (depth < 5) await sent;
        else await assert.rejects(sent, (error) => isTemperError(error, 'TEMPER_MESSAGE_DEPTH'));
      }
    }));
}

function eventContract(withBus: WithBus): void {
  it('gives the events of the asked types from the moment of asking until the signal', () =>
    withBus(async (bus) => {
      const stop = new AbortController();
      const event = (type: string, data: number): BusEvent => ({
        type,
        agent: 'a',
        time: '2026-11-21T00:00:00Z',
        data,
      });
      await bus.publish(event('wanted', 0));
      const events = bus.client('ann').events(['wanted'], op(2_000, 'events', stop.signal));
      await bus.publish(event('wanted', 1));
      await bus.publish(event('other', 2));
      await bus.publish(event('wanted', 3));
      const seen: unknown[] = [];
      for await (const { data } of events) {
        seen.push(data);
        if (seen.length === 2) stop.abort();
      }
      assert.deepEqual(seen, [1, 3]);
    }));
}
