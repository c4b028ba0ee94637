import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import { jsonLines } from '../../../../test/support/json-lines.ts';
import { poll } from '../../../../test/support/poll.ts';
import { isTemperError } from '../../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, member, textAt } from '../../../lib/json.ts';
import {
  type FakeCluster,
  type FakeResponse,
  GATEWAY_PROXY,
  installedCluster,
  type RecordedRequest,
} from '../../cluster/api-server.testing.ts';
import { aTerminal } from '../../io.testing.ts';
import { clusterServe } from './cluster-serve.ts';

const AGENT = `${GATEWAY_PROXY}/agents/analyst`;
const SUMMARY = {
  session: 's-1',
  openedAt: '2026-01-01T00:00:00Z',
  lastUsedAt: '2026-01-02T00:00:00Z',
  items: 2,
  tainted: false,
};
const ended = (seq: number, rest: object): object => ({ seq, message: 'm-1', ...rest });
const reply = (seq: number, text: string): object => ended(seq, { kind: 'reply', text, finishReason: 'complete' });
const event = (seq: number, rest: object): object => ({
  seq,
  kind: 'event',
  event: { time: '2026-01-01T00:00:00Z', agent: 'analyst', session: 's-1', rootMessage: 'm-1', ...rest },
});
const lines = (...values: object[]): FakeResponse => ({
  status: 200,
  body: values.map((value) => `${JSON.stringify(value)}\n`).join(''),
});

/** A client of `kubectl temper mcp serve`. */
interface TestClient {
  cluster: FakeCluster;
  /** The result of a request; of one that fails, its error. */
  request: (method: string, params?: JsonObject) => Promise<Json>;
  /** The result of ask_agent. */
  ask: (input: JsonObject, meta?: JsonObject) => Promise<Json>;
  /** The result of double_it. */
  call: (input: JsonObject) => Promise<Json>;
  send: (message: JsonObject) => void;
  received: () => Json[];
}

/** Serves agent `analyst`, whose messages and events `answer` answers. */
async function withClient(
  answer: (request: RecordedRequest) => FakeResponse,
  work: (client: TestClient) => Promise<void>,
): Promise<void> {
  await using cluster = await installedCluster(
    (request) =>
      answer(request) ?? (request.path === `${AGENT}/sessions` ? { status: 200, body: [SUMMARY] } : undefined),
  );
  const input = new PassThrough({ objectMode: true });
  const io = { ...aTerminal(), lines: () => input as AsyncIterable<string> };
  const served = clusterServe({ kubeconfig: cluster.kubeconfig, agent: 'analyst', session: 's-1' }, io);
  const received = (): Json[] => jsonLines(io.printed());
  let count = 0;
  const send = (message: JsonObject): void => void input.write(JSON.stringify({ jsonrpc: '2.0', ...message }));
  const request = async (method: string, params: JsonObject = {}): Promise<Json> => {
    const id = ++count;
    send({ id, method, params });
    const found = await poll(`the answer to ${method}`, () =>
      received().find((message) => member(message, 'id') === id),
    );
    return member(found, 'result') ?? member(found, 'error') ?? null;
  };
  const ask = (given: JsonObject, meta: JsonObject = {}): Promise<Json> =>
    request('tools/call', { name: 'ask_agent', arguments: given, _meta: meta });
  const call = (given: JsonObject): Promise<Json> => request('tools/call', { name: 'double_it', arguments: given });
  const clientInfo = { name: 'test', version: '1' };
  await request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  send({ method: 'notifications/initialized' });
  await work({ cluster, request, ask, call, send, received });
  input.end();
  assert.equal(await served, 0);
}

const isMessage = ({ method, path }: RecordedRequest): boolean => method === 'POST' && path === `${AGENT}/messages`;
const isEvents = ({ path }: RecordedRequest): boolean => path.startsWith(`${AGENT}/sessions/s-1/events`);
const isTools = ({ path }: RecordedRequest): boolean => path.startsWith(`${AGENT}/callable-tools`);
const isToolCall = ({ method, path }: RecordedRequest): boolean => method === 'POST' && path === `${AGENT}/calls`;
const TOOL = {
  name: 'double_it',
  description: 'Doubles.',
  inputSchema: { type: 'object' },
  category: 'other',
  action: 'code:read',
  sideEffects: false,
  locality: 'Local',
};
const RECEIPT: FakeResponse = {
  status: 200,
  body: { id: 'm-1', session: 's-1', duplicate: false, podBound: true, after: 7 },
};
const codeOf = (result: Json): string => textAt(member(result, '_meta'), ['temper.dev/code']);

describe('kubectl temper mcp serve', () => {
  it('the agent answers over the gateway, and its events are progress', async () => {
    const call = event(8, { type: 'tool-call', id: 'c', tool: 'csv_rows', input: {} });
    const answer = (request: RecordedRequest): FakeResponse => {
      if (isTools(request)) return { status: 200, body: [] };
      if (isMessage(request)) return RECEIPT;
      return isEvents(request) ? lines(call, reply(9, 'West fell most.')) : undefined;
    };
    await withClient(answer, async ({ cluster, request, ask, received }) => {
      const { tools } = (await request('tools/list')) as { tools: { name: string }[] };
      assert.deepEqual(
        tools.map(({ name }) => name),
        ['ask_agent'],
      );
      const result = await ask({ text: 'Which region?' }, { progressToken: 'p' });
      assert.deepEqual(member(result, 'structuredContent'), { reply: 'West fell most.', finishReason: 'complete' });
      const progress = received().filter((message) => textAt(message, ['method']) === 'notifications/progress');
      assert.deepEqual(
        progress.map((message) => textAt(message, ['params', 'message'])),
        ['calls csv_rows'],
      );
      const sent = cluster.requests.find(isMessage);
      assert.deepEqual(sent?.body, { text: 'Which region?', session: 's-1' });
      assert.equal(sent?.headers['temper-token'], 'the-token');
      const query = new URLSearchParams(cluster.requests.find(isEvents)?.path.split('?')[1]);
      assert.deepEqual([query.get('after'), query.get('message')], ['7', 'm-1']);
    });
  });

  it('the tools of the agent are listed and called in the session, and a failed call has its code', async () => {
    const outcomes = [
      reply(9, JSON.stringify({ ok: true, output: { result: 42 } })),
      reply(10, JSON.stringify({ ok: false, error: { code: 'TEMPER_TOOL_FAILED', message: 'a\u001b[2Jb' } })),
      ended(11, { kind: 'failed', code: 'TEMPER_TIMEOUT', text: 'too late' }),
    ];
    const answer = (request: RecordedRequest): FakeResponse => {
      if (isTools(request)) return { status: 200, body: [TOOL] };
      if (isToolCall(request)) return RECEIPT;
      return isEvents(request) ? lines(outcomes.shift() ?? {}) : undefined;
    };
    await withClient(answer, async ({ cluster, request, call }) => {
      const { tools } = (await request('tools/list')) as { tools: { name: string }[] };
      assert.deepEqual(
        tools.map(({ name }) => name),
        ['ask_agent', 'double_it'],
      );
      const path = cluster.requests.find(isTools)?.path ?? '';
      assert.equal(new URLSearchParams(path.split('?')[1]).get('session'), 's-1');
      assert.deepEqual(member(await call({ value: 21 }), 'structuredContent'), { result: 42 });
      const [sent] = cluster.requests.filter(isToolCall);
      assert.deepEqual(sent?.body, { tool: 'double_it', input: { value: 21 }, session: 's-1' });
      const failed = await call({ value: 22 });
      assert.equal(codeOf(failed), 'TEMPER_TOOL_FAILED');
      assert.doesNotMatch(JSON.stringify(failed), /\\u001b\[/);
      assert.equal(codeOf(await call({ value: 23 })), 'TEMPER_TIMEOUT');
    });
  });

  it('the same call again waits for the result of the call that was decided about, and a refused one is sent again', async () => {
    let isDecided = false;
    let refusals = 1;
    const parked = event(8, { type: 'turn-parked', requests: ['apr-1'] });
    const output = reply(9, JSON.stringify({ ok: true, output: { result: 42 } }));
    const refusal = { error: { code: 'TEMPER_TOOL_NOT_FOUND', message: 'no tool' } };
    const answer = (request: RecordedRequest): FakeResponse => {
      if (isToolCall(request)) return refusals-- > 0 ? { status: 422, body: refusal } : RECEIPT;
      return isEvents(request) ? lines(isDecided ? output : parked) : undefined;
    };
    await withClient(answer, async ({ cluster, call }) => {
      assert.match(JSON.stringify(await call({ value: 21 })), /-32602/);
      const waiting = await call({ value: 21 });
      assert.equal(codeOf(waiting), 'TEMPER_APPROVAL_PENDING');
      assert.match(JSON.stringify(waiting), /kubectl temper approve apr-1/);
      isDecided = true;
      assert.deepEqual(member(await call({ value: 21 }), 'structuredContent'), { result: 42 });
      assert.equal(cluster.requests.filter(isToolCall).length, 2);
      const last = cluster.requests.findLast(isEvents)?.path ?? '';
      assert.equal(new URLSearchParams(last.split('?')[1]).get('after'), '8');
    });
  });

  it('a gateway without this route serves the agent alone', async () => {
    const missing = { error: { code: 'TEMPER_NOT_FOUND', message: 'no route' } };
    await withClient(
      (request) => (isTools(request) ? { status: 404, body: missing } : undefined),
      async ({ request }) => {
        const { tools } = (await request('tools/list')) as { tools: { name: string }[] };
        assert.deepEqual(
          tools.map(({ name }) => name),
          ['ask_agent'],
        );
      },
    );
  });

  it('a message that needs an approval fails with its request, and ask_agent without text waits for the answer', async () => {
    let isDecided = false;
    const parked = event(8, { type: 'turn-parked', requests: ['apr-1'] });
    const answer = (request: RecordedRequest): FakeResponse => {
      if (isMessage(request)) return RECEIPT;
      if (isEvents(request)) return isDecided ? lines(reply(9, 'Sent.')) : lines(parked);
      return undefined;
    };
    await withClient(answer, async ({ cluster, ask }) => {
      const waiting = await ask({ text: 'Send it' });
      assert.deepEqual([member(waiting, 'isError'), codeOf(waiting)], [true, 'TEMPER_APPROVAL_PENDING']);
      assert.match(JSON.stringify(waiting), /kubectl temper approve apr-1/);
      assert.equal(codeOf(await ask({ text: 'And another' })), 'TEMPER_SESSION_BUSY');
      isDecided = true;
      assert.equal(textAt(await ask({}), ['structuredContent', 'reply']), 'Sent.');
      assert.equal(cluster.requests.filter(isMessage).length, 1);
      const last = cluster.requests.findLast(isEvents)?.path ?? '';
      assert.equal(new URLSearchParams(last.split('?')[1]).get('after'), '8');
      assert.equal(codeOf(await ask({})), 'TEMPER_TOOL_INPUT_INVALID');
    });
  });

  it('a message behind one that waits for a decision names the request of that one', async () => {
    const receipt = { id: 'm-1', session: 's-1', duplicate: false, podBound: true, after: 7, waitsFor: ['apr-0'] };
    const answer = (request: RecordedRequest): FakeResponse => {
      if (isMessage(request)) return { status: 200, body: receipt };
      return isEvents(request) ? lines(reply(9, 'Done.')) : undefined;
    };
    await withClient(answer, async ({ ask }) => {
      const waiting = await ask({ text: 'Go on' });
      assert.deepEqual(
        [codeOf(waiting), textAt(waiting, ['_meta', 'temper.dev/approvalRequest'])],
        ['TEMPER_APPROVAL_PENDING', 'apr-0'],
      );
      assert.equal(textAt(await ask({}), ['structuredContent', 'reply']), 'Done.');
    });
  });

  it('a refused message and one that fails are failed calls, and the next message is sent', async () => {
    let refusals = 1;
    let closings = 1;
    const failed = ended(9, { kind: 'failed', code: 'TEMPER_QUOTA_EXCEEDED', text: 'no tokens' });
    const closed = { error: { code: 'TEMPER_SESSION_CLOSED', message: 'the session is closed' } };
    const refusal = { error: { code: 'TEMPER_RATE_LIMITED', message: 'too many calls' } };
    const answer = (request: RecordedRequest): FakeResponse => {
      if (isMessage(request)) return refusals-- > 0 ? { status: 429, body: refusal } : RECEIPT;
      if (!isEvents(request)) return undefined;
      return closings-- > 0 ? { status: 409, body: closed } : lines(failed);
    };
    await withClient(answer, async ({ ask }) => {
      assert.equal(codeOf(await ask({ text: 'one' })), 'TEMPER_RATE_LIMITED');
      assert.equal(codeOf(await ask({ text: 'closed' })), 'TEMPER_SESSION_CLOSED');
      const result = await ask({ text: 'two' });
      assert.equal(codeOf(result), 'TEMPER_QUOTA_EXCEEDED');
      assert.match(JSON.stringify(result), /no tokens/);
      assert.equal(codeOf(await ask({ text: 'three' })), 'TEMPER_QUOTA_EXCEEDED');
    });
  });

  it('a message whose call the client cancels keeps its answer for ask_agent without text', async () => {
    let isHeld = true;
    let isGone = false;
    const answer = (request: RecordedRequest): FakeResponse => {
      if (isMessage(request)) return RECEIPT;
      if (!isEvents(request)) return undefined;
      if (!isHeld) return lines(reply(9, 'Done.'));
      return async (response) => {
        response.writeHead(200).write('\n');
        response.once('close', () => {
          isGone = true;
        });
      };
    };
    await withClient(answer, async ({ cluster, ask, send }) => {
      send({ id: 'held', method: 'tools/call', params: { name: 'ask_agent', arguments: { text: 'Work' } } });
      await poll('the stream of events', () => cluster.requests.some(isEvents));
      send({ method: 'notifications/cancelled', params: { requestId: 'held' } });
      await poll('the end of the stream', () => isGone);
      isHeld = false;
      assert.equal(textAt(await ask({}), ['structuredContent', 'reply']), 'Done.');
      assert.equal(cluster.requests.filter(isMessage).length, 1);
    });
  });

  it('the sessions of the agent are resources, whose text cannot control a terminal', async () => {
    const received = event(8, { type: 'message-received', text: 'Which \u001b[2Jregion?' });
    const answer = (request: RecordedRequest): FakeResponse =>
      isEvents(request) ? lines(received, reply(9, 'West.')) : undefined;
    await withClient(answer, async ({ request }) => {
      const { resources } = (await request('resources/list')) as { resources: JsonObject[] };
      assert.deepEqual(
        resources.map(({ uri, title }) => [uri, title]),
        [['temper://sessions/s-1', 's-1']],
      );
      const read = await request('resources/read', { uri: 'temper://sessions/s-1' });
      const text = textAt((member(read, 'contents') as Json[])[0], ['text']);
      assert.match(text, /You: Which \\u\{1b\}\[2Jregion\?[\s\S]*analyst: West\./);
      for (const uri of ['temper://sessions/s-2', 'temper://sessions/../s-1', 'file:///etc/passwd'])
        assert.match(JSON.stringify(await request('resources/read', { uri })), /no resource is named/);
    });
  });

  it('an agent that does not exist is an error before the first request', async () => {
    await using cluster = await installedCluster(({ path }) =>
      path === `${AGENT}/sessions`
        ? { status: 404, body: { error: { code: 'TEMPER_NOT_FOUND', message: 'there is no agent' } } }
        : undefined,
    );
    await assert.rejects(clusterServe({ kubeconfig: cluster.kubeconfig, agent: 'analyst' }, aTerminal()), (error) =>
      isTemperError(error, 'TEMPER_NOT_FOUND'),
    );
    assert.ok(!cluster.requests.some(({ body }) => isJsonObject(body) && 'text' in body));
  });
});
