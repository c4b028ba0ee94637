import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { DeadLetter, FollowLine, PersonReceipt, TopAgent, UsageReport } from '../../src/remote/people.ts';
import type { WireDelivery, WireError } from '../../src/remote/wire.ts';
import { createAudit } from '../../src/nats/audit.ts';
import { createInbox } from '../../src/nats/inbox.ts';
import { eventually, GatewayHouse, type HttpAnswer, type Replica } from './gateway-house.ts';

const NEXT = '/v1/messages/next';
const LEASES = '/v1/leases';
const AGENTS = '/v1/people/namespaces/team-a/agents';
/** Of agents that may call the tool that sends. */
const SPEAKING = { trustPolicyRef: { name: 'speaking' } };
const LETTERS = '/v1/people/namespaces/team-a/deadletters';

function done({ text, status }: HttpAnswer, expected = 200): unknown {
  assert.equal(status, expected, text);
  return text === '' ? undefined : JSON.parse(text);
}

const receiptOf = (answer: HttpAnswer) => done(answer) as PersonReceipt;
const deliveryOf = (answer: HttpAnswer) => done(answer) as WireDelivery;
const sentOf = (answer: HttpAnswer) => done(answer) as { id: string; duplicate: boolean };
const lettersOf = (answer: HttpAnswer) => done(answer) as DeadLetter[];

function refused({ text, status }: HttpAnswer, expected: number, code: string): void {
  const { error } = JSON.parse(text) as WireError;
  assert.deepEqual([status, error.code], [expected, code], text);
}

describe('messages through two gateways over one bus', () => {
  let house: GatewayHouse;
  let one: Replica;
  let other: Replica;
  let person: string;
  let keys = 0;

  before(async () => {
    house = await GatewayHouse.open(['team-a']);
    person = await house.personToken('team-a');
    await house.policy('team-a', 'speaking', { tools: { allow: ['agent_send'] } });
    [one, other] = await Promise.all([house.replica(), house.replica()]);
  });
  after(async () => {
    await house?.[Symbol.asyncDispose]();
  });

  type Running = Awaited<ReturnType<GatewayHouse['runningAgent']>>;

  /** Waits until both replicas know the agent. */
  async function running(name: string, spec: object = {}): Promise<Running> {
    const found = await house.runningAgent('team-a', name, spec);
    for (const gateway of [one, other]) {
      await eventually(
        async () => (await gateway.call('GET', '/v1/assignment', { token: found.token })).status === 200,
      );
    }
    return found;
  }

  function say(agent: string, text: string, session?: string, gateway = one): Promise<HttpAnswer> {
    keys += 1;
    const body = { text, ...(session === undefined ? {} : { session }) };
    return gateway.call('POST', `${AGENTS}/${agent}/messages`, { person, key: `key-${keys}`, body });
  }

  async function next({ token }: Running, gateway = one, waitSeconds = 20): Promise<WireDelivery> {
    return deliveryOf(await gateway.call('POST', NEXT, { token, body: { waitSeconds } }));
  }

  const settle = ({ token }: Running, answer: object, gateway = one) =>
    gateway.call('POST', LEASES, { token, body: answer });

  async function follow(agent: string, receipt: PersonReceipt, gateway = one): Promise<FollowLine[]> {
    const path = `${AGENTS}/${agent}/sessions/${receipt.session}/events?follow=true&message=${receipt.id}`;
    const { text } = await gateway.call('GET', path, { person });
    return text.split('\n').flatMap((line) => (line === '' ? [] : (JSON.parse(line) as FollowLine)));
  }

  it('what one gave, the other settles; the person hears it once, whoever repeats it', async () => {
    const scout = await running('scout');
    const receipt = receiptOf(await say('scout', 'hello'));
    assert.equal(receipt.awake, true);
    const following = follow('scout', receipt, other);
    const { message, lease, leaseMilliseconds } = await next(scout, one);
    assert.deepEqual(
      [message.id, message.root, message.text, message.from, message.depth],
      [receipt.id, receipt.id, 'hello', 'person', 0],
    );
    assert.ok(leaseMilliseconds > 0);
    assert.equal((await settle(scout, { lease, action: 'extend' }, other)).status, 204);
    const ack = { lease, action: 'ack', reply: 'hi there', ending: 'complete' };
    done(await settle(scout, ack, other), 204);
    done(await settle(scout, ack, one), 204);
    const lines = await following;
    assert.deepEqual(
      lines.map((line) => ('text' in line ? line.text : line.kind)),
      ['hi there'],
    );
    const empty = await one.call('POST', NEXT, { token: scout.token, body: { waitSeconds: 0 } });
    assert.equal(empty.status, 204);
  });

  it('the same key is the same message, in the same session', async () => {
    await running('twice');
    const send = (key: string) =>
      one.call('POST', `${AGENTS}/twice/messages`, { person, key, body: { text: 'again' } });
    const [first, second] = [receiptOf(await send('k')), receiptOf(await send('k'))];
    assert.deepEqual(
      [second.id, second.session, first.duplicate, second.duplicate],
      [first.id, first.session, false, true],
    );
  });

  it('a long poll is answered when a message comes, and one message is in flight at a time', async () => {
    const agent = await running('poller');
    const waiting = next(agent, one, 60);
    const first = receiptOf(await say('poller', 'first', undefined, other));
    done(await say('poller', 'second'));
    const { message, lease } = await waiting;
    assert.equal(message.id, first.id);
    const nothing = await other.call('POST', NEXT, { token: agent.token, body: { waitSeconds: 0.5 } });
    assert.equal(nothing.status, 204);
    done(await settle(agent, { lease, action: 'ack', reply: '', ending: 'complete' }), 204);
    assert.equal((await next(agent)).message.text, 'second');
  });

  it('a pod that was started again gets at once what it held before, and nobody else does', async () => {
    const [agent, thief] = [await running('phoenix'), await running('crow')];
    const { id } = receiptOf(await say('phoenix', 'half done'));
    const first = await next(agent);
    const ask = (by: Running, server: Replica) =>
      server.call('POST', NEXT, { token: by.token, body: { waitSeconds: 1, restarted: true } });
    assert.equal((await ask(thief, other)).status, 204);
    assert.equal((await settle(agent, { lease: first.lease, action: 'extend' })).status, 204, 'it is still its own');
    const again = deliveryOf(await ask(agent, other));
    assert.equal(again.message.id, id);
    const end = { action: 'ack', reply: 'done', ending: 'complete' };
    done(await settle(agent, { lease: again.lease, ...end }), 204);
    const nothing = await ask(agent, one);
    assert.equal(nothing.status, 204, 'what has ended does not come again');
  });

  it('a lease of another pod, or altered, or of a pod that was replaced, settles nothing', async () => {
    const [victim, thief] = [await running('victim'), await running('robber')];
    const receipt = receiptOf(await say('victim', 'mine'));
    const { lease } = await next(victim);
    const ack = (given: string) => ({ lease: given, action: 'ack', reply: 'stolen', ending: 'complete' });
    refused(await settle(thief, ack(lease)), 403, 'TEMPER_LEASE_INVALID');
    refused(
      await settle(victim, ack(`${lease.slice(0, -1)}${lease.endsWith('A') ? 'B' : 'A'}`)),
      403,
      'TEMPER_LEASE_INVALID',
    );
    refused(await settle(victim, { ...ack(lease), extra: 1 }), 400, 'TEMPER_REQUEST_INVALID');
    const successor = await house.pod('team-a', 'victim-2');
    await house.bind('team-a', 'victim', successor);
    // Until the gateway hears of it, the pod is the agent, and might end what it holds.
    await eventually(async () => (await settle(victim, { lease, action: 'extend' })).status === 403);
    refused(await settle(victim, ack(lease)), 403, 'TEMPER_POD_NOT_BOUND');
    const token = await house.podToken('team-a', successor);
    await eventually(async () => (await one.call('GET', '/v1/assignment', { token })).status === 200);
    refused(await one.call('POST', LEASES, { token, body: ack(lease) }), 403, 'TEMPER_LEASE_INVALID');
    const path = `${AGENTS}/victim/sessions/${receipt.session}/events`;
    assert.equal((await one.call('GET', path, { person })).text, '');
  });

  it('an agent sends under its lease: root, depth and deadline are those of the lease', async () => {
    const chain = ['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6'];
    const grants = { ...SPEAKING, grants: { tools: ['agent_send'], messages: ['c*'] } };
    const agents = await Promise.all(chain.map((name) => running(name, grants)));
    const { id: root } = receiptOf(await say('c0', 'start'));
    let deadline: string | undefined;
    for (const [depth, agent] of agents.entries()) {
      const to = chain[depth + 1];
      if (to === undefined) break;
      const { message, lease } = await next(agent);
      deadline ??= message.deadline;
      assert.deepEqual([message.root, message.depth, message.deadline], [root, depth, deadline]);
      assert.equal(message.session, depth === 0 ? message.session : `c${depth - 1}.work`);
      const draft = { to, session: 'work', text: 'go on' };
      const send = (key: string, body: object) => other.call('POST', '/v1/messages', { token: agent.token, key, body });
      refused(await send('k', { lease, draft: { ...draft, depth: 0 } }), 400, 'TEMPER_REQUEST_INVALID');
      if (depth === 5) {
        refused(await send('k', { lease, draft }), 422, 'TEMPER_MESSAGE_DEPTH');
        break;
      }
      const sent = sentOf(await send('k', { lease, draft }));
      const again = sentOf(await send('k', { lease, draft }));
      assert.deepEqual([again.id, again.duplicate], [sent.id, true]);
    }
  });

  it('an agent reaches only whom its grants name, in its own namespace, and nobody without a lease', async () => {
    const may = { tools: ['agent_send'], messages: ['friend', 'nobody'] };
    const agent = await running('lonely', { ...SPEAKING, grants: may });
    done(await say('lonely', 'work'));
    const { lease } = await next(agent);
    const send = (to: string, given = lease) =>
      one.call('POST', '/v1/messages', {
        token: agent.token,
        key: `k-${to}`,
        body: { lease: given, draft: { to, session: 's', text: 'x' } },
      });
    refused(await send('scout'), 403, 'TEMPER_POLICY_DENIED');
    refused(await send('nobody'), 404, 'TEMPER_NOT_FOUND');
    refused(await send('friend', 'l1.e30.AAAA'), 403, 'TEMPER_LEASE_INVALID');
  });

  it('an agent that may not call the tool that sends does not send without it either', async () => {
    const agent = await running('toolless', { ...SPEAKING, grants: { messages: ['scout'] } });
    done(await say('toolless', 'work'));
    const { lease } = await next(agent);
    const body = { lease, draft: { to: 'scout', session: 's', text: 'x' } };
    const answer = await one.call('POST', '/v1/messages', { token: agent.token, key: 'k', body });
    refused(answer, 403, 'TEMPER_POLICY_DENIED');
    assert.match(answer.text, /agent_send/);
  });

  it('a message for an agent asleep waits, and asks for a pod', async () => {
    const uid = await house.agent('team-a', 'sleeper');
    await eventually(async () => (await say('sleeper', 'wake up')).status === 200);
    assert.equal(receiptOf(await say('sleeper', 'hurry')).awake, false);
    const operator = await house.bus.connect('operator');
    const { createWakes } = await import('../../src/nats/wakes.ts');
    const stopping = new AbortController();
    const woken: string[] = [];
    const consuming = createWakes(operator).consume(async (agentUid) => {
      woken.push(agentUid);
    }, stopping.signal);
    await eventually(async () => woken.includes(uid));
    stopping.abort();
    await consuming;
    const pod = await house.pod('team-a', 'sleeper-1');
    await house.bind('team-a', 'sleeper', pod);
    const token = await house.podToken('team-a', pod);
    await eventually(async () => (await one.call('GET', '/v1/assignment', { token })).status === 200);
    assert.equal((await next({ uid, pod, token })).message.text, 'wake up');
  });

  it('a suspended agent gets nothing and may not go on; resumed it gets what waited', async () => {
    const agent = await running('paused');
    done(await say('paused', 'first'));
    const { lease } = await next(agent);
    await house.changeAgent('team-a', 'paused', { spec: { suspend: true } });
    await eventually(async () => (await settle(agent, { lease, action: 'extend' })).status === 409);
    done(await settle(agent, { lease, action: 'ack', reply: 'done', ending: 'complete' }), 204);
    done(await say('paused', 'second'));
    const waiting = next(agent, one, 60);
    await house.changeAgent('team-a', 'paused', { spec: { suspend: false } });
    assert.equal((await waiting).message.text, 'second');
  });

  it('a rejected message is told to who follows, kept, shown, and sent again', async () => {
    const agent = await running('failing');
    const receipt = receiptOf(await say('failing', 'impossible'));
    const following = follow('failing', receipt);
    const { lease } = await next(agent);
    const reject = { lease, action: 'reject', code: 'TEMPER_TOOL_FAILED', message: 'no \u202e way' };
    refused(await settle(agent, { ...reject, code: 'TEMPER_NO_SUCH_CODE' }), 400, 'TEMPER_REQUEST_INVALID');
    done(await settle(agent, reject), 204);
    const [line] = await following;
    assert.deepEqual([line?.kind, line?.kind === 'failed' && line.code], ['failed', 'TEMPER_TOOL_FAILED']);
    const [letter] = lettersOf(await one.call('GET', LETTERS, { person }));
    assert.deepEqual(
      [letter?.agent, letter?.code, letter?.message, letter?.excerpt, letter?.session],
      ['failing', 'TEMPER_TOOL_FAILED', 'no \\u{202e} way', 'impossible', receipt.session],
    );
    done(await one.call('POST', `${LETTERS}/${letter?.id}/retry`, { person }), 204);
    const again = await next(agent);
    assert.equal(again.message.text, 'impossible');
    assert.deepEqual(lettersOf(await one.call('GET', LETTERS, { person })), []);
    done(await settle(agent, { ...reject, lease: again.lease }), 204);
    const [second] = lettersOf(await one.call('GET', LETTERS, { person }));
    done(await one.call('DELETE', `${LETTERS}/${second?.id}`, { person }), 204);
    refused(await one.call('DELETE', `${LETTERS}/${second?.id}`, { person }), 404, 'TEMPER_NOT_FOUND');
  });

  it('a message delivered too often is told to who follows, once over two gateways, and again when it is dropped', async () => {
    const agent = await running('hopeless');
    const receipt = receiptOf(await say('hopeless', 'poison'));
    const following = [follow('hopeless', receipt, one), follow('hopeless', receipt, other)];
    for (let delivery = 1; delivery <= 5; delivery += 1) {
      const [giving, taking] = delivery % 2 === 0 ? [one, other] : [other, one];
      const { lease } = await next(agent, giving);
      done(await settle(agent, { lease, action: 'retry', afterMilliseconds: 0 }, taking), 204);
    }
    // The server gives it up when the pod asks for the next one.
    const asked = await one.call('POST', NEXT, { token: agent.token, body: { waitSeconds: 1 } });
    assert.equal(asked.status, 204);
    for (const lines of await Promise.all(following)) {
      assert.deepEqual(
        lines.map((line) => [line.kind, line.kind === 'failed' && [line.message, line.code]]),
        [['failed', [receipt.id, 'TEMPER_MESSAGE_UNDELIVERED']]],
      );
      assert.match(lines[0]?.kind === 'failed' ? lines[0].text : '', /delivered as often.*kubectl temper deadletters/);
    }
    const letters = lettersOf(await one.call('GET', LETTERS, { person }));
    const letter = letters.find(({ agent: name }) => name === 'hopeless');
    done(await other.call('DELETE', `${LETTERS}/${letter?.id}`, { person }), 204);
    const path = `${AGENTS}/hopeless/sessions/${receipt.session}/events`;
    const { text } = await one.call('GET', path, { person });
    const codes = text
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { code?: string }).code]));
    assert.deepEqual(codes, ['TEMPER_MESSAGE_UNDELIVERED', 'TEMPER_MESSAGE_DROPPED']);
  });

  it('a message whose deadline is over is told to who follows', async () => {
    const agent = await running('tardy');
    const bus = await house.bus.connect('gateway');
    const past = new Date(Date.now() - 1_000).toISOString();
    const message = {
      from: 'person',
      to: 'tardy',
      session: 's-late',
      text: 'late',
      depth: 0,
      deadline: past,
      time: past,
    };
    const { id } = await createInbox(bus).publish(agent.uid, { uid: 'people', key: 'late' }, message);
    const following = follow('tardy', { id, session: 's-late', duplicate: false, awake: true, after: 0 }, other);
    const asked = await one.call('POST', NEXT, { token: agent.token, body: { waitSeconds: 1 } });
    assert.equal(asked.status, 204);
    const [line, ...more] = await following;
    assert.ok(line?.kind === 'failed' && line.code === 'TEMPER_TIMEOUT' && line.message === id);
    assert.deepEqual(more, []);
  });

  it('what a pod claims is kept under the agent it is, as claimed', async () => {
    const agent = await running('boaster');
    const stamp = { time: 'yesterday', agent: 'scout', session: 's-claims', rootMessage: 'm' };
    const event = { type: 'tool-call', id: 'c1', tool: 'echo', input: { a: 1 }, ...stamp };
    const audit = { action: 'tool.called', actor: 'person/root', evidence: 'observed', subject: 's', facts: { n: 1 } };
    const send = (key: string, body: object) => one.call('POST', '/v1/claims', { token: agent.token, key, body });
    done(await send('a', { events: [event], audit: [audit] }), 204);
    done(await send('a', { events: [event], audit: [audit] }), 204);
    const repeated = { token: agent.token, key: 'a', body: { events: [event], audit: [audit] } };
    done(await other.call('POST', '/v1/claims', repeated), 204);
    refused(await send('b', { events: [{ ...event, type: 'reply' }] }), 400, 'TEMPER_REQUEST_INVALID');
    refused(await send('c', { events: [{ ...event, more: true }] }), 400, 'TEMPER_REQUEST_INVALID');
    const gate = (name: string, passed: boolean) => ({
      type: 'forge-gate',
      tool: 't',
      result: { gate: name, passed, note: '' },
      ...stamp,
    });
    const verdicts = [
      ...['policy', 'judge', 'register'].map((name) => gate(name, true)),
      { type: 'forge-accepted', tool: 't', digest: 'd', tier: 'Session', ...stamp },
      { type: 'approval-decided', request: 'r', decision: 'Approve', by: 'alice', ...stamp },
    ];
    done(await send('e', { events: verdicts }), 204);
    assert.ok(house.lines.some((line) => line.includes('only a gateway decides') && line.includes('"left":5')));
    const large = { ...audit, facts: { n: 'x'.repeat(20_000) } };
    done(await send('d', { audit: [large] }), 204);
    const { text } = await one.call('GET', `${AGENTS}/boaster/sessions/s-claims/events`, { person });
    const [line, ...more] = text
      .trim()
      .split('\n')
      .map((one) => JSON.parse(one) as FollowLine);
    assert.deepEqual(more, []);
    assert.ok(line?.kind === 'event');
    assert.equal(line.event.agent, 'boaster');
    assert.ok(Number.isFinite(Date.parse(line.event.time)));
    const records = await createAudit(await house.bus.connect('operator')).read('team-a', 0, 100);
    const kept = records.filter(({ action }) => action === 'tool.called');
    assert.deepEqual(
      kept.map(({ actor, evidence, facts }) => [actor, evidence, facts]),
      [
        ['agent/boaster', 'claimed', { n: 1 }],
        ['agent/boaster', 'claimed', { omitted: '20008 bytes' }],
      ],
    );
  });

  it('people see what waits, what is worked on and what was spent, of their own namespace', async () => {
    const agent = await running('watched');
    for (const text of ['one', 'two', 'three']) done(await say('watched', text));
    await next(agent);
    const all = done(await one.call('GET', '/v1/people/namespaces/team-a/top', { person })) as TopAgent[];
    assert.deepEqual(
      all.find(({ agent: name }) => name === 'watched'),
      { agent: 'watched', waiting: 2, inFlight: 1, deadLetters: 0, tokensThisHour: 42 },
    );
    for (const path of ['sessions', 'tools', 'tools?session=s-1']) {
      assert.deepEqual(done(await other.call('GET', `${AGENTS}/watched/${path}`, { person })), []);
    }
    const usage = done(await one.call('GET', `${AGENTS}/watched/usage`, { person })) as UsageReport;
    assert.equal(usage.windows[0]?.costMicros, 7);
    const policies = '/v1/people/namespaces/team-a/policies';
    done(await one.call('GET', `${policies}/standard/usage`, { person }));
    refused(await one.call('GET', `${policies}/none/usage`, { person }), 404, 'TEMPER_NOT_FOUND');
    refused(await one.call('GET', `${AGENTS}/none/usage`, { person }), 404, 'TEMPER_NOT_FOUND');
  });

  it('a reply longer than the bus takes arrives cut, and its message does not come again', async () => {
    const agent = await running('talker');
    const receipt = receiptOf(await say('talker', 'tell me all'));
    const { lease } = await next(agent);
    const reply = '\u{1f600}'.repeat(50_000);
    done(await settle(agent, { lease, action: 'ack', reply, ending: 'complete' }), 204);
    const [line] = await follow('talker', receipt);
    assert.ok(line?.kind === 'reply' && line.ending === 'cut' && line.text.length > 10_000);
  });
});
