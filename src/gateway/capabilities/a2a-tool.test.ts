import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { poll } from '../../../test/support/poll.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { Connection } from '../../connections/connection.ts';
import { systemClock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { reachableHosts } from './egress-hosts.ts';
import { OAuthTokens } from './oauth-tokens.ts';
import { DELIVERY, Tunnels } from './tunnels.testing.ts';
import { type A2aTool, callA2aTool } from './a2a-tool.ts';

const SECRET = 'hunter2-hunter2';
const ADDRESS = 'https://api.example.com/a2a';

interface Rpc {
  id: number;
  method: string;
  params: { id?: string; message?: { messageId: string; parts: JsonObject[]; contextId?: string; taskId?: string } };
}

/** A task of A2A 1.0 on the wire. */
function aTask(state: string, rest: object = {}): JsonObject {
  return { id: 't-1', contextId: 'c-1', status: { state: `TASK_STATE_${state}` }, ...rest };
}
const ARTIFACT = {
  artifactId: 'a',
  parts: [{ text: 'Twelve.' }, { data: { count: 12 } }, { url: 'https://x.example.com/y', filename: 'plot.png' }],
};

describe('a tool whose calls an agent elsewhere answers', () => {
  let tunnels: Tunnels;
  let folder = '';
  let answer: RequestListener;
  let asked: Rpc[];

  before(async () => {
    tunnels = await Tunnels.open((request, response) => answer(request, response));
    folder = await mkdtemp(join(tmpdir(), 'temper-a2a-tool-'));
    await writeFile(join(folder, 'token'), `${SECRET}\n`);
  });
  after(async () => {
    await tunnels[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });
  beforeEach(() => {
    asked = [];
  });

  /** Answers each request with what the function returns for it: a result, or the whole body as a text. */
  const answering = (resultOf: (rpc: Rpc, request: IncomingMessage) => Json): RequestListener => {
    const answered = async (...[request, response]: Parameters<RequestListener>): Promise<void> => {
      const rpc = JSON.parse(await text(request)) as Rpc;
      asked.push(rpc);
      const result = resultOf(rpc, request);
      const sent = typeof result === 'string' ? result : JSON.stringify({ jsonrpc: '2.0', id: rpc.id, result });
      response.setHeader('content-type', 'application/json').end(sent);
    };
    return (request, response) => void answered(request, response);
  };
  const call = (
    input: JsonObject,
    { signal = NEVER_ABORTED, milliseconds = 20_000, version, connection }: Options = {},
  ): Promise<Json> => {
    const url = new URL(ADDRESS);
    const deliveryTokens = { sign: () => 'd1.x.y' };
    const egress = { files: tunnels.files, deliveryTokens };
    const hosts = reachableHosts(url, connection, egress);
    const backend = { url: ADDRESS, ...(version === undefined ? {} : { version }) };
    const tool: A2aTool = { name: 'ask', kind: 'a2a', backend, url, connection, hosts };
    const op = { signal, deadline: systemClock.monotonic() + milliseconds, key: 'call-1' };
    const tokens = new OAuthTokens({ ...egress, clock: systemClock });
    return callA2aTool(tool, input, DELIVERY, { clock: systemClock, tokens }, op);
  };
  interface Options {
    signal?: AbortSignal;
    milliseconds?: number;
    version?: '0.3';
    connection?: Connection;
  }
  const connection = (): Connection => ({
    name: 'peer',
    hosts: ['api.example.com:443'],
    namespaces: ['team-a'],
    credentialFile: join(folder, 'token'),
  });
  const fails = (code: ErrorCode, work: Promise<unknown>, words: RegExp): Promise<void> =>
    assert.rejects(work, (error) => {
      assert.ok(isTemperError(error, code), String(error));
      assert.match(error.message, words);
      assert.doesNotMatch(error.message, new RegExp(SECRET));
      return true;
    });

  it('the message and its data are sent once, and the task is read until it ends', async () => {
    let reads = 0;
    answer = answering((rpc) => {
      if (rpc.method === 'SendMessage') return { task: aTask('SUBMITTED') };
      reads += 1;
      return reads < 2 ? aTask('WORKING') : aTask('COMPLETED', { artifacts: [ARTIFACT] });
    });
    const output = await call({ message: 'How many?', context: 'c-1', unit: 'books' });
    assert.deepEqual(output, {
      state: 'completed',
      text: 'Twelve.\n\n[file: plot.png]',
      data: [{ count: 12 }],
      context: 'c-1',
      task: 't-1',
    });
    assert.deepEqual(
      asked.map(({ method }) => method),
      ['SendMessage', 'GetTask', 'GetTask'],
    );
    const sent = asked[0]?.params.message;
    assert.deepEqual(
      [sent?.contextId, sent?.parts.map(({ text: words, data }) => words ?? data)],
      ['c-1', ['How many?', { unit: 'books' }]],
    );
    const first = sent?.messageId;
    await call({ message: 'How many?' });
    const repeated = asked.filter(({ method }) => method === 'SendMessage').at(-1);
    assert.equal(repeated?.params.message?.messageId, first, 'a repeated call is the same message');
  });

  it('an agent that answers with a message, or asks back, gives what it says and where to go on', async () => {
    answer = answering(() => ({
      message: { messageId: 'm', role: 'ROLE_AGENT', contextId: 'c-2', parts: [{ text: 'Hello.' }] },
    }));
    assert.deepEqual(await call({ message: 'Hi.' }), { state: 'completed', text: 'Hello.', context: 'c-2' });
    const question = { messageId: 'q', role: 'ROLE_AGENT', parts: [{ text: 'Which year?' }] };
    answer = answering(({ params }) => ({
      task:
        params.message?.taskId === 't-1'
          ? aTask('COMPLETED', { artifacts: [{ artifactId: 'a', parts: [{ text: 'Seven.' }] }] })
          : { ...aTask('INPUT_REQUIRED'), status: { state: 'TASK_STATE_INPUT_REQUIRED', message: question } },
    }));
    const asking = await call({ message: 'How many?' });
    assert.deepEqual(asking, { state: 'input-required', text: 'Which year?', context: 'c-1', task: 't-1' });
    const next = (await call({ message: '2025', context: 'c-1', task: 't-1' })) as JsonObject;
    assert.deepEqual([next['state'], next['text']], ['completed', 'Seven.']);
  });

  it('a task that takes longer than the call is given as it is, and read again without a message', async () => {
    answer = answering(({ method }) => (method === 'SendMessage' ? { task: aTask('WORKING') } : aTask('WORKING')));
    const left = await call({ message: 'Take your time.' }, { milliseconds: 3_000 });
    assert.deepEqual(left, { state: 'working', text: '', context: 'c-1', task: 't-1' });
    answer = answering(() => aTask('COMPLETED', { artifacts: [ARTIFACT] }));
    assert.equal(((await call({ task: 't-1' })) as JsonObject)['state'], 'completed');
    assert.deepEqual([asked.at(-1)?.method, asked.at(-1)?.params.id], ['GetTask', 't-1']);
  });

  it('a call that is cancelled cancels the task', async () => {
    answer = answering(({ method }) => (method === 'SendMessage' ? { task: aTask('WORKING') } : aTask('WORKING')));
    const stop = new AbortController();
    const calling = call({ message: 'Go.' }, { signal: stop.signal });
    await poll('a read of the task', () => asked.some(({ method }) => method === 'GetTask'));
    stop.abort(new Error('stopped'));
    await assert.rejects(calling);
    assert.deepEqual([asked.at(-1)?.method, asked.at(-1)?.params.id], ['CancelTask', 't-1']);
  });

  it('agents of version 0.3 are asked with its methods and forms', async () => {
    const status = { state: 'completed' };
    const artifacts = [{ artifactId: 'a', parts: [{ kind: 'text', text: 'Old.' }] }];
    answer = answering(() => ({ kind: 'task', id: 't-9', contextId: 'c-9', status, artifacts }));
    const output = await call({ message: 'Hi.' }, { version: '0.3' });
    assert.deepEqual(output, { state: 'completed', text: 'Old.', context: 'c-9', task: 't-9' });
    assert.equal(asked[0]?.method, 'message/send');
  });

  it('tasks that fail, errors and answers of other forms are failures of the tool with what the agent says', async () => {
    const said = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'No books\u001b[2J.' }] };
    const failed = { ...aTask('REJECTED'), status: { state: 'TASK_STATE_REJECTED', message: said } };
    const rpcError = (message: string) => JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32001, message } });
    const cases: readonly (readonly [Json, ErrorCode, RegExp])[] = [
      [{ task: failed }, 'TEMPER_TOOL_FAILED', /ended the task as rejected: No books\S*\[2J\.$/],
      [rpcError('Task not found'), 'TEMPER_TOOL_FAILED', /answered with an error: .*not found/i],
      ['{"jsonrpc":"2.0","id":99,"result":{}}', 'TEMPER_TOOL_FAILED', /ID mismatch/],
      ['null', 'TEMPER_TOOL_FAILED', /answered with an error/],
      ['{}', 'TEMPER_TOOL_FAILED', /answered with an error/],
      ['no json', 'TEMPER_TOOL_OUTPUT_INVALID', /cannot be parsed/],
      [`[${'0,'.repeat(100_001)}0]`, 'TEMPER_TOOL_OUTPUT_INVALID', /more values/],
      ['['.repeat(2_000), 'TEMPER_TOOL_OUTPUT_INVALID', /more depth/],
      [`"${'x'.repeat(1_100_000)}"`, 'TEMPER_TOOL_OUTPUT_INVALID', /more than 1048576 bytes/],
    ];
    for (const [result, code, words] of cases) {
      answer = answering(() => result);
      await fails(code, call({ message: 'Hi.' }), words);
    }
    answer = (_request, response) => void response.writeHead(500).end('broken');
    await fails('TEMPER_TOOL_FAILED', call({ message: 'Hi.' }), /HTTP 500: broken/);
    answer = (_request, response) => void response.writeHead(302, { location: 'https://other.example.com/' }).end();
    await fails('TEMPER_FETCH_DENIED', call({ message: 'Hi.' }), /redirects/);
    for (const input of [{}, { message: 7 }, { message: 'x', task: {} }])
      await fails('TEMPER_TOOL_INPUT_INVALID', call(input), /message|task/);
  });

  it('the credential of a connection is sent, and an answer that contains it reaches no agent', async () => {
    const headers: unknown[] = [];
    answer = answering((_rpc, request) => {
      headers.push(request.headers.authorization);
      return { task: aTask('COMPLETED', { artifacts: [{ artifactId: 'a', parts: [{ text: 'Fine.' }] }] }) };
    });
    await call({ message: 'Hi.' }, { connection: connection() });
    assert.deepEqual(headers, [`Bearer ${SECRET}`]);
    const escaped = SECRET.replace('h', '\\u0068');
    const body = `{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"${escaped}"}]}}}`;
    answer = answering(() => body);
    const refused = call({ message: 'Hi.' }, { connection: connection() });
    await fails('TEMPER_TOOL_OUTPUT_INVALID', refused, /credential of its connection/);
    answer = (_request, response) => void response.writeHead(401).end();
    const unauthorized = call({ message: 'Hi.' }, { connection: connection() });
    await fails('TEMPER_CONNECTION_UNAUTHORIZED', unauthorized, /connection "peer"/);
    await fails('TEMPER_TOOL_FAILED', call({ message: 'Hi.' }), /spec\.backend\.a2a\.connection/);
  });
});
