import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { Envelope } from '../../bus/port.ts';
import { systemClock } from '../../lib/clock.ts';
import { ulids } from '../../lib/ids.ts';
import { type Json, type JsonObject, member, textAt } from '../../lib/json.ts';
import type { SessionStreamLine } from '../../gateway-api/user-api.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry, registerMetrics } from '../../telemetry/prometheus.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { GATEWAY_METRICS } from '../../telemetry/temper-metrics.ts';
import type { PolicyRequest } from '../../policy/types.ts';
import { aSharedTool } from '../../tempering/tempering.testing.ts';
import { NO_BROKERED_TOOLS } from '../brokered/port.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer } from '../http/routes.ts';
import { createGatewayServer } from '../http/server.ts';
import { mcpRoutes } from './routes.ts';

const MESSAGE = `msg-${'0'.repeat(32)}`;
const URL_OF_AGENT = '/v1/users/namespaces/team-a/agents/analyst/mcp';
const event = (seq: number, rest: object): SessionStreamLine => {
  const stamp = { time: '2026-01-01T00:00:00Z', agent: 'analyst', session: 's-1', rootMessage: MESSAGE };
  return { seq, kind: 'event', event: { ...stamp, ...rest } } as SessionStreamLine;
};
/** Sequences of NATS begin with the microseconds of its store. */
const SEQUENCE = 1_795_912_176_070_006;
const PARKED = event(SEQUENCE, { type: 'turn-parked', requests: ['apr-1'] });
const REPLY: SessionStreamLine = { seq: 9, kind: 'reply', message: MESSAGE, text: 'West.', finishReason: 'complete' };

const DOUBLE = aSharedTool('double_it');

/** The policy of the tests permits one forged tool, one built-in tool, and one that works for the model. */
function effectOn(request: PolicyRequest): 'Allow' | 'Deny' {
  const permitted = ['double_it', 'file_read', 'forge_tool', 'of_session'];
  return request.kind === 'Tool' && permitted.includes(request.name) ? 'Allow' : 'Deny';
}

/** What the gateway finds behind the routes. */
interface Stored {
  lines: SessionStreamLine[];
  sent: Partial<Envelope>[];
  followed: { session: string; after: number; skip?: number | undefined }[];
}

function depsOf(stored: Stored): GatewayDeps {
  const agent = { metadata: { name: 'analyst', namespace: 'team-a' }, spec: {} };
  const state = { uid: 'a-1', agent, policy: { spec: {} }, podUid: 'pod-1' };
  return {
    clock: systemClock,
    ids: ulids,
    log: createLogger({ level: 'error', destination: { write: () => undefined }, secrets: createSecretRedactor() }),
    metrics: registerMetrics(createRegistry(), GATEWAY_METRICS),
    draining: NEVER_ABORTED,
    identity: {
      isVerified: () => true,
      user: async (namespace: string) => ({ kind: 'user', namespace, tokenId: 't' }),
    },
    directory: {
      agent: (_: string, name: string) => (name === 'analyst' ? state : undefined),
      decider: () => ({ decide: (request: PolicyRequest) => ({ effect: effectOn(request) }) }),
    },
    inbox: {
      publish: async (_uid: string, _sender: unknown, message: Partial<Envelope>) => {
        stored.sent.push(message);
        return { id: MESSAGE, sequence: 1, duplicate: false };
      },
    },
    brokered: NO_BROKERED_TOOLS,
    toolsOf: async () => [DOUBLE, aSharedTool('secret_tool'), { ...aSharedTool('of_session'), tier: 'Session' }],
    sessions: {
      marks: async () => ({ tainted: false, hasPrivateData: false }),
      sessions: async () => [{ session: 's-1', lastUsedAt: '2026-01-01T00:00:00Z' }],
    },
    approvals: { waitingIn: async () => [] },
    sessionsOf: () => ({ isClosed: async (session: string) => session === 's-closed' }),
    events: {
      baseSequence: async () => 0,
      lastSequence: async () => 7,
      read: async (_uid: string, _session: string, behind: number, limit: number) =>
        stored.lines.filter(({ seq }) => seq > behind).slice(0, limit),
      async *follow(_uid: string, session: string, { after: behind, skip }: { after: number; skip?: number }) {
        stored.followed.push({ session, after: behind, skip });
        yield* stored.lines;
      },
    },
  } as unknown as GatewayDeps;
}

describe('the MCP endpoint of an agent', () => {
  const stored: Stored = { lines: [], sent: [], followed: [] };
  let server: GatewayServer;

  before(async () => {
    server = await createGatewayServer(depsOf(stored), { tls: undefined, routes: [mcpRoutes], maxEventLoopDelayMs: 0 });
    await server.ready();
  });
  after(() => server.close());
  beforeEach(() => Object.assign(stored, { lines: [], sent: [], followed: [] }));

  const post = (
    payload: unknown,
    {
      url = URL_OF_AGENT,
      token = 'team-a',
      headers = {},
    }: { url?: string; token?: string; headers?: Record<string, string> } = {},
  ) =>
    server.inject({
      method: 'POST',
      url,
      headers: {
        'temper-token': token,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2025-11-25',
        ...headers,
      },
      payload: JSON.stringify(payload),
    });
  const messages = async (method: string, params: JsonObject): Promise<Json[]> => {
    const { statusCode, body } = await post({ jsonrpc: '2.0', id: 1, method, params });
    assert.equal(statusCode, 200, body);
    return [...body.matchAll(/^data: (\{.*)$/gm)].map(([, line = '']) => JSON.parse(line) as Json);
  };
  const call = async (name: string, input: JsonObject, meta: JsonObject = {}) => {
    const all = await messages('tools/call', { name, arguments: input, _meta: meta });
    const progress = all.flatMap((message) => textAt(message, ['params', 'message']) || []);
    return { result: member(all.at(-1), 'result') ?? member(all.at(-1), 'error') ?? null, progress };
  };
  const ask = (input: JsonObject, meta: JsonObject = {}) => call('ask_agent', input, meta);
  const codeOf = (result: Json): string => textAt(member(result, '_meta'), ['temper.dev/code']);

  it('a client of a user asks the agent, and reads its events and its reply', async () => {
    const [listed] = await messages('tools/list', {});
    assert.match(JSON.stringify(listed), /"name":"ask_agent"/);
    stored.lines = [event(8, { type: 'tool-call', id: 'c', tool: 'csv_rows', input: {} }), REPLY];
    const { result, progress } = await ask({ text: 'Which region?', session: 's-1' }, { progressToken: 'p' });
    assert.deepEqual(member(result, 'structuredContent'), { reply: 'West.', finishReason: 'complete', session: 's-1' });
    assert.deepEqual(progress, ['calls csv_rows']);
    const [{ to, source, session, text } = {}] = stored.sent;
    assert.deepEqual([to, source, session, text], ['analyst', 'User', 's-1', 'Which region?']);
    assert.deepEqual(stored.followed, [{ session: 's-1', after: 7, skip: 0 }]);
  });

  it('a message without a reply has a ticket, with which another request waits on and sends nothing', async () => {
    stored.lines = [PARKED];
    const { result: waiting } = await ask({ text: 'Send it', session: 's-1' });
    assert.equal(codeOf(waiting), 'TEMPER_APPROVAL_PENDING');
    assert.match(JSON.stringify(waiting), /kubectl temper approve apr-1/);
    const ticket = `${MESSAGE}.${SEQUENCE}.0`;
    assert.ok(JSON.stringify(waiting).includes(ticket));
    stored.lines = [];
    assert.equal(codeOf((await ask({ session: 's-1', ticket })).result), 'TEMPER_TIMEOUT');
    stored.lines = [REPLY];
    const { result } = await ask({ session: 's-1', ticket });
    assert.equal(textAt(result, ['structuredContent', 'reply']), 'West.');
    assert.deepEqual(stored.followed.at(-1), { session: 's-1', after: SEQUENCE, skip: 0 });
    assert.equal(stored.sent.length, 1);
  });

  it('a failed message and a closed session are failed calls with their codes', async () => {
    stored.lines = [{ seq: 9, kind: 'failed', message: MESSAGE, code: 'TEMPER_QUOTA_EXCEEDED', text: 'no tokens' }];
    assert.equal(codeOf((await ask({ text: 'one' })).result), 'TEMPER_QUOTA_EXCEEDED');
    assert.equal(codeOf((await ask({ text: 'two', session: 's-closed' })).result), 'TEMPER_SESSION_CLOSED');
    assert.equal(stored.sent.length, 1);
  });

  it('arguments that the tool does not have, and tickets of other forms, are refused', async () => {
    for (const input of [
      {},
      { text: '' },
      { text: 'a', ticket: `${MESSAGE}.8.0` },
      { ticket: `${MESSAGE}.8.0` },
      { session: 's-1', ticket: 'msg-1.8.0' },
      { session: '../s-1', text: 'a' },
      { text: 'a', agent: 'other' },
      { text: ['a'] },
    ])
      assert.equal(codeOf((await ask(input)).result), 'TEMPER_TOOL_INPUT_INVALID', JSON.stringify(input));
    assert.deepEqual(stored.sent, []);
  });

  it('the tools that the policy permits are listed and called, and a tool that it denies looks like a missing one', async () => {
    const [listed] = await messages('tools/list', {});
    const tools = member(member(listed, 'result'), 'tools') as Json[];
    assert.deepEqual(
      tools.map((tool) => textAt(tool, ['name'])),
      ['ask_agent', 'file_read', 'double_it'],
    );
    stored.lines = [{ ...REPLY, text: JSON.stringify({ ok: true, output: { result: 42 } }) }];
    const { result } = await call('double_it', { value: 21 });
    assert.deepEqual(member(result, 'structuredContent'), { result: 42 });
    const [{ call: sent, text } = {}] = stored.sent;
    assert.deepEqual(sent, { tool: 'double_it', digest: DOUBLE.digest, input: { value: 21 } });
    assert.match(text ?? '', /calls the tool "double_it"/);
    const messageFor = async (name: string): Promise<string> =>
      textAt((await call(name, { value: 21 })).result, ['message']).replaceAll(name, 'NAME');
    for (const name of ['secret_tool', 'forge_tool', 'of_session'])
      assert.equal(await messageFor(name), await messageFor('no_such_tool'), name);
    assert.equal(stored.sent.length, 1);
  });

  it('arguments that the schema refuses, or that are too large, are not sent', async () => {
    for (const input of [{}, { value: 'many' }, { value: 1, more: 'x'.repeat(100_000) }])
      assert.equal(codeOf((await call('double_it', input)).result), 'TEMPER_TOOL_INPUT_INVALID');
    assert.deepEqual(stored.sent, []);
  });

  it('a failure of the tool is a failed call, and so is whatever else a pod answers', async () => {
    const error = { code: 'TEMPER_TOOL_FAILED', message: 'a\u001b[2Jb' };
    for (const [text, code] of [
      [JSON.stringify({ ok: false, error }), 'TEMPER_TOOL_FAILED'],
      ['[TEMPER_INTERNAL: a text]', 'TEMPER_TOOL_OUTPUT_INVALID'],
      [JSON.stringify({ ok: true, output: 'no object' }), 'TEMPER_TOOL_OUTPUT_INVALID'],
    ] as const) {
      stored.lines = [{ ...REPLY, text }];
      const { result } = await call('double_it', { value: 1 });
      assert.deepEqual([member(result, 'isError'), codeOf(result)], [true, code], text);
      assert.ok(!JSON.stringify(result).includes('\\u001b['), text);
    }
  });

  it('a call that waits has a ticket, with which ask_agent gets its result', async () => {
    stored.lines = [PARKED];
    const { result: waiting } = await call('double_it', { value: 21 });
    assert.equal(codeOf(waiting), 'TEMPER_APPROVAL_PENDING');
    const [, session = '', ticket = ''] =
      /session\W+(s-[0-9a-f]+)\W+ticket\W+(msg-[0-9a-f]+\.\d+\.0\.call)/.exec(
        textAt((member(waiting, 'content') as Json[])[0], ['text']),
      ) ?? [];
    stored.lines = [{ ...REPLY, text: JSON.stringify({ ok: true, output: { result: 42 } }) }];
    const { result } = await ask({ session, ticket });
    const reply = { reply: '{"result":42}', finishReason: 'complete', session };
    assert.deepEqual(member(result, 'structuredContent'), reply);
    stored.lines = [
      { ...REPLY, text: JSON.stringify({ ok: false, error: { code: 'TEMPER_APPROVAL_DENIED', message: 'no' } }) },
    ];
    assert.equal(codeOf((await ask({ session, ticket })).result), 'TEMPER_APPROVAL_DENIED');
    assert.equal(stored.sent.length, 1);
  });

  it('the session of the URL is that of the calls and of the messages that name none', async () => {
    const url = `${URL_OF_AGENT}?session=s-own`;
    for (const params of [
      { name: 'double_it', arguments: { value: 1 } },
      { name: 'ask_agent', arguments: { text: 'hi' } },
      { name: 'ask_agent', arguments: { text: 'hi', session: 's-other' } },
    ])
      assert.equal((await post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }, { url })).statusCode, 200);
    assert.deepEqual(
      stored.sent.map(({ session }) => session),
      ['s-own', 's-own', 's-other'],
    );
    const { statusCode } = await post(
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      { url: `${URL_OF_AGENT}?session=../x` },
    );
    assert.equal(statusCode, 400);
  });

  it('the answer to initialize has a session, in which the client calls from then on', async () => {
    const clientInfo = { name: 'test', version: '1' };
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
    const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params };
    const first = await post(initialize);
    const second = await post(initialize);
    const session = String(first.headers['mcp-session-id']);
    assert.match(session, /^s-[0-9a-f]{24}$/);
    assert.notEqual(second.headers['mcp-session-id'], session);
    assert.equal(stored.sent.length, 0);
    const call = { jsonrpc: '2.0', id: 2, method: 'tools/call' };
    const headers = { 'mcp-session-id': session };
    const double = { ...call, params: { name: 'double_it', arguments: { value: 1 } } };
    for (const payload of [double, { ...call, params: { name: 'ask_agent', arguments: { text: 'hi' } } }])
      assert.equal((await post(payload, { headers })).statusCode, 200);
    const url = `${URL_OF_AGENT}?session=s-own`;
    assert.equal((await post(double, { headers, url })).statusCode, 200);
    assert.equal((await post(initialize, { url })).headers['mcp-session-id'], undefined);
    assert.deepEqual(
      stored.sent.map((message) => message.session),
      [session, session, 's-own'],
    );
    const closed = await post(double, { headers: { 'mcp-session-id': 's-closed' } });
    assert.deepEqual([closed.statusCode, /TEMPER_NOT_FOUND/.test(closed.body)], [404, true], closed.body);
    assert.equal((await post(double, { headers: { 'mcp-session-id': '../x' } })).statusCode, 400);
    assert.equal(stored.sent.length, 3);
  });

  it('a session is a resource with its last lines, which hide nothing from their reader', async () => {
    const [listed] = await messages('resources/list', {});
    const [resource] = member(member(listed, 'result'), 'resources') as Json[];
    assert.deepEqual(
      [textAt(resource, ['uri']), textAt(resource, ['mimeType'])],
      ['temper://sessions/s-1', 'application/x-ndjson'],
    );
    const read = async (session: string): Promise<Json> =>
      (await messages('resources/read', { uri: `temper://sessions/${session}` })).at(-1) ?? null;
    const linesOf = (answer: Json): SessionStreamLine[] =>
      textAt((member(member(answer, 'result'), 'contents') as Json[])[0], ['text'])
        .split('\n')
        .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as SessionStreamLine]));
    stored.lines = [event(8, { type: 'message', text: 'a\u{e0041}b', delta: false }), { ...REPLY, seq: 10 }];
    const [first, last] = linesOf(await read('s-1'));
    assert.deepEqual(first, event(8, { type: 'message', text: 'a\\u{e0041}b', delta: false }));
    assert.deepEqual(last, { ...REPLY, seq: 10 });
    stored.lines = Array.from({ length: 1_200 }, (_, seq) =>
      event(seq + 1, { type: 'message', text: 'x'.repeat(500) }),
    );
    const kept = linesOf(await read('s-1'));
    assert.equal(kept.at(-1)?.seq, 1_200);
    assert.ok(kept.length > 200 && JSON.stringify(kept).length < 200_000, `${kept.length} lines`);
    for (const missing of ['s-2', '../s-1', ''])
      assert.match(JSON.stringify(await read(missing)), /no resource is named/, missing);
  });

  it('a page of another machine is refused for each method, before its body is read', async () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    assert.equal((await post(list, { headers: { origin: 'http://localhost:6274' } })).statusCode, 200);
    for (const method of ['POST', 'GET', 'DELETE'] as const) {
      const headers = { 'temper-token': 'team-a', origin: 'https://evil.example.com' };
      const payload = method === 'POST' ? { payload: 'no JSON' } : {};
      const { statusCode, body } = await server.inject({ method, url: URL_OF_AGENT, headers, ...payload });
      assert.deepEqual([statusCode, /TEMPER_ORIGIN_DENIED/.test(body)], [403, true], body);
    }
  });

  it('a request for an agent of another namespace, several messages at once and streams are refused', async () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    assert.equal((await post(list, { token: 'team-b' })).statusCode, 403);
    assert.equal((await post(list, { url: URL_OF_AGENT.replace('analyst', 'other') })).statusCode, 404);
    for (const body of [[list, list], { ...list, more: 1 }, { ...list, jsonrpc: '1.0' }, 'text', null])
      assert.equal((await post(body)).statusCode, 400, JSON.stringify(body));
    for (const method of ['GET', 'DELETE'] as const) {
      const { statusCode, headers } = await server.inject({
        method,
        url: URL_OF_AGENT,
        headers: { 'temper-token': 'team-a' },
      });
      assert.deepEqual([statusCode, headers.allow], [405, 'POST']);
    }
    const { statusCode, body } = await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    assert.deepEqual([statusCode, body], [202, '']);
  });
});
