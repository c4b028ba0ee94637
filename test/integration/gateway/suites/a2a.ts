import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type Message, type SendMessageRequest, type StreamResponse, type Task, TaskState } from '@a2a-js/sdk';
import type { CallApproval, PodDelivery } from '../../../../src/gateway-api/pod-api.ts';
import { asTask, messageRequest } from '../../../support/a2a.ts';
import { a2aClient, a2aPath, rpc } from '../../../support/gateway/a2a-client.ts';
import type { HttpResponse } from '../../../support/gateway/gateway-fixture.ts';
import { assertError, type MessageClient, parsed, type RunningAgent } from '../../../support/gateway/message-client.ts';
import { poll, pollValue } from '../../../support/poll.ts';

const AUDIENCE = { audiences: ['temper-a2a'] };
const SERVED = {
  description: 'Answers questions.',
  a2a: { enabled: true, callers: [{ serviceAccount: 'planner' }, { serviceAccount: 'other', namespace: 'team-b' }] },
};
const ASKING = { rules: { requireApproval: ['code:read'] }, tools: { allow: ['*'] } };
const MAX_OPEN_TASKS = 32;

type Rpc = { result?: unknown; error?: { code: number; message: string } };

let messageIds = 0;
function newRequest(text: string, change: Partial<Message> = {}): SendMessageRequest {
  messageIds += 1;
  return messageRequest(text, { messageId: `m-${messageIds}`, ...change });
}

const answerOf = ({ artifacts }: Task): unknown => artifacts[0]?.parts[0]?.content?.value;
const stateOf = ({ status }: Task): TaskState | undefined => status?.state;
const errorOf = (response: HttpResponse) => (parsed(response) as Rpc).error;

/** Agents that the gateway serves over A2A, with the client of the SDK. */
export function a2aTests(open: () => Promise<MessageClient>): void {
  const tokenOf = async ({ fixture }: MessageClient, namespace = 'team-a', account = 'planner'): Promise<string> => {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    const object = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account } };
    await fixture.plane.admin.call('POST', path, { body: object });
    return fixture.createToken(namespace, account, AUDIENCE);
  };

  /** The pod of the agent answers its next message. */
  const answerNext = async (
    messages: MessageClient,
    agent: RunningAgent,
    change: object = {},
  ): Promise<PodDelivery> => {
    const delivery = await messages.next(agent);
    const { deliveryToken, message } = delivery;
    const ack = { deliveryToken, action: 'ack', reply: `Answer to ${message.text}`, finishReason: 'complete' };
    parsed(await messages.postDelivery(agent, { ...ack, ...change }), 204);
    return delivery;
  };

  it('a client of the SDK reads the card, asks, and reads the task at the other replica', async () => {
    const messages = await open();
    const agent = await messages.createReadyAgent('served', SERVED);
    const token = await tokenOf(messages);
    const client = await a2aClient(messages.one, { agent: 'served', token });
    const card = await client.getAgentCard();
    assert.deepEqual([card.name, card.description, card.skills[0]?.id], ['served', 'Answers questions.', 'served']);
    const asking = client.sendMessage(newRequest('How many?', { contextId: 'talk-1' }));
    const { message } = await answerNext(messages, agent);
    assert.deepEqual(
      [message.text, message.source, message.from, message.depth],
      ['How many?', 'Peer', 'team-a/planner', 0],
    );
    assert.match(message.session, /^a2a_[0-9a-f]{32}\.talk-1$/);
    const task = asTask(await asking);
    assert.deepEqual(
      [task.contextId, stateOf(task), answerOf(task)],
      ['talk-1', TaskState.TASK_STATE_COMPLETED, 'Answer to How many?'],
    );
    const elsewhere = await a2aClient(messages.other, { agent: 'served', token });
    const found = await elsewhere.getTask({ tenant: '', id: task.id });
    assert.deepEqual([stateOf(found), answerOf(found)], [TaskState.TASK_STATE_COMPLETED, 'Answer to How many?']);
    assert.equal(found.history[0]?.parts[0]?.content?.value, 'How many?');
    assert.deepEqual((await elsewhere.getTask({ tenant: '', id: task.id, historyLength: 0 })).history, []);
  });

  it('a stream has the task, its states as they change, and the answer before the last state', async () => {
    const messages = await open();
    const agent = await messages.createReadyAgent('streaming', SERVED);
    const client = await a2aClient(messages.one, { agent: 'streaming', token: await tokenOf(messages) });
    const events: StreamResponse[] = [];
    const reading = (async () => {
      for await (const event of client.sendMessageStream(newRequest('Go on.'))) events.push(event);
    })();
    const { deliveryToken, message } = await messages.next(agent);
    const turn = { type: 'turn-start', turn: 1, time: new Date().toISOString(), agent: 'streaming' };
    const event = { ...turn, session: message.session, rootMessage: message.id };
    // A first delivery opens its session; until then a report of it is refused.
    await poll('the report of the turn', async () => {
      const body = { deliveryToken, events: [event], audit: [], uses: [] };
      const { status } = await messages.one.call('POST', '/v1/reports', { token: agent.token, key: 'turn', body });
      return status === 204;
    });
    await poll('the state working', () => events.length >= 2);
    const ack = { deliveryToken, action: 'ack', reply: 'Done.', finishReason: 'complete' };
    parsed(await messages.postDelivery(agent, ack), 204);
    await reading;
    assert.deepEqual(
      events.map(({ payload }) => payload?.$case),
      ['task', 'statusUpdate', 'artifactUpdate', 'statusUpdate'],
    );
    const states = events.flatMap(({ payload }) =>
      payload?.$case === 'statusUpdate' ? [payload.value.status?.state] : [],
    );
    assert.deepEqual(states, [TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED]);
  });

  it('clients of version 0.3 get its card, its methods and its forms; other versions are refused by name', async () => {
    const messages = await open();
    const agent = await messages.createReadyAgent('older', SERVED);
    const of = { agent: 'older', token: await tokenOf(messages) };
    const path = `${a2aPath('team-a', 'older')}/.well-known/agent-card.json`;
    const card = parsed(await messages.one.call('GET', path, { token: of.token })) as Record<string, unknown>;
    assert.deepEqual([card['protocolVersion'], card['preferredTransport']], ['0.3', 'JSONRPC']);
    assert.equal(card['url'], `https://temper-gateway:8443${a2aPath('team-a', 'older')}`);
    const message = { kind: 'message', messageId: 'old-1', role: 'user', parts: [{ kind: 'text', text: 'hello' }] };
    const sent = parsed(
      await rpc(messages.one, of, 'message/send', { message, configuration: { blocking: false } }),
    ) as Rpc;
    const { id, kind } = sent.result as { id: string; kind: string };
    assert.equal(kind, 'task');
    await answerNext(messages, agent);
    const read = parsed(await rpc(messages.one, of, 'tasks/get', { id })) as Rpc;
    assert.equal((read.result as { status: { state: string } }).status.state, 'completed');
    const refused = errorOf(await rpc(messages.one, { ...of, version: '2.0' }, 'GetTask', { id }));
    assert.equal(refused?.code, -32009);
    assert.match(refused?.message ?? '', /2\.0.*use 1\.0 or 0\.3/);
  });

  it('a message that is sent again by its id is one task, and another message with this id is refused', async () => {
    const messages = await open();
    const agent = await messages.createReadyAgent('repeated', SERVED);
    const token = await tokenOf(messages);
    const [client, other] = await Promise.all(
      [messages.one, messages.other].map((gateway) => a2aClient(gateway, { agent: 'repeated', token })),
    );
    assert.ok(client !== undefined && other !== undefined);
    const first = newRequest('once');
    const request = { ...first, configuration: IMMEDIATELY };
    const [one, two] = await Promise.all([client.sendMessage(request), other.sendMessage(request)]);
    assert.equal(asTask(one).id, asTask(two).id);
    await answerNext(messages, agent);
    assert.equal(asTask(await other.sendMessage(first)).id, asTask(one).id, 'also after its end');
    assert.equal(
      (await messages.one.call('POST', '/v1/messages/next', { token: agent.token, body: { waitSeconds: 0 } })).status,
      204,
    );
    const changed = newRequest('twice', { messageId: first.message?.messageId ?? '' });
    await assert.rejects(client.sendMessage(changed), /used for another message/);
  });

  it('a caller reaches only the agents that list it, and only its own contexts and tasks', async () => {
    const messages = await open();
    const agent = await messages.createReadyAgent('private', SERVED);
    await messages.createReadyAgent('closed-to-all', { a2a: { ...SERVED.a2a, enabled: false } });
    const [planner, other, unlisted] = await Promise.all([
      tokenOf(messages),
      tokenOf(messages, 'team-b', 'other'),
      tokenOf(messages, 'team-b', 'planner'),
    ]);
    const [own, foreign] = await Promise.all(
      [planner, other].map((token) => a2aClient(messages.one, { agent: 'private', token })),
    );
    assert.ok(own !== undefined && foreign !== undefined);
    const request = { ...newRequest('mine', { contextId: 'shared' }), configuration: IMMEDIATELY };
    const task = asTask(await own.sendMessage(request));
    const theirs = asTask(await foreign.sendMessage(request));
    assert.notEqual(theirs.id, task.id, 'the same ids of two callers are two tasks');
    const sessions = [await answerNext(messages, agent), await answerNext(messages, agent)].map(
      ({ message }) => message.session,
    );
    assert.notEqual(sessions[0], sessions[1]);
    await assert.rejects(foreign.getTask({ tenant: '', id: task.id }), /has no task/);
    await assert.rejects(foreign.cancelTask({ tenant: '', id: task.id, metadata: undefined }), /has no task/);
    const asked = (name: string, token: string) =>
      rpc(messages.one, { agent: name, token }, 'tasks/get', { id: task.id });
    assertError(await asked('private', unlisted), 404, 'TEMPER_NOT_FOUND');
    assertError(await asked('closed-to-all', planner), 404, 'TEMPER_NOT_FOUND');
    assertError(await asked('none', planner), 404, 'TEMPER_NOT_FOUND');
  });

  it('tokens for A2A and tokens for users or pods are not exchangeable', async () => {
    const messages = await open();
    const agent = await messages.createReadyAgent('tokens', SERVED);
    const { fixture, one, userToken } = messages;
    const peer = await tokenOf(messages);
    const asked = (token: string) => rpc(one, { agent: 'tokens', token }, 'tasks/get', { id: 'x' });
    assertError(await asked(agent.token), 401, 'TEMPER_TOKEN_INVALID');
    assertError(await asked(userToken), 401, 'TEMPER_TOKEN_INVALID');
    for (const account of ['temper-agent', 'temper-users'])
      assertError(await asked(await fixture.createToken('team-a', account, AUDIENCE)), 401, 'TEMPER_TOKEN_INVALID');
    const users = '/v1/users/namespaces/team-a/top';
    assertError(await one.call('GET', users, { userToken: peer }), 401, 'TEMPER_TOKEN_INVALID');
    assertError(await one.call('GET', '/v1/assignment', { token: peer }), 401, 'TEMPER_TOKEN_INVALID');
    const proxied = await one.call('POST', a2aPath('team-a', 'tokens'), {
      userToken: peer,
      body: { jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { id: 'x' } },
    });
    assert.equal(errorOf(proxied)?.code, -32001, 'the header that passes the API server');
  });

  it('a canceled task ends, also in work, and its pod cannot answer any more', async () => {
    const messages = await open();
    const agent = await messages.createReadyAgent('canceled', SERVED);
    const client = await a2aClient(messages.one, { agent: 'canceled', token: await tokenOf(messages) });
    const send = async (text: string) =>
      asTask(await client.sendMessage({ ...newRequest(text, { contextId: 'c' }), configuration: IMMEDIATELY }));
    const inWork = await send('one');
    const waiting = await send('two');
    const kept = await send('three');
    const { deliveryToken, message } = await messages.next(agent);
    assert.equal(message.id, inWork.id);
    assert.equal(stateOf(await client.getTask({ tenant: '', id: inWork.id })), TaskState.TASK_STATE_WORKING);
    assert.equal(stateOf(await client.getTask({ tenant: '', id: waiting.id })), TaskState.TASK_STATE_SUBMITTED);
    const ends = (async () => {
      const states: (TaskState | undefined)[] = [];
      for await (const { payload } of client.resubscribeTask({ tenant: '', id: waiting.id }))
        states.push(
          payload?.$case === 'task' || payload?.$case === 'statusUpdate' ? payload.value.status?.state : undefined,
        );
      return states;
    })();
    for (const { id } of [inWork, waiting])
      assert.equal(
        stateOf(await client.cancelTask({ tenant: '', id, metadata: undefined })),
        TaskState.TASK_STATE_CANCELED,
      );
    const ack = { deliveryToken, action: 'ack', reply: 'late', finishReason: 'complete' };
    assert.notEqual((await messages.postDelivery(agent, ack)).status, 204);
    assert.equal((await ends).at(-1), TaskState.TASK_STATE_CANCELED);
    await assert.rejects(client.cancelTask({ tenant: '', id: waiting.id, metadata: undefined }), /has ended/);
    assert.equal((await answerNext(messages, agent)).message.id, kept.id, 'the next message of the context follows');
    assert.equal(stateOf(await client.getTask({ tenant: '', id: inWork.id })), TaskState.TASK_STATE_CANCELED);
    assert.equal(stateOf(await client.getTask({ tenant: '', id: kept.id })), TaskState.TASK_STATE_COMPLETED);
  });

  it('a task whose call waits for an approval needs input, and a failed one says why', async () => {
    const messages = await open();
    await messages.fixture.createPolicy('team-a', 'asking', ASKING);
    const spec = { ...SERVED, trustPolicyRef: { name: 'asking' }, grants: { tools: ['*'] } };
    const agent = await messages.createReadyAgent('parking', spec);
    const client = await a2aClient(messages.one, { agent: 'parking', token: await tokenOf(messages) });
    const asking = client.sendMessage(newRequest('read it'));
    const { deliveryToken } = await messages.next(agent);
    const call = { deliveryToken, tool: 'file_read', input: { path: 'note.txt' }, callKey: 's/0/1/call-0' };
    const { token } = agent;
    const { request } = parsed(await messages.one.call('POST', '/v1/approvals', { token, body: call })) as CallApproval;
    parsed(await messages.postDelivery(agent, { deliveryToken, action: 'park', requests: [request] }), 204);
    const task = asTask(await asking);
    assert.equal(stateOf(task), TaskState.TASK_STATE_INPUT_REQUIRED);
    assert.match(String(task.status?.message?.parts[0]?.content?.value), /approval of a user/);
    const failing = client.sendMessage(newRequest('fail'));
    const next = await messages.next(agent);
    const rejection = {
      deliveryToken: next.deliveryToken,
      action: 'reject',
      code: 'TEMPER_TIMEOUT',
      message: 'too slow',
    };
    parsed(await messages.postDelivery(agent, rejection), 204);
    const failed = asTask(await failing);
    assert.equal(stateOf(failed), TaskState.TASK_STATE_FAILED);
    assert.match(String(failed.status?.message?.parts[0]?.content?.value), /too slow \(TEMPER_TIMEOUT\)/);
  });

  it('what the gateway does not do over A2A is refused by name', async () => {
    const messages = await open();
    await messages.createReadyAgent('strict', SERVED);
    const of = { agent: 'strict', token: await tokenOf(messages), version: '1.0' };
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] };
    const config = { url: 'https://example.com', taskId: 'x' };
    const cases: readonly (readonly [string, unknown, number, RegExp])[] = [
      [
        'SendMessage',
        { message: { ...message, parts: [{ raw: 'aGk=', filename: 'a' }] } },
        -32005,
        /parts\[0\] is a file/,
      ],
      ['SendMessage', { message: { ...message, parts: [{ url: 'file:///etc/passwd' }] } }, -32005, /is a file/],
      ['SendMessage', { message: { ...message, taskId: 'msg-1' } }, -32004, /without message.taskId/],
      ['SendMessage', { message, configuration: { taskPushNotificationConfig: config } }, -32003, /push notifications/],
      ['SendMessage', { message, configuration: { acceptedOutputModes: ['image/png'] } }, -32005, /text\/plain/],
      ['SendMessage', { message, tenant: 'team-b' }, -32602, /params\.tenant/],
      [
        'SendMessage',
        { message: { ...message, parts: [{ text: { a: 1 } }] } },
        -32602,
        /params\.message\.parts\.0\.text/,
      ],
      ['SendMessage', { message: { ...message, parts: [null] } }, -32602, /params\.message\.parts\.0/],
      ['SendMessage', { message: { ...message, contextId: '../x' } }, -32602, /params\.message\.contextId/],
      [
        'SendMessage',
        { message: { ...message, parts: [{ text: 'x'.repeat(100_001) }] } },
        -32602,
        /100000 are allowed/,
      ],
      ['SendMessage', {}, -32602, /params/],
      ['GetTask', { id: '*' }, -32001, /has no task "\*"/],
      ['GetTask', { id: `msg-${'0'.repeat(32)}` }, -32001, /has no task/],
      ['GetTask', { id: {} }, -32602, /params\.id/],
      ['ListTasks', {}, -32004, /not listed/],
      ['CreateTaskPushNotificationConfig', config, -32003, /push notifications/],
      ['Other', {}, -32601, /method/i],
      ['SendMessage', [], -32600, /body\.params/],
    ];
    for (const [method, params, code, text] of cases) {
      const error = errorOf(await rpc(messages.one, of, method, params));
      assert.equal(error?.code, code, `${method} ${JSON.stringify(params).slice(0, 200)}: ${JSON.stringify(error)}`);
      assert.match(error?.message ?? '', text);
    }
    const path = a2aPath('team-a', 'strict');
    const batch = await messages.one.call('POST', path, {
      token: of.token,
      body: [{ jsonrpc: '2.0', id: 1, method: 'GetTask' }],
    });
    assert.equal(errorOf(batch)?.code, -32600);
    const deep = {
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: { message: { ...message, parts: [{ data: nested(200) }] } },
    };
    assertError(await messages.one.call('POST', path, { token: of.token, body: deep }), 400, 'TEMPER_REQUEST_INVALID');
  });

  it('a caller with many open tasks waits, and other callers and users go on', async () => {
    const messages = await open();
    await messages.createReadyAgent('busy', SERVED);
    const [token, otherToken] = await Promise.all([tokenOf(messages), tokenOf(messages, 'team-b', 'other')]);
    const client = await a2aClient(messages.one, { agent: 'busy', token });
    const other = await a2aClient(messages.one, { agent: 'busy', token: otherToken });
    const send = (from = client) => from.sendMessage({ ...newRequest('more'), configuration: IMMEDIATELY });
    const tasks: Task[] = [];
    for (let sent = 0; sent < MAX_OPEN_TASKS; sent += 1) tasks.push(asTask(await send()));
    await assert.rejects(send(), /TEMPER_RATE_LIMITED/);
    asTask(await send(other));
    parsed(await messages.sendMessage('busy', 'a user'));
    await client.cancelTask({ tenant: '', id: tasks[0]?.id ?? '', metadata: undefined });
    await pollValue(
      'space for one more task',
      async () => asTask(await send()).id,
      (id) => id !== '',
    );
  });
}

const IMMEDIATELY = {
  acceptedOutputModes: [],
  taskPushNotificationConfig: undefined,
  returnImmediately: true,
};

function nested(levels: number): unknown {
  return levels === 0 ? 1 : [nested(levels - 1)];
}
