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
const PARKED = event(8, { type: 'turn-parked', requests: ['apr-1'] });
const REPLY: SessionStreamLine = { seq: 9, kind: 'reply', message: MESSAGE, text: 'West.', finishReason: 'complete' };

/** What the gateway finds behind the routes. */
interface Stored {
  lines: SessionStreamLine[];
  sent: Partial<Envelope>[];
  followed: { session: string; after: number; skip?: number | undefined }[];
}

function depsOf(stored: Stored): GatewayDeps {
  const agent = { metadata: { name: 'analyst', namespace: 'team-a' }, spec: {} };
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
      agent: (_: string, name: string) => (name === 'analyst' ? { uid: 'a-1', agent, podUid: 'pod-1' } : undefined),
    },
    inbox: {
      publish: async (_uid: string, _sender: unknown, message: Partial<Envelope>) => {
        stored.sent.push(message);
        return { id: MESSAGE, sequence: 1, duplicate: false };
      },
    },
    approvals: { waitingIn: async () => [] },
    sessionsOf: () => ({ isClosed: async (session: string) => session === 's-closed' }),
    events: {
      baseSequence: async () => 0,
      lastSequence: async () => 7,
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

  const post = (payload: unknown, { url = URL_OF_AGENT, token = 'team-a' } = {}) =>
    server.inject({
      method: 'POST',
      url,
      headers: {
        'temper-token': token,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2025-11-25',
      },
      payload: JSON.stringify(payload),
    });
  const messages = async (method: string, params: JsonObject): Promise<Json[]> => {
    const { statusCode, body } = await post({ jsonrpc: '2.0', id: 1, method, params });
    assert.equal(statusCode, 200, body);
    return [...body.matchAll(/^data: (\{.*)$/gm)].map(([, line = '']) => JSON.parse(line) as Json);
  };
  const ask = async (input: JsonObject, meta: JsonObject = {}): Promise<{ result: Json; progress: string[] }> => {
    const all = await messages('tools/call', { name: 'ask_agent', arguments: input, _meta: meta });
    const progress = all.flatMap((message) => textAt(message, ['params', 'message']) || []);
    return { result: member(all.at(-1), 'result') ?? member(all.at(-1), 'error') ?? null, progress };
  };
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
    const ticket = `${MESSAGE}.8.0`;
    assert.ok(JSON.stringify(waiting).includes(ticket));
    stored.lines = [];
    assert.equal(codeOf((await ask({ session: 's-1', ticket })).result), 'TEMPER_TIMEOUT');
    stored.lines = [REPLY];
    const { result } = await ask({ session: 's-1', ticket });
    assert.equal(textAt(result, ['structuredContent', 'reply']), 'West.');
    assert.deepEqual(stored.followed.at(-1), { session: 's-1', after: 8, skip: 0 });
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
    assert.match(JSON.stringify(await messages('tools/call', { name: 'csv_rows', arguments: {} })), /-32602/);
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
