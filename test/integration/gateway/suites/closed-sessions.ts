import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { SessionCloseReceipt, TrustReport } from '../../../../src/gateway-api/user-api.ts';
import { createSessionStore } from '../../../../src/nats/sessions/session-store.ts';
import {
  AGENTS,
  assertError,
  type MessageClient,
  NEXT,
  parsed,
  receiptOf,
} from '../../../support/gateway/message-client.ts';

export function closedSessionTests(open: () => MessageClient): void {
  it('a closed session ends its messages, refuses new ones at both replicas, and leaves other sessions alone', async () => {
    const messages = open();
    const { fixture, one, other, userToken } = messages;
    const agent = await messages.createReadyAgent('closing');
    const path = `${AGENTS}/closing/sessions`;
    const close = (query = '', gateway = one) => gateway.call('DELETE', `${path}/s-1${query}`, { userToken });
    assertError(await close(), 404, 'TEMPER_NOT_FOUND');
    const inWork = receiptOf(await messages.sendMessage('closing', 'one', 's-1'));
    const { deliveryToken } = await messages.next(agent);
    const waiting = receiptOf(await messages.sendMessage('closing', 'two', 's-1'));
    const kept = receiptOf(await messages.sendMessage('closing', 'three', 's-2'));
    const following = [inWork, waiting].map((receipt) => messages.follow('closing', receipt, other));
    const followingAll = one.call('GET', `${path}/s-1/events?follow=true`, { userToken });
    assertError(await close(), 409, 'TEMPER_SESSION_BUSY');
    const receipt = parsed(await close('?endWork=true')) as SessionCloseReceipt;
    assert.deepEqual(receipt, {
      session: 's-1',
      closedBefore: false,
      tools: 0,
      endedMessages: [inWork.id, waiting.id],
    });
    for (const lines of await Promise.all(following)) {
      const last = lines.at(-1);
      assert.ok(last?.kind === 'failed' && last.code === 'TEMPER_SESSION_CLOSED', JSON.stringify(lines));
    }
    assert.match((await followingAll).text.trimEnd().split('\n').at(-1) ?? '', /"code":"TEMPER_SESSION_CLOSED"/);
    const again = parsed(await close('?endWork=true', other)) as SessionCloseReceipt;
    assert.deepEqual([again.closedBefore, again.endedMessages], [true, []]);
    for (const gateway of [one, other]) {
      assertError(await messages.sendMessage('closing', 'four', 's-1', gateway), 410, 'TEMPER_SESSION_CLOSED');
    }
    const ack = { deliveryToken, action: 'ack', reply: 'late', finishReason: 'complete' };
    assert.notEqual((await messages.postDelivery(agent, ack)).status, 204, 'the pod that still works cannot answer');
    const store = createSessionStore(await fixture.nats.connect('gateway'), agent.uid);
    await assert.rejects(
      store.append('s-1', 0, [{ role: 'user', text: 'late' }]),
      /TEMPER_SESSION_CLOSED|closed session/,
    );
    await store.close('s-1');
    assert.ok(await store.isClosed('s-1'), 'a pod cannot open a closed session again');
    assert.ok(!(await store.list()).some(({ session }) => session === 's-1'));
    assert.equal((await messages.next(agent)).message.id, kept.id, 'the agent goes on with other sessions');
    const { tasks } = parsed(await one.call('GET', `${AGENTS}/closing/trust`, { userToken })) as TrustReport;
    assert.equal(tasks.ended, 0, 'a message that a user ended says nothing about the agent');
  });

  it('a message that reaches the inbox while its session is closed becomes a dead letter', async () => {
    const messages = open();
    const { fixture, one } = messages;
    const agent = await messages.createReadyAgent('racing');
    const receipt = receiptOf(await messages.sendMessage('racing', 'one', 's-1'));
    const store = createSessionStore(await fixture.nats.connect('gateway'), agent.uid);
    await store.closePermanently('s-1');
    const following = messages.follow('racing', receipt);
    const empty = await one.call('POST', NEXT, { token: agent.token, body: { waitSeconds: 0 } });
    assert.equal(empty.status, 204);
    const last = (await following).at(-1);
    assert.ok(last?.kind === 'failed' && last.code === 'TEMPER_SESSION_CLOSED');
  });
}
