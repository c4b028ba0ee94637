import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Delivery, MessageReceiver, MessageSender } from '../../src/bus/port.ts';
import type { ErrorCode } from '../../src/lib/error-codes.ts';
import { isTemperError } from '../../src/lib/errors.ts';
import { callOptions } from '../support/call-options.ts';

/** The ports of a sending and of a receiving agent, whose inbox is empty. */
export interface MessagePorts {
  sender: MessageSender;
  receiver: MessageReceiver;
  /** Name of the receiving agent. */
  to: string;
  /** Stores messages until the inbox of the receiver is full. */
  fillInbox(): Promise<void>;
}

/** Acknowledgement timeouts of consecutive deliveries. */
export interface PortRules {
  ackWaitsMs: readonly number[];
}

const LONG: PortRules = { ackWaitsMs: [60_000, 60_000, 60_000, 60_000, 60_000] };
const SHORT: PortRules = { ackWaitsMs: [500, 60_000, 60_000] };
const RETRY_MS = 400;

const hasCode = (code: ErrorCode) => (error: unknown) => isTemperError(error, code);
const isLost = hasCode('TEMPER_DELIVERY_LOST');

/** The contract of every adapter of the two message ports. `open` returns ports of agents that no other test uses. */
export function messagesContract(adapter: string, open: (rules: PortRules) => Promise<MessagePorts>): void {
  const send = ({ sender, to }: MessagePorts, text: string, key = text, session = 's-1') =>
    sender.send({ to, session, text }, { ...callOptions(), key });
  const next = ({ receiver }: MessagePorts): Promise<Delivery> => receiver.next(callOptions());
  const assertNothing = ({ receiver }: MessagePorts): Promise<void> =>
    assert.rejects(receiver.next(callOptions(300)), hasCode('TEMPER_TIMEOUT'));

  describe(`message contract: ${adapter}`, () => {
    it('the receiver gets the text, the receiver name and the chain of the sender', async () => {
      const ports = await open(LONG);
      const { id, duplicate } = await send(ports, 'hello');
      assert.equal(duplicate, false);
      const { message, token } = await next(ports);
      assert.deepEqual([message.id, message.to, message.text, message.depth], [id, ports.to, 'hello', 1]);
      assert.notEqual(message.root, message.id);
      assert.ok(Date.parse(message.deadline) > Date.now() && token !== '');
    });

    it('a repeated send returns the first receipt, and the message arrives once', async () => {
      const ports = await open(LONG);
      const first = await send(ports, 'one', 'k');
      assert.deepEqual(await send(ports, 'another text', 'k'), { id: first.id, duplicate: true });
      const delivery = await next(ports);
      assert.equal(delivery.message.text, 'one');
      await delivery.ack();
      assert.deepEqual(await send(ports, 'one', 'k'), { id: first.id, duplicate: true });
      await assertNothing(ports);
    });

    it('messages of one session arrive in order, one in flight at a time', async () => {
      const ports = await open(LONG);
      for (const text of ['a', 'b', 'c']) await send(ports, text);
      for (const text of ['a', 'b', 'c']) {
        const delivery = await next(ports);
        assert.equal(delivery.message.text, text);
        await assertNothing(ports);
        await delivery.ack();
      }
      await assertNothing(ports);
    });

    it('a retried message is redelivered after the delay and before later messages of its session', async () => {
      const ports = await open(LONG);
      for (const text of ['a', 'b']) await send(ports, text);
      const first = await next(ports);
      const start = performance.now();
      await first.retry(RETRY_MS);
      const again = await next(ports);
      assert.ok(performance.now() - start >= RETRY_MS * 0.9, 'the delay has passed');
      assert.equal(again.message.id, first.message.id);
      assert.notEqual(again.token, first.token);
      await again.ack();
      assert.equal((await next(ports)).message.text, 'b');
    });

    it('a session whose message waits for its redelivery delays no other session', async () => {
      const ports = await open(LONG);
      for (const [text, session] of [
        ['a1', 's-1'],
        ['a2', 's-1'],
        ['b', 's-2'],
      ] as const) {
        await send(ports, text, text, session);
      }
      await (await next(ports)).retry(60_000);
      const delivery = await next(ports);
      assert.equal(delivery.message.text, 'b');
      await delivery.ack();
      await assertNothing(ports);
    });

    it('each of ack, retry and reject ends a delivery; a further call throws', async () => {
      const ports = await open(LONG);
      const ends = [
        (delivery: Delivery) => delivery.ack(),
        (delivery: Delivery) => delivery.retry(0),
        (delivery: Delivery) => delivery.reject('TEMPER_TOOL_FAILED'),
      ];
      for (const [index, end] of ends.entries()) {
        await send(ports, `message ${index}`);
        const delivery = await next(ports);
        await end(delivery);
        for (const further of ends) await assert.rejects(further(delivery), isLost);
        if (index === 1) await (await next(ports)).ack();
      }
      await assertNothing(ports);
    });

    it('a delivery is lost after its acknowledgement timeout, when the message was redelivered', async () => {
      const ports = await open(SHORT);
      await send(ports, 'slow');
      const first = await next(ports);
      const second = await next(ports);
      assert.equal(second.message.id, first.message.id);
      await assert.rejects(first.ack(), isLost);
      await assert.rejects(first.retry(0), isLost);
      await assert.rejects(first.reject('TEMPER_TOOL_FAILED'), isLost);
      await assertNothing(ports);
      await second.ack();
      await assertNothing(ports);
    });

    it('the wait for a message ends at the deadline, and when it is cancelled', async () => {
      const ports = await open(LONG);
      await assertNothing(ports);
      const cancel = new AbortController();
      const waiting = ports.receiver.next({ ...callOptions(), signal: cancel.signal });
      cancel.abort();
      await assert.rejects(waiting, hasCode('TEMPER_CANCELLED'));
      const cancelled = { ...callOptions(), signal: AbortSignal.abort() };
      await assert.rejects(ports.receiver.next(cancelled), hasCode('TEMPER_CANCELLED'));
      await send(ports, 'still there');
      assert.equal((await next(ports)).message.text, 'still there');
    });

    it('a waiting receiver gets a message that is sent meanwhile', async () => {
      const ports = await open(LONG);
      const waiting = next(ports);
      await send(ports, 'late');
      assert.equal((await waiting).message.text, 'late');
    });

    it('a full inbox refuses messages until one is acknowledged', async () => {
      const ports = await open(LONG);
      await ports.fillInbox();
      await assert.rejects(send(ports, 'one more'), hasCode('TEMPER_BUS_FULL'));
      await (await next(ports)).ack();
      assert.equal((await send(ports, 'one more')).duplicate, false);
    });
  });
}
