import assert from 'node:assert/strict';
import { createWakeups } from '../../../src/nats/wakeups.ts';
import { after, before, describe, it } from 'node:test';
import type {
  DeadLetterSummary,
  SessionStreamLine,
  TopAgent,
  TrustReport,
  UsageReport,
} from '../../../src/gateway-api/user-api.ts';
import type { PodDelivery } from '../../../src/gateway-api/pod-api.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import { sha256 } from '../../../src/lib/canonical.ts';
import { createNatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { readToolRecords } from '../../../src/nats/tasks/task-records.ts';
import { GatewayFixture, type HttpResponse, type GatewayReplica } from '../../support/gateway/gateway-fixture.ts';
import {
  AGENTS,
  assertError,
  deliveryOf,
  DELIVERIES,
  MessageClient,
  NEXT,
  parsed,
  receiptOf,
  type RunningAgent,
} from '../../support/gateway/message-client.ts';
import { poll, pollValue } from '../../support/poll.ts';
import { MESSAGE_SUITES } from './suites/message-suites.ts';

/** The policy that allows the tool `agent_send`. */
const MAY_SEND = { trustPolicyRef: { name: 'speaking' } };
const LETTERS = '/v1/users/namespaces/team-a/deadletters';

const sentOf = (answer: HttpResponse) => parsed(answer) as { id: string; duplicate: boolean };
const lettersOf = (answer: HttpResponse) => parsed(answer) as DeadLetterSummary[];

describe('messages through two gateway replicas', () => {
  let fixture: GatewayFixture;
  let one: GatewayReplica;
  let other: GatewayReplica;
  let userToken: string;
  let messages: MessageClient;

  before(async () => {
    fixture = await GatewayFixture.open(['team-a']);
    userToken = await fixture.createUserToken('team-a');
    await fixture.createPolicy('team-a', 'speaking', { tools: { allow: ['agent_send'] } });
    [one, other] = await Promise.all([
      fixture.startReplica({ webhooks: { host: '127.0.0.1', port: 0 } }),
      fixture.startReplica(),
    ]);
    messages = new MessageClient({ fixture, one, other, userToken });
  });
  after(async () => {
    await fixture?.[Symbol.asyncDispose]();
  });

  it('one replica acknowledges a delivery of the other, and the user receives the reply once', async () => {
    const scout = await messages.createReadyAgent('scout');
    const receipt = receiptOf(await messages.sendMessage('scout', 'hello'));
    assert.equal(receipt.podBound, true);
    const following = messages.follow('scout', receipt, other);
    const { message, deliveryToken, ackTimeoutMs } = await messages.next(scout, one);
    assert.deepEqual(
      [message.id, message.root, message.text, message.from, message.depth],
      [receipt.id, receipt.id, 'hello', 'user', 0],
    );
    assert.ok(ackTimeoutMs > 0);
    assert.equal((await messages.postDelivery(scout, { deliveryToken, action: 'extend' }, other)).status, 204);
    const ack = { deliveryToken, action: 'ack', reply: 'hi there', finishReason: 'complete' };
    parsed(await messages.postDelivery(scout, ack, other), 204);
    parsed(await messages.postDelivery(scout, ack, one), 204);
    const lines = await following;
    assert.deepEqual(
      lines.map((line) => ('text' in line ? line.text : line.kind)),
      ['hi there'],
    );
    const empty = await one.call('POST', NEXT, { token: scout.token, body: { waitSeconds: 0 } });
    assert.equal(empty.status, 204);
  });

  it('a delivery brings the history of its session, unless it is large', async () => {
    const agent = await messages.createReadyAgent('reader');
    const endOf = ({ deliveryToken }: PodDelivery, append: object) =>
      messages.postDelivery(agent, { deliveryToken, action: 'ack', reply: 'x', finishReason: 'complete', append });
    parsed(await messages.sendMessage('reader', 'one', 's-read'));
    const first = await messages.next(agent);
    assert.deepEqual(first.session, { history: { seq: 0, items: [], tainted: false }, tools: [] });
    const items = [{ role: 'user', text: 'one' }];
    parsed(await endOf(first, { afterSeq: 0, items, tainted: true }), 204);
    parsed(await messages.sendMessage('reader', 'two', 's-read'));
    const second = await messages.next(agent, other);
    assert.deepEqual(second.session, { history: { seq: 1, items, tainted: true }, tools: [] });
    const large = [{ role: 'user', text: 'x'.repeat(300_000) }];
    parsed(await endOf(second, { afterSeq: 1, items: large }), 204);
    parsed(await messages.sendMessage('reader', 'three', 's-read'));
    assert.deepEqual((await messages.next(agent)).session, { tools: [] });
  });

  it('a repeated idempotency key returns the same message and session', async () => {
    await messages.createReadyAgent('twice');
    const send = (key: string) =>
      one.call('POST', `${AGENTS}/twice/messages`, { userToken, key, body: { text: 'again' } });
    const [first, second] = [receiptOf(await send('k')), receiptOf(await send('k'))];
    assert.deepEqual(
      [second.id, second.session, first.duplicate, second.duplicate],
      [first.id, first.session, false, true],
    );
  });

  it('a long poll returns when a message arrives, and only one message of a session is in flight', async () => {
    const agent = await messages.createReadyAgent('poller');
    const waiting = messages.next(agent, one, 60);
    const first = receiptOf(await messages.sendMessage('poller', 'first', 's-1', other));
    parsed(await messages.sendMessage('poller', 'second', 's-1'));
    const { message, deliveryToken } = await waiting;
    assert.equal(message.id, first.id);
    const nothing = await other.call('POST', NEXT, { token: agent.token, body: { waitSeconds: 0.5 } });
    assert.equal(nothing.status, 204);
    parsed(
      await messages.postDelivery(agent, { deliveryToken, action: 'ack', reply: '', finishReason: 'complete' }),
      204,
    );
    assert.equal((await messages.next(agent)).message.text, 'second');
  });

  it('a restarted pod gets its in-flight message at once, and another pod does not', async () => {
    const [agent, thief] = [await messages.createReadyAgent('phoenix'), await messages.createReadyAgent('crow')];
    const { id } = receiptOf(await messages.sendMessage('phoenix', 'half done'));
    const first = await messages.next(agent);
    const ask = (by: RunningAgent, server: GatewayReplica) =>
      server.call('POST', NEXT, { token: by.token, body: { waitSeconds: 1, restarted: true } });
    assert.equal((await ask(thief, other)).status, 204);
    assert.equal(
      (await messages.postDelivery(agent, { deliveryToken: first.deliveryToken, action: 'extend' })).status,
      204,
      'the delivery is still valid',
    );
    const again = deliveryOf(await ask(agent, other));
    assert.equal(again.message.id, id);
    const end = { action: 'ack', reply: 'done', finishReason: 'complete' };
    parsed(await messages.postDelivery(agent, { deliveryToken: again.deliveryToken, ...end }), 204);
    const nothing = await ask(agent, one);
    assert.equal(nothing.status, 204, 'an acknowledged message is not redelivered');
  });

  it('a delivery token of another pod, an altered one, or one of a replaced pod is rejected', async () => {
    const [victim, thief] = [await messages.createReadyAgent('victim'), await messages.createReadyAgent('robber')];
    const receipt = receiptOf(await messages.sendMessage('victim', 'mine'));
    const { deliveryToken } = await messages.next(victim);
    const ack = (given: string) => ({ deliveryToken: given, action: 'ack', reply: 'stolen', finishReason: 'complete' });
    assertError(await messages.postDelivery(thief, ack(deliveryToken)), 403, 'TEMPER_DELIVERY_TOKEN_INVALID');
    assertError(
      await messages.postDelivery(
        victim,
        ack(`${deliveryToken.slice(0, -1)}${deliveryToken.endsWith('A') ? 'B' : 'A'}`),
      ),
      403,
      'TEMPER_DELIVERY_TOKEN_INVALID',
    );
    assertError(
      await messages.postDelivery(victim, { ...ack(deliveryToken), extra: 1 }),
      400,
      'TEMPER_REQUEST_INVALID',
    );
    const successor = await fixture.createPod('team-a', 'victim-2');
    await fixture.bindPod('team-a', 'victim', successor);
    // Until the gateway observes the new binding, the old pod may still acknowledge its message.
    await pollValue(
      'the old pod to be rejected',
      async () => (await messages.postDelivery(victim, { deliveryToken, action: 'extend' })).status,
      (value) => value === 403,
    );
    assertError(await messages.postDelivery(victim, ack(deliveryToken)), 403, 'TEMPER_POD_NOT_BOUND');
    const token = await fixture.createPodToken('team-a', successor);
    await pollValue(
      'the gateway to know the new pod',
      async () => (await one.call('GET', '/v1/assignment', { token })).status,
      (value) => value === 200,
    );
    assertError(
      await one.call('POST', DELIVERIES, { token, body: ack(deliveryToken) }),
      403,
      'TEMPER_DELIVERY_TOKEN_INVALID',
    );
    const path = `${AGENTS}/victim/sessions/${receipt.session}/events`;
    assert.equal((await one.call('GET', path, { userToken })).text, '');
  });

  it('a message that an agent sends inherits root, depth and deadline from its delivery token', async () => {
    const chain = ['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6'];
    const grants = { ...MAY_SEND, grants: { tools: ['agent_send'], messages: ['c*'] } };
    const agents = await Promise.all(chain.map((name) => messages.createReadyAgent(name, grants)));
    const { id: root } = receiptOf(await messages.sendMessage('c0', 'start'));
    let deadline: string | undefined;
    for (const [depth, agent] of agents.entries()) {
      const to = chain[depth + 1];
      if (to === undefined) break;
      const { message, deliveryToken } = await messages.next(agent);
      deadline ??= message.deadline;
      assert.deepEqual([message.root, message.depth, message.deadline], [root, depth, deadline]);
      assert.equal(message.session, depth === 0 ? message.session : `c${depth - 1}.work`);
      const draft = { to, session: 'work', text: 'go on' };
      const send = (key: string, body: object) => other.call('POST', '/v1/messages', { token: agent.token, key, body });
      assertError(await send('k', { deliveryToken, draft: { ...draft, depth: 0 } }), 400, 'TEMPER_REQUEST_INVALID');
      if (depth === 5) {
        assertError(await send('k', { deliveryToken, draft }), 422, 'TEMPER_MESSAGE_DEPTH');
        break;
      }
      const sent = sentOf(await send('k', { deliveryToken, draft }));
      const again = sentOf(await send('k', { deliveryToken, draft }));
      assert.deepEqual([again.id, again.duplicate], [sent.id, true]);
    }
  });

  it('an agent can send only to agents in its grants and namespace, and only with a delivery token', async () => {
    const may = { tools: ['agent_send'], messages: ['friend', 'absent'] };
    const agent = await messages.createReadyAgent('lonely', { ...MAY_SEND, grants: may });
    parsed(await messages.sendMessage('lonely', 'work'));
    const { deliveryToken } = await messages.next(agent);
    const send = (to: string, given = deliveryToken) =>
      one.call('POST', '/v1/messages', {
        token: agent.token,
        key: `k-${to}`,
        body: { deliveryToken: given, draft: { to, session: 's', text: 'x' } },
      });
    assertError(await send('scout'), 403, 'TEMPER_POLICY_DENIED');
    assertError(await send('absent'), 404, 'TEMPER_NOT_FOUND');
    assertError(await send('friend', 'd1.e30.AAAA'), 403, 'TEMPER_DELIVERY_TOKEN_INVALID');
  });

  it('an agent without the tool agent_send cannot send through the API either', async () => {
    const agent = await messages.createReadyAgent('toolless', { ...MAY_SEND, grants: { messages: ['scout'] } });
    parsed(await messages.sendMessage('toolless', 'work'));
    const { deliveryToken } = await messages.next(agent);
    const body = { deliveryToken, draft: { to: 'scout', session: 's', text: 'x' } };
    const answer = await one.call('POST', '/v1/messages', { token: agent.token, key: 'k', body });
    assertError(answer, 403, 'TEMPER_POLICY_DENIED');
    assert.match(answer.text, /agent_send/);
  });

  it('a message for an agent without a pod is queued and publishes a wakeup', async () => {
    const uid = await fixture.createAgent('team-a', 'sleeper');
    await pollValue(
      'the gateway to know agent sleeper',
      async () => (await messages.sendMessage('sleeper', 'wake up')).status,
      (value) => value === 200,
    );
    assert.equal(receiptOf(await messages.sendMessage('sleeper', 'hurry')).podBound, false);
    const operator = await fixture.nats.connect('operator');
    const stopping = new AbortController();
    const woken: string[] = [];
    const consuming = createWakeups(operator).consume(async (agentUid) => {
      woken.push(agentUid);
    }, stopping.signal);
    await poll('the wakeup of the agent', async () => woken.includes(uid));
    stopping.abort();
    await consuming;
    const pod = await fixture.createPod('team-a', 'sleeper-1');
    await fixture.bindPod('team-a', 'sleeper', pod);
    const token = await fixture.createPodToken('team-a', pod);
    await pollValue(
      'the gateway to know the pod',
      async () => (await one.call('GET', '/v1/assignment', { token })).status,
      (value) => value === 200,
    );
    assert.equal((await messages.next({ uid, pod, token })).message.text, 'wake up');
  });

  it('a suspended agent gets no message and cannot extend a delivery; after resume it gets the queued message', async () => {
    const agent = await messages.createReadyAgent('paused');
    parsed(await messages.sendMessage('paused', 'first'));
    const { deliveryToken } = await messages.next(agent);
    await fixture.patchAgent('team-a', 'paused', { spec: { suspend: true } });
    await pollValue(
      'the suspended agent to be rejected',
      async () => (await messages.postDelivery(agent, { deliveryToken, action: 'extend' })).status,
      (value) => value === 409,
    );
    parsed(
      await messages.postDelivery(agent, { deliveryToken, action: 'ack', reply: 'done', finishReason: 'complete' }),
      204,
    );
    parsed(await messages.sendMessage('paused', 'second'));
    const waiting = messages.next(agent, one, 60);
    await fixture.patchAgent('team-a', 'paused', { spec: { suspend: false } });
    assert.equal((await waiting).message.text, 'second');
  });

  it('a rejected message is reported to followers, dead-lettered, listed and can be retried', async () => {
    const agent = await messages.createReadyAgent('failing');
    const receipt = receiptOf(await messages.sendMessage('failing', 'impossible'));
    const following = messages.follow('failing', receipt);
    const { deliveryToken } = await messages.next(agent);
    const reject = { deliveryToken, action: 'reject', code: 'TEMPER_TOOL_FAILED', message: 'no \u202e way' };
    assertError(
      await messages.postDelivery(agent, { ...reject, code: 'TEMPER_NO_SUCH_CODE' }),
      400,
      'TEMPER_REQUEST_INVALID',
    );
    parsed(await messages.postDelivery(agent, reject), 204);
    const [line] = await following;
    assert.deepEqual([line?.kind, line?.kind === 'failed' && line.code], ['failed', 'TEMPER_TOOL_FAILED']);
    const [letter] = lettersOf(await one.call('GET', LETTERS, { userToken }));
    assert.deepEqual(
      [letter?.agent, letter?.code, letter?.message, letter?.excerpt, letter?.session],
      ['failing', 'TEMPER_TOOL_FAILED', 'no \\u{202e} way', 'impossible', receipt.session],
    );
    parsed(await one.call('POST', `${LETTERS}/${letter?.id}/retry`, { userToken }), 204);
    const again = await messages.next(agent);
    assert.equal(again.message.text, 'impossible');
    assert.deepEqual(lettersOf(await one.call('GET', LETTERS, { userToken })), []);
    parsed(await messages.postDelivery(agent, { ...reject, deliveryToken: again.deliveryToken }), 204);
    const [second] = lettersOf(await one.call('GET', LETTERS, { userToken }));
    parsed(await one.call('DELETE', `${LETTERS}/${second?.id}`, { userToken }), 204);
    assertError(await one.call('DELETE', `${LETTERS}/${second?.id}`, { userToken }), 404, 'TEMPER_NOT_FOUND');
  });

  it('a message past its delivery limit is reported once to followers on both replicas, and again when it is dropped', async () => {
    const agent = await messages.createReadyAgent('hopeless');
    const receipt = receiptOf(await messages.sendMessage('hopeless', 'poison'));
    const following = [messages.follow('hopeless', receipt, one), messages.follow('hopeless', receipt, other)];
    for (let delivery = 1; delivery <= 5; delivery += 1) {
      const [giving, taking] = delivery % 2 === 0 ? [one, other] : [other, one];
      const { deliveryToken } = await messages.next(agent, giving);
      parsed(await messages.postDelivery(agent, { deliveryToken, action: 'retry', delayMs: 0 }, taking), 204);
    }
    // The server detects the exceeded limit when the pod asks for the next message.
    const response = await one.call('POST', NEXT, { token: agent.token, body: { waitSeconds: 1 } });
    assert.equal(response.status, 204);
    for (const lines of await Promise.all(following)) {
      assert.deepEqual(
        lines.map((line) => [line.kind, line.kind === 'failed' && [line.message, line.code]]),
        [['failed', [receipt.id, 'TEMPER_MESSAGE_UNDELIVERED']]],
      );
      assert.match(
        lines[0]?.kind === 'failed' ? lines[0].text : '',
        /delivered the maximum number of times.*kubectl temper deadletters/,
      );
    }
    const letters = lettersOf(await one.call('GET', LETTERS, { userToken }));
    const letter = letters.find(({ agent: name }) => name === 'hopeless');
    parsed(await other.call('DELETE', `${LETTERS}/${letter?.id}`, { userToken }), 204);
    const path = `${AGENTS}/hopeless/sessions/${receipt.session}/events`;
    const { text } = await one.call('GET', path, { userToken });
    const codes = text
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { code?: string }).code]));
    assert.deepEqual(codes, ['TEMPER_MESSAGE_UNDELIVERED', 'TEMPER_MESSAGE_DROPPED']);
  });

  it('a message past its deadline is reported to followers', async () => {
    const agent = await messages.createReadyAgent('tardy');
    const bus = await fixture.nats.connect('gateway');
    const past = new Date(Date.now() - 1_000).toISOString();
    const message = {
      from: 'user',
      to: 'tardy',
      session: 's-late',
      text: 'late',
      depth: 0,
      deadline: past,
      time: past,
    };
    const { id } = await createNatsInbox(bus).publish(agent.uid, { uid: 'users', key: 'late' }, message);
    const following = messages.follow(
      'tardy',
      { id, session: 's-late', duplicate: false, podBound: true, after: 0 },
      other,
    );
    const response = await one.call('POST', NEXT, { token: agent.token, body: { waitSeconds: 1 } });
    assert.equal(response.status, 204);
    const [line, ...more] = await following;
    assert.ok(line?.kind === 'failed' && line.code === 'TEMPER_TIMEOUT' && line.message === id);
    assert.deepEqual(more, []);
  });

  it('reports of a pod are stored under its own agent with the evidence `reported`', async () => {
    const agent = await messages.createReadyAgent('boaster');
    parsed(await messages.sendMessage('boaster', 'hello', 's-claims'));
    await messages.next(agent);
    const stamp = { time: 'yesterday', agent: 'scout', session: 's-claims', rootMessage: 'm' };
    const event = { type: 'tool-call', id: 'c1', tool: 'echo', input: { a: 1 }, ...stamp };
    const audit = { action: 'tool.called', actor: 'user/root', evidence: 'observed', subject: 's', facts: { n: 1 } };
    const send = (key: string, body: object) => one.call('POST', '/v1/reports', { token: agent.token, key, body });
    parsed(await send('a', { events: [event], audit: [audit] }), 204);
    parsed(await send('a', { events: [event], audit: [audit] }), 204);
    const repeated = { token: agent.token, key: 'a', body: { events: [event], audit: [audit] } };
    parsed(await other.call('POST', '/v1/reports', repeated), 204);
    assertError(await send('b', { events: [{ ...event, type: 'reply' }] }), 400, 'TEMPER_REQUEST_INVALID');
    assertError(await send('c', { events: [{ ...event, more: true }] }), 400, 'TEMPER_REQUEST_INVALID');
    const gate = (name: string, passed: boolean) => ({
      type: 'forge-gate',
      tool: 't',
      result: { gate: name, passed, note: '' },
      ...stamp,
    });
    const verdicts = [
      ...['policy', 'judge', 'registration'].map((name) => gate(name, true)),
      { type: 'forge-accepted', tool: 't', digest: 'd', tier: 'Session', ...stamp },
      { type: 'approval-decided', request: 'r', decision: 'Approve', by: 'alice', ...stamp },
    ];
    parsed(await send('e', { events: verdicts }), 204);
    assert.ok(
      fixture.logLines.some((line) => line.includes('only a gateway may publish') && line.includes('"dropped":5')),
    );
    const large = { ...audit, facts: { n: 'x'.repeat(20_000) } };
    parsed(await send('d', { audit: [large] }), 204);
    const { text } = await one.call('GET', `${AGENTS}/boaster/sessions/s-claims/events`, { userToken });
    const [line, ...more] = text
      .trim()
      .split('\n')
      .map((one) => JSON.parse(one) as SessionStreamLine);
    assert.deepEqual(more, []);
    assert.ok(line?.kind === 'event');
    assert.equal(line.event.agent, 'boaster');
    assert.ok(Number.isFinite(Date.parse(line.event.time)));
    const records = await createNatsAudit(await fixture.nats.connect('operator')).all('team-a', 100);
    const kept = records.filter(({ action }) => action === 'tool.called');
    assert.deepEqual(
      kept.map(({ actor, evidence, facts }) => [actor, evidence, facts]),
      [
        ['agent/boaster', 'reported', { n: 1 }],
        ['agent/boaster', 'reported', { omitted: '20008 bytes' }],
      ],
    );
  });

  it('events of a session that the agent does not have are dropped', async () => {
    const agent = await messages.createReadyAgent('inventor');
    parsed(await messages.sendMessage('inventor', 'hello', 's-own'));
    await messages.next(agent);
    const reportEvent = async (key: string, session: string) => {
      const stamp = { time: '2026-11-22T10:00:00Z', agent: 'inventor', session, rootMessage: 'm' };
      const event = { type: 'tool-call', id: 'c1', tool: 'echo', input: {}, ...stamp };
      parsed(await one.call('POST', '/v1/reports', { token: agent.token, key, body: { events: [event] } }), 204);
      return (await one.call('GET', `${AGENTS}/inventor/sessions/${session}/events`, { userToken })).text;
    };
    assert.notEqual(await reportEvent('own', 's-own'), '');
    assert.equal(await reportEvent('invented', 's-invented'), '');
    assert.ok(fixture.logLines.some((line) => line.includes('of sessions that the agent does not have')));
  });

  it('only the ends of messages of users are tasks, users rate them, and reports of the pod change nothing', async () => {
    const agent = await messages.createReadyAgent('worker');
    const trustOf = async () => parsed(await other.call('GET', `${AGENTS}/worker/trust`, { userToken })) as TrustReport;
    const rate = (body: object, gateway = one) =>
      gateway.call('POST', `${AGENTS}/worker/ratings`, { userToken, body: { rating: 8, ...body } });
    const answer = async (end: object) => {
      const { deliveryToken } = await messages.next(agent);
      parsed(await messages.postDelivery(agent, { deliveryToken, ...end }), 204);
    };
    const ack = { action: 'ack', reply: 'done', finishReason: 'complete' };
    const first = receiptOf(await messages.sendMessage('worker', 'one', 's-rated'));
    assert.equal((await rate({ message: first.id })).status, 404, 'a message that has not ended');
    const toolCalls = [{ digest: sha256('a tool'), calls: 2, failures: 1 }];
    await answer({ ...ack, toolCalls });
    const second = receiptOf(await messages.sendMessage('worker', 'two', 's-rated'));
    await answer({ action: 'reject', code: 'TEMPER_TURN_LIMIT', message: 'too long', toolCalls });
    const bus = await fixture.nats.connect('gateway');
    const { calls } = await readToolRecords(bus, agent.uid);
    const reported = calls.map(({ message, tools }) => [message, tools]);
    assert.deepEqual(
      reported,
      [first, second].map(({ id }) => [id, toolCalls]),
    );
    const third = receiptOf(await messages.sendMessage('worker', 'three', 's-rated'));
    const { deliveryToken } = await messages.next(agent);
    const report = { token: agent.token, key: 'calls', body: { deliveryToken, toolCalls } };
    parsed(await one.call('POST', '/v1/reports', report), 204);
    const ofThird = (await readToolRecords(bus, agent.uid)).calls.at(-1);
    assert.deepEqual([ofThird?.message, ofThird?.tools], [third.id, toolCalls], 'its pod may end without an outcome');
    parsed(await messages.postDelivery(agent, { deliveryToken, action: 'retry', delayMs: 0 }), 204);
    await answer({ action: 'reject', code: 'TEMPER_QUOTA_EXCEEDED', message: 'no quota' });
    await messages.createReadyAgent('asker', { grants: { tools: ['agent_send'], messages: ['worker'] } });
    const sender = { uid: 'asker', key: 'between-agents' };
    const message = { to: 'worker', from: 'asker', session: 'asker.s', text: 'four', depth: 1, root: 'msg-x' };
    const times = { time: new Date().toISOString(), deadline: new Date(Date.now() + 60_000).toISOString() };
    await createNatsInbox(await fixture.nats.connect('gateway')).publish(agent.uid, sender, { ...message, ...times });
    await answer(ack);
    const claims = { uses: [], events: [], audit: [] };
    await one.call('POST', '/v1/reports', { token: agent.token, key: 'claims', body: claims });
    assert.deepEqual((await trustOf()).tasks, { ...(await trustOf()).tasks, ended: 2, completed: 1, rated: 0 });
    assert.deepEqual(parsed(await rate({ message: first.id })), {
      message: first.id,
      session: 's-rated',
      outcome: 'completed',
      rating: 8,
    });
    parsed(await rate({ message: first.id, rating: 3, category: 'web' }, other));
    const { tasks, level } = await trustOf();
    assert.deepEqual([tasks.rated, tasks.quality, level], [1, 3, 'sandboxed']);
    assert.deepEqual(tasks.categories, [{ category: 'web', ended: 1, completed: 1, rated: 1 }]);
    const wrong = [
      { rating: 11, session: 's-rated' },
      { rating: 1.5, session: 's-rated' },
      {},
      { category: 'magic', session: 's' },
    ];
    for (const body of wrong) assert.equal((await rate(body)).status, 400, JSON.stringify(body));
    const refused = await one.call('POST', `${AGENTS}/worker/ratings`, { token: agent.token, body: { rating: 10 } });
    assert.equal(refused.status, 401, 'a pod cannot rate');
  });

  for (const suite of MESSAGE_SUITES) suite(() => messages);

  it('a user sees queued messages, messages in flight and spend of their namespace', async () => {
    const agent = await messages.createReadyAgent('watched');
    for (const text of ['one', 'two', 'three']) parsed(await messages.sendMessage('watched', text));
    await messages.next(agent);
    const all = parsed(await one.call('GET', '/v1/users/namespaces/team-a/top', { userToken })) as TopAgent[];
    assert.deepEqual(
      all.find(({ agent: name }) => name === 'watched'),
      { agent: 'watched', waiting: 2, inFlight: 1, deadLetters: 0, tokensThisHour: 42 },
    );
    for (const path of ['sessions', 'tools', 'tools?session=s-1']) {
      assert.deepEqual(parsed(await other.call('GET', `${AGENTS}/watched/${path}`, { userToken })), []);
    }
    const usage = parsed(await one.call('GET', `${AGENTS}/watched/usage`, { userToken })) as UsageReport;
    assert.equal(usage.windows[0]?.costMicros, 7);
    const policies = '/v1/users/namespaces/team-a/policies';
    parsed(await one.call('GET', `${policies}/standard/usage`, { userToken }));
    assertError(await one.call('GET', `${policies}/none/usage`, { userToken }), 404, 'TEMPER_NOT_FOUND');
    assertError(await one.call('GET', `${AGENTS}/none/usage`, { userToken }), 404, 'TEMPER_NOT_FOUND');
  });

  it('a reply above the size limit is truncated, and its message is not redelivered', async () => {
    const agent = await messages.createReadyAgent('talker');
    const receipt = receiptOf(await messages.sendMessage('talker', 'tell me all'));
    const { deliveryToken } = await messages.next(agent);
    const reply = '\u{1f600}'.repeat(50_000);
    parsed(await messages.postDelivery(agent, { deliveryToken, action: 'ack', reply, finishReason: 'complete' }), 204);
    const [line] = await messages.follow('talker', receipt);
    assert.ok(line?.kind === 'reply' && line.finishReason === 'truncated' && line.text.length > 10_000);
  });
});
