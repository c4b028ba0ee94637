import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Task } from '../../../../src/bus/port.ts';
import type { PodDelivery } from '../../../../src/gateway-api/pod-api.ts';
import { createSessionStore } from '../../../../src/nats/sessions/session-store.ts';
import type { HttpResponse } from '../../../support/gateway/gateway-fixture.ts';
import {
  assertError,
  type MessageClient,
  parsed,
  receiptOf,
  type RunningAgent,
} from '../../../support/gateway/message-client.ts';

const GRANTS = { tools: ['agent_message', 'task_get'], messages: ['*'] };
const MAY_ASK = { autonomy: 'Full', grants: GRANTS };
const NO_WAIT = 0.01;

/** Messages that ask for an answer. `open` gives the client of two replicas. */
export function askedMessageTests(open: () => MessageClient): void {
  let names = 0;

  async function pair(): Promise<{ asker: RunningAgent; worker: RunningAgent; names: [string, string] }> {
    const client = open();
    names += 1;
    const [asking, working] = [`asker-${names}`, `worker-${names}`];
    await client.fixture.createPolicy('team-a', `asking-${names}`, { tools: { allow: ['agent_message', 'task_get'] } });
    const spec = { ...MAY_ASK, trustPolicyRef: { name: `asking-${names}` } };
    const [asker, worker] = [await client.createReadyAgent(asking, spec), await client.createReadyAgent(working, spec)];
    return { asker, worker, names: [asking, working] };
  }

  const ask = (agent: RunningAgent, { deliveryToken }: PodDelivery, to: string, key: string, gateway = open().one) =>
    gateway.call('POST', '/v1/messages', {
      token: agent.token,
      key,
      body: { deliveryToken, draft: { to, session: 'work', text: 'how much?' }, ask: {} },
    });
  const task = async (
    agent: RunningAgent,
    { deliveryToken }: PodDelivery,
    ticket: string,
    waitSeconds = NO_WAIT,
    gateway = open().one,
  ): Promise<Task> =>
    parsed(
      await gateway.call('POST', '/v1/tasks', { token: agent.token, body: { deliveryToken, ticket, waitSeconds } }),
    ) as Task;
  const answer = (agent: RunningAgent, { deliveryToken }: PodDelivery, reply: string): Promise<HttpResponse> =>
    open().postDelivery(agent, { deliveryToken, action: 'ack', reply, finishReason: 'complete' }, open().other);
  const ticketOf = (response: HttpResponse): string => receiptOf(response).id;

  it('an answer that arrives while the sender waits is the result, again for a repeated call, and comes as no message', async () => {
    const client = open();
    const {
      asker,
      worker,
      names: [asking, working],
    } = await pair();
    parsed(await client.sendMessage(asking, 'ask the worker', 's-1'));
    const asked = await client.next(asker);
    const ticket = ticketOf(await ask(asker, asked, working, 'k-1'));
    assert.equal(ticketOf(await ask(asker, asked, working, 'k-1', client.other)), ticket);
    const waiting = task(asker, asked, ticket, 20);
    const received = await client.next(worker);
    assert.deepEqual(
      [received.message.source, received.message.from, received.message.root, received.message.depth],
      ['Agent', asking, asked.message.root, 1],
    );
    assert.equal(JSON.stringify(received.message).includes(asker.uid), false, 'a pod does not see UIDs of others');
    parsed(await answer(worker, received, '42'), 204);
    const expected = { ticket, agent: working, state: 'Answered', text: '42', finishReason: 'complete' };
    assert.deepEqual(await waiting, expected);
    assert.deepEqual(await task(asker, asked, ticket, NO_WAIT, client.other), expected);
    parsed(await answer(asker, asked, 'the worker says 42'), 204);
    parsed(await client.sendMessage(asking, 'and now?', 's-1'));
    assert.equal((await client.next(asker)).message.text, 'and now?', 'the answer does not come twice');
  });

  it('a late answer comes to the asking session as one message of its chain, and then not by its ticket', async () => {
    const client = open();
    const {
      asker,
      worker,
      names: [asking, working],
    } = await pair();
    parsed(await client.sendMessage(asking, 'ask the worker', 's-1'));
    const asked = await client.next(asker);
    const ticket = ticketOf(await ask(asker, asked, working, 'k-1'));
    assert.deepEqual(await task(asker, asked, ticket), { ticket, agent: working, state: 'Pending' });
    parsed(await answer(asker, asked, 'I have asked'), 204);
    const received = await client.next(worker);
    parsed(await answer(worker, received, '42'), 204);
    parsed(await answer(worker, received, '42'), 204);
    const { message, ...late } = await client.next(asker, client.other);
    assert.deepEqual(
      [message.source, message.answers, message.session, message.root, message.depth, message.from],
      ['Reply', ticket, 's-1', asked.message.root, 0, working],
    );
    assert.equal(message.text, `Answer of agent "${working}" to your message with ticket ${ticket}:\n\n42`);
    parsed(await answer(asker, { message, ...late }, 'thanks'), 204);
    parsed(await client.sendMessage(asking, 'next', 's-1'));
    const next = await client.next(asker);
    assert.equal(next.message.text, 'next', 'the answer does not come twice');
    assert.deepEqual(await task(asker, next, ticket), { ticket, agent: working, state: 'Delivered' });
  });

  it('the answer of a tainted session taints the session that asked and is private data of it, and so are its messages, whatever the pods say', async () => {
    const client = open();
    const {
      asker,
      worker,
      names: [asking, working],
    } = await pair();
    const bus = await client.fixture.nats.connect('gateway');
    const marksOf = ({ uid }: RunningAgent, session: string) => createSessionStore(bus, uid).marks(session);
    const both = { tainted: true, hasPrivateData: true };
    parsed(await client.sendMessage(asking, 'ask the worker', 's-1'));
    const asked = await client.next(asker);
    const ticket = ticketOf(await ask(asker, asked, working, 'k-1'));
    const received = await client.next(worker);
    assert.equal(received.message.tainted, undefined);
    const { deliveryToken } = received;
    const append = { afterSeq: 0, items: [{ role: 'user', text: 'how much?' }], tainted: true };
    const outcome = { deliveryToken, action: 'ack', reply: '42', finishReason: 'complete', append };
    parsed(await client.postDelivery(worker, outcome, client.other), 204);
    assert.deepEqual(await marksOf(asker, 's-1'), { tainted: false, hasPrivateData: false });
    assert.equal((await task(asker, asked, ticket, 20)).tainted, true);
    assert.deepEqual(await marksOf(asker, 's-1'), both, 'before the pod says anything');
    const body = {
      deliveryToken: asked.deliveryToken,
      draft: { to: working, session: 'next', text: 'hello' },
      ask: {},
    };
    const more = await client.one.call('POST', '/v1/messages', { token: asker.token, key: 'k-2', body });
    receiptOf(more);
    const next = await client.next(worker);
    assert.deepEqual([next.message.tainted, next.session?.history?.tainted], [true, true]);
    assert.deepEqual(await marksOf(worker, next.message.session), both);
    parsed(await answer(worker, next, 'done'), 204);
    parsed(await answer(asker, asked, 'done'), 204);
  });

  it('a ticket belongs to the session that asked', async () => {
    const client = open();
    const {
      asker,
      worker,
      names: [asking, working],
    } = await pair();
    parsed(await client.sendMessage(asking, 'ask', 's-1'));
    const asked = await client.next(asker);
    const ticket = ticketOf(await ask(asker, asked, working, 'k-1'));
    parsed(await answer(asker, asked, 'done'), 204);
    parsed(await client.sendMessage(asking, 'look', 's-2'));
    const elsewhere = await client.next(asker);
    const path = (agent: RunningAgent, deliveryToken: string) =>
      client.one.call('POST', '/v1/tasks', {
        token: agent.token,
        body: { deliveryToken, ticket, waitSeconds: NO_WAIT },
      });
    assertError(await path(asker, elsewhere.deliveryToken), 404, 'TEMPER_NOT_FOUND');
    const received = await client.next(worker);
    assertError(await path(worker, received.deliveryToken), 404, 'TEMPER_NOT_FOUND');
  });

  it('an agent that was asked cannot ask back, and may still send', async () => {
    const client = open();
    const {
      asker,
      worker,
      names: [asking, working],
    } = await pair();
    parsed(await client.sendMessage(asking, 'ask', 's-1'));
    const asked = await client.next(asker);
    ticketOf(await ask(asker, asked, working, 'k-1'));
    const received = await client.next(worker);
    assertError(await ask(worker, received, asking, 'k-2'), 422, 'TEMPER_MESSAGE_CYCLE');
    assertError(await ask(worker, received, working, 'k-3'), 422, 'TEMPER_MESSAGE_CYCLE');
  });

  it('the sender learns that the asked agent failed, by the ticket and else by a message', async () => {
    const client = open();
    const {
      asker,
      worker,
      names: [asking, working],
    } = await pair();
    parsed(await client.sendMessage(asking, 'ask', 's-1'));
    const asked = await client.next(asker);
    const first = ticketOf(await ask(asker, asked, working, 'k-1'));
    const second = ticketOf(await ask(asker, asked, working, 'k-2'));
    for (let count = 0; count < 2; count += 1) {
      const { deliveryToken } = await client.next(worker);
      const end = { deliveryToken, action: 'reject', code: 'TEMPER_MODEL_UNAVAILABLE', message: 'no model' };
      parsed(await client.postDelivery(worker, end), 204);
    }
    const failed = { ticket: first, agent: working, state: 'Failed', code: 'TEMPER_MODEL_UNAVAILABLE' };
    assert.deepEqual(await task(asker, asked, first, 20), { ...failed, reason: 'no model' });
    parsed(await answer(asker, asked, 'one failed'), 204);
    const { message } = await client.next(asker);
    assert.equal(message.answers, second);
    assert.match(message.text, /It gave no answer: no model \(TEMPER_MODEL_UNAVAILABLE\)$/);
  });
}
