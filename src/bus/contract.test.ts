import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { isTemperError } from '../lib/errors.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { Bus, BusEvent, Delivery, Envelope } from './port.ts';

/** One bus under test and its views per client. Every adapter of the port runs this suite. */
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
  /** Acknowledgement timeout in milliseconds. */
  ackTimeoutMs?: number;
  maxDeliveries?: number;
  /** Milliseconds from the first message to the deadline of its chain. */
  chainMilliseconds?: number;
}

let keys = 0;

function op(milliseconds = 2_000, key = `key-${(keys += 1)}`, signal = new AbortController().signal): CallOptions {
  return { signal, deadline: systemClock.monotonic() + milliseconds, key };
}

/** Milliseconds without a message that prove that none is delivered. */
const QUIET_MS = 60;

async function assertNoMessage(bus: Bus): Promise<void> {
  await assert.rejects(bus.next(op(QUIET_MS)), (error) => isTemperError(error, 'TEMPER_TIMEOUT'));
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
  it('the bus delivers a message with its sender, root, depth and deadline', () =>
    withBus(async (bus) => {
      const receipt = await bus.client('ann').send({ to: 'analyst', session: 's-1', text: 'hi' }, op());
      const { message } = await bus.agent('analyst').next(op());
      assert.deepEqual([message.id, message.root, message.depth, message.from], [receipt.id, receipt.id, 0, 'ann']);
      assert.deepEqual([message.to, message.session, message.text], ['analyst', 's-1', 'hi']);
      assert.ok(Date.parse(message.deadline) > Date.parse(message.time));
    }));
  it('the bus treats the same key of one sender as the same message', () =>
    withBus(async (bus) => {
      const draft = { to: 'analyst', session: 's-1', text: 'hi' };
      const first = await bus.client('ann').send(draft, op(2_000, 'same'));
      assert.deepEqual(await bus.client('ann').send(draft, op(2_000, 'same')), { id: first.id, duplicate: true });
      const other = await bus.client('bob').send(draft, op(2_000, 'same'));
      assert.equal(other.duplicate, false, 'keys are scoped to the sender');
      await (await bus.agent('analyst').next(op())).ack();
      await (await bus.agent('analyst').next(op())).ack();
      await assertNoMessage(bus.agent('analyst'));
    }));
  it('the bus stores a message for an agent that does not run yet, and delivers it to no other', () =>
    withBus(async (bus) => {
      await bus.client('ann').send({ to: 'analyst', session: 's-1', text: 'hi' }, op());
      await assertNoMessage(bus.agent('other'));
      assert.equal((await bus.agent('analyst').next(op())).message.text, 'hi');
    }));
  it('a waiting agent receives a message when it is sent', () =>
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
  it('the bus has one message per session in flight, and several sessions at once', () =>
    withBus(async (bus) => {
      await sendAll(bus, ['s-1', 'first'], ['s-1', 'second'], ['s-2', 'other']);
      const agent = bus.agent('analyst');
      const first = await agent.next(op());
      assert.equal(first.message.text, 'first');
      assert.equal((await agent.next(op())).message.text, 'other');
      await assertNoMessage(agent);
      await first.ack();
      assert.equal((await agent.next(op())).message.text, 'second');
    }));
  it('the bus redelivers a message after a retry, before later messages of its session', () =>
    withBus(async (bus) => {
      await sendAll(bus, ['s-1', 'first'], ['s-1', 'second']);
      const agent = bus.agent('analyst');
      await (await agent.next(op())).retry(QUIET_MS * 2);
      await assertNoMessage(agent);
      const redelivered = await agent.next(op());
      assert.equal(redelivered.message.text, 'first');
      await redelivered.ack();
      assert.equal((await agent.next(op())).message.text, 'second');
    }));
  it('the bus dead-letters a rejected message and delivers the next one', () =>
    withBus(async (bus) => {
      await sendAll(bus, ['s-1', 'poison'], ['s-1', 'second']);
      const agent = bus.agent('analyst');
      await (await agent.next(op())).reject('TEMPER_SESSION_INVALID');
      assert.equal((await agent.next(op())).message.text, 'second');
      const [letter] = await bus.deadLetters();
      assert.deepEqual([letter?.message.text, letter?.code], ['poison', 'TEMPER_SESSION_INVALID']);
    }));
  it('the bus dead-letters a message after its last allowed delivery', () =>
    withBus(
      async (bus) => {
        await sendAll(bus, ['s-1', 'poison']);
        const agent = bus.agent('analyst');
        await (await agent.next(op())).retry(0);
        await (await agent.next(op())).retry(0);
        await assertNoMessage(agent);
        assert.equal((await bus.deadLetters()).length, 1);
      },
      { maxDeliveries: 2 },
    ));
  it('the bus redelivers a message after the acknowledgement timeout, and the first receiver can no longer acknowledge it', () =>
    withBus(
      async (bus) => {
        await sendAll(bus, ['s-1', 'first']);
        const agent = bus.agent('analyst');
        const timedOut = await agent.next(op());
        const redelivered = await agent.next(op());
        assert.equal(redelivered.message.id, timedOut.message.id);
        assert.notEqual(redelivered.token, timedOut.token);
        await assert.rejects(timedOut.ack(), (error) => isTemperError(error, 'TEMPER_TIMEOUT'));
        await redelivered.ack();
        await assertNoMessage(agent);
      },
      { ackTimeoutMs: QUIET_MS * 3 },
    ));
  it('a delivery can be acknowledged, retried or rejected only once', () =>
    withBus(async (bus) => {
      await sendAll(bus, ['s-1', 'first']);
      const delivery = await bus.agent('analyst').next(op());
      await delivery.ack();
      for (const again of [() => delivery.ack(), () => delivery.retry(0), () => delivery.reject('TEMPER_INTERNAL')]) {
        await assert.rejects(again(), (error) => isTemperError(error, 'TEMPER_TIMEOUT'));
      }
    }));
  it('aborting a wait ends it, and no message is lost to the aborted receiver', () =>
    withBus(async (bus) => {
      const stop = new AbortController();
      const waiting = bus.agent('analyst').next(op(2_000, 'waiting', stop.signal));
      stop.abort();
      await assert.rejects(waiting, (error) => isTemperError(error, 'TEMPER_CANCELLED'));
      await sendAll(bus, ['s-1', 'first']);
      assert.equal((await bus.agent('analyst').next(op())).message.text, 'first');
    }));
  it('the bus dead-letters a message that is past its deadline instead of delivering it', () =>
    withBus(
      async (bus) => {
        await sendAll(bus, ['s-1', 'late']);
        await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
        await assertNoMessage(bus.agent('analyst'));
        assert.equal((await bus.deadLetters())[0]?.code, 'TEMPER_TIMEOUT');
      },
      { chainMilliseconds: 20 },
    ));
}

function chainContract(withBus: WithBus): void {
  it('a message of an agent gets root and deadline of its delivery, one level deeper, and not those the sender wrote', () =>
    withBus(async (bus) => {
      await bus.client('ann').send({ to: 'one', session: 's-1', text: 'go' }, op());
      const delivery = await bus.agent('one').next(op());
      const forged = {
        to: 'two',
        session: 's-2',
        text: 'go on',
        root: 'mine',
        depth: 0,
        deadline: '2099-01-01T00:00:00Z',
        from: 'ann',
      };
      await bus.within('one', delivery).send(forged, op());
      const { message } = await bus.agent('two').next(op());
      const { root, deadline } = delivery.message;
      assert.deepEqual([message.root, message.deadline, message.depth, message.from], [root, deadline, 1, 'one']);
      delivery.message.depth = -100;
      await bus.within('one', delivery).send({ to: 'three', session: 's-3', text: 'x' }, op());
      assert.equal(
        (await bus.agent('three').next(op())).message.depth,
        1,
        'the sender’s copy of the message is ignored',
      );
    }));
  it('an agent cannot start a chain', () =>
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
  it('the bus refuses the sixth level of a chain', () =>
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
  it('a subscriber receives the events of its types from the subscription until the signal aborts', () =>
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
