import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { PodDelivery } from '../../../../src/gateway-api/pod-api.ts';
import { createSessionStore } from '../../../../src/nats/sessions/session-store.ts';
import {
  assertError,
  deliveryOf,
  type MessageClient,
  NEXT,
  parsed,
  receiptOf,
} from '../../../support/gateway/message-client.ts';

/** What the end of a delivery carries. */
export function deliveryEndTests(open: () => MessageClient): void {
  it('the end of a delivery stores items, reports and reply once, and before the message ends', async () => {
    const messages = open();
    const { fixture, one, other } = messages;
    const agent = await messages.createReadyAgent('carrier');
    const receipt = receiptOf(await messages.sendMessage('carrier', 'hello', 's-carried'));
    const { deliveryToken, message } = await messages.next(agent);
    const event = {
      type: 'turn-start',
      turn: 1,
      time: new Date().toISOString(),
      agent: 'x',
      rootMessage: message.root,
    };
    const events = [event, { ...event, turn: 2 }].map((one) => ({ ...one, session: 's-carried' }));
    const items = [
      { role: 'user', text: 'hello', message: message.id, more: 'dropped' },
      { role: 'assistant', text: 'hi there', toolCalls: [] },
    ];
    const end = {
      deliveryToken,
      action: 'ack',
      reply: 'hi there',
      finishReason: 'complete',
      append: { afterSeq: 0, items, tainted: true },
      reports: { key: 'reports-1', batch: { events } },
    };
    const store = createSessionStore(await fixture.nats.connect('gateway'), agent.uid);
    const conflicting = { ...end, append: { ...end.append, afterSeq: 7 } };
    assertError(await messages.postDelivery(agent, conflicting), 409, 'TEMPER_STATE_CORRUPT');
    parsed(await messages.postDelivery(agent, end, other), 204);
    parsed(await messages.postDelivery(agent, end, one), 204);
    const lines = await messages.follow('carrier', receipt);
    assert.deepEqual(
      lines.map((line) => (line.kind === 'event' ? line.event.type : line.kind)),
      ['turn-start', 'turn-start', 'reply'],
    );
    assert.deepEqual(
      lines.flatMap((line) => (line.kind === 'event' ? [line.event.agent] : [])),
      ['carrier', 'carrier'],
    );
    const { items: stored, tainted } = await store.load('s-carried');
    const [asked, answered] = [{ role: 'user', text: 'hello', message: message.id }, items[1]];
    assert.deepEqual([stored, tainted], [[asked, answered], true]);
  });

  it('reports at the end are stored once when the items of a session conflict first, and not when the delivery is lost', async () => {
    const messages = open();
    const { one } = messages;
    const agent = await messages.createReadyAgent('reporter');
    const endOf = ({ deliveryToken }: PodDelivery, afterSeq: number, turn: number) => {
      const [time, items] = [new Date().toISOString(), [{ role: 'user', text: `turn ${turn}` }]];
      const event = { type: 'turn-start', turn, time, agent: 'x', rootMessage: 'root', session: 's-reported' };
      const reports = { key: `reports-${turn}`, batch: { events: [event] } };
      const append = { afterSeq, items };
      return messages.postDelivery(agent, {
        deliveryToken,
        action: 'ack',
        reply: `reply ${turn}`,
        finishReason: 'complete',
        append,
        reports,
      });
    };
    const receipt = receiptOf(await messages.sendMessage('reporter', 'one', 's-reported'));
    parsed(await endOf(await messages.next(agent), 0, 1), 204);
    const second = receiptOf(await messages.sendMessage('reporter', 'two', 's-reported'));
    const lost = await messages.next(agent);
    const restarted = { token: agent.token, body: { waitSeconds: 20, restarted: true } };
    const again = deliveryOf(await one.call('POST', NEXT, restarted));
    assertError(await endOf(lost, 1, 9), 409, 'TEMPER_DELIVERY_LOST');
    assertError(await endOf(again, 7, 2), 409, 'TEMPER_STATE_CORRUPT');
    parsed(await endOf(again, 1, 2), 204);
    const lines = await messages.follow('reporter', { ...second, after: receipt.after });
    const turns = lines.map((line) => (line.kind === 'event' && 'turn' in line.event ? line.event.turn : line.kind));
    assert.deepEqual(turns, [1, 'reply', 2, 'reply']);
  });

  it('the end of a delivery that another one has replaced stores nothing', async () => {
    const messages = open();
    const { fixture, one } = messages;
    const agent = await messages.createReadyAgent('late');
    parsed(await messages.sendMessage('late', 'hello', 's-late'));
    const { deliveryToken } = await messages.next(agent);
    const again = deliveryOf(
      await one.call('POST', NEXT, { token: agent.token, body: { waitSeconds: 20, restarted: true } }),
    );
    assert.notEqual(again.deliveryToken, deliveryToken);
    const append = { afterSeq: 0, items: [{ role: 'user', text: 'late' }] };
    const end = { deliveryToken, action: 'ack', reply: 'late', finishReason: 'complete', append };
    assertError(await messages.postDelivery(agent, end), 409, 'TEMPER_DELIVERY_LOST');
    const store = createSessionStore(await fixture.nats.connect('gateway'), agent.uid);
    assert.equal((await store.load('s-late')).seq, 0);
    const retry = { deliveryToken: again.deliveryToken, action: 'retry', delayMs: 3_600_000, append };
    parsed(await messages.postDelivery(agent, retry), 204);
    assert.equal((await store.load('s-late')).seq, 1, 'a message that is retried keeps its progress');
  });
}
