import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { Connection } from '../../connections/connection.ts';
import { systemClock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import { reachableHosts } from './egress-hosts.ts';
import { callHttpTool, type HttpTool } from './http-tool.ts';
import { OAuthTokens } from './oauth-tokens.ts';
import { DELIVERY, Tunnels } from './tunnels.testing.ts';

const SECRET = 'hunter2-hunter2';

describe('a tool with an HTTP backend', () => {
  let tunnels: Tunnels;
  let folder = '';
  let answer: RequestListener;
  const signed: object[] = [];

  before(async () => {
    tunnels = await Tunnels.open((request, response) => answer(request, response));
    folder = await mkdtemp(join(tmpdir(), 'temper-http-tool-'));
    await writeFile(join(folder, 'token'), `${SECRET}\n`);
  });
  after(async () => {
    await tunnels[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  const json =
    (body: unknown, type = 'application/json', status = 200): RequestListener =>
    (_request, response) =>
      void response
        .writeHead(status, { 'content-type': type })
        .end(typeof body === 'string' ? body : JSON.stringify(body));
  const described = async (request: IncomingMessage): Promise<string> => {
    const { authorization = 'none', 'x-api-key': key = 'none' } = request.headers;
    const hidden = [authorization, key].map((value) => (String(value).includes(SECRET) ? 'sent' : value));
    return JSON.stringify({ method: request.method, url: request.url, hidden, body: await text(request) });
  };
  const echo: RequestListener = (request, response) => {
    const send = (body: string) => response.setHeader('content-type', 'application/json').end(body);
    void described(request).then(send);
  };
  const connection = (change: Partial<Connection> = {}): Connection => ({
    name: 'search',
    hosts: ['api.example.com:443'],
    namespaces: ['team-a'],
    credentialFile: join(folder, 'token'),
    ...change,
  });
  const call = (
    input: JsonObject,
    {
      url: address = 'https://api.example.com/v1/find',
      milliseconds = 20_000,
      ...change
    }: Partial<Omit<HttpTool, 'url'>> & {
      url?: string;
      milliseconds?: number;
    } = {},
  ) => {
    const url = new URL(address);
    const deliveryTokens = {
      sign: (claims: object) => {
        signed.push(claims);
        return 'd1.x.y';
      },
    };
    const hosts = reachableHosts(url, change.connection, { files: tunnels.files, deliveryTokens });
    const tool: HttpTool = { name: 'find', backend: { url: address }, url, connection: undefined, hosts, ...change };
    const op = { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + milliseconds, key: 'test' };
    const tokens = new OAuthTokens({ files: tunnels.files, deliveryTokens, clock: systemClock });
    return callHttpTool(tool, input, DELIVERY, { clock: systemClock, tokens }, op);
  };
  const failsWith = (code: ErrorCode, work: Promise<unknown>, words: RegExp): Promise<void> =>
    assert.rejects(work, (error) => {
      assert.ok(isTemperError(error, code), String(error));
      assert.match(error.message, words);
      assert.doesNotMatch(error.message, new RegExp(SECRET));
      return true;
    });

  it('the arguments are a JSON body, or the parameters of a GET', async () => {
    answer = echo;
    const input = { text: 'a b&c', list: [1, { x: 2 }], nothing: null, flag: true };
    assert.deepEqual(await call(input), {
      method: 'POST',
      url: '/v1/find',
      hidden: ['none', 'none'],
      body: JSON.stringify(input),
    });
    const url = 'https://api.example.com/v1/find?fixed=1';
    const sent = await call(input, { url, backend: { url, method: 'GET' } });
    assert.deepEqual(sent, {
      method: 'GET',
      url: '/v1/find?fixed=1&text=a+b%26c&list=1&list=%7B%22x%22%3A2%7D&flag=true',
      hidden: ['none', 'none'],
      body: '',
    });
  });

  it('each connection has a token for one host, which names what permits it', async () => {
    answer = echo;
    signed.length = 0;
    tunnels.opened.length = 0;
    await call({});
    await call({}, { connection: connection() });
    const target = { host: 'api.example.com', port: 443 };
    assert.deepEqual(
      signed.map((claims) => (claims as { connects?: object }).connects),
      [
        { ...target, by: 'Policy' },
        { ...target, by: 'Connection' },
      ],
    );
    const [{ url, headers } = { url: '', headers: {} as Record<string, string> }] = tunnels.opened;
    assert.deepEqual([url, headers['proxy-authorization']], ['api.example.com:443', 'Bearer gateway-token']);
  });

  it('the credential of the connection is added as a bearer token or in its header', async () => {
    answer = echo;
    const hiddenOf = async (change: Partial<Connection>) =>
      ((await call({}, { connection: connection(change) })) as { hidden: string[] }).hidden;
    assert.deepEqual(await hiddenOf({}), ['sent', 'none']);
    assert.deepEqual(await hiddenOf({ header: 'X-Api-Key' }), ['none', 'sent']);
  });

  it('an answer that contains the credential reaches no agent, in whichever form it has it', async () => {
    const base64 = Buffer.from(SECRET).toString('base64');
    const escaped = `{"a":"\\u0068${SECRET.slice(1)}"}`;
    for (const body of [{ a: [`Bearer ${SECRET}`] }, { [SECRET]: 1 }, { a: base64 }, escaped]) {
      answer = json(body);
      await failsWith('TEMPER_TOOL_OUTPUT_INVALID', call({}, { connection: connection() }), /contains the credential/);
    }
    answer = json({ message: SECRET }, 'application/json', 500);
    await failsWith('TEMPER_TOOL_FAILED', call({}, { connection: connection() }), /HTTP 500: \[it contains/);
  });

  it('a redirect is refused, and the next host gets nothing', async () => {
    let requests = 0;
    answer = (_request, response) => {
      requests += 1;
      response.writeHead(307, { location: 'https://api.example.com/other' }).end();
    };
    await failsWith('TEMPER_FETCH_DENIED', call({}, { connection: connection() }), /redirects, which is refused/);
    assert.equal(requests, 1);
  });

  it('an error of the endpoint is the failure of the tool, and one about the credential names the connection', async () => {
    answer = json({ message: 'no\u001b[31m such page' }, 'application/json', 404);
    await failsWith('TEMPER_TOOL_FAILED', call({}), /"find" answered HTTP 404: .*no.*such page/);
    answer = json('', 'application/json', 401);
    const refused = call({}, { connection: connection() });
    await failsWith('TEMPER_CONNECTION_UNAUTHORIZED', refused, /connection "search": the server answered 401/);
  });

  it('an answer is JSON within its limits, or empty', async () => {
    answer = (_request, response) => void response.writeHead(204).end();
    assert.equal(await call({}), null);
    answer = json({ a: 1 }, 'application/problem+json; charset=utf-8');
    assert.deepEqual(await call({}), { a: 1 });
    answer = json('<html>', 'text/html');
    await failsWith('TEMPER_TOOL_OUTPUT_INVALID', call({}), /it is text\/html/);
    answer = json('{"a":', 'application/json');
    await failsWith('TEMPER_TOOL_OUTPUT_INVALID', call({}), /cannot be parsed/);
    answer = json(`${'['.repeat(100)}${']'.repeat(100)}`);
    await failsWith('TEMPER_TOOL_OUTPUT_INVALID', call({}), /more depth than the limit of 64/);
    answer = json(`[${'1,'.repeat(100_001)}1]`);
    await failsWith('TEMPER_TOOL_OUTPUT_INVALID', call({}), /more values than the limit/);
    answer = json(`"${'a'.repeat(1_100_000)}"`);
    await failsWith('TEMPER_FETCH_FAILED', call({}), /larger than 1048576 bytes/);
  });

  it('an endpoint that never ends its answer is left at the deadline of the call', async () => {
    answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).write('[');
    };
    await failsWith('TEMPER_FETCH_FAILED', call({}, { milliseconds: 1_000 }), /no complete response in time/);
  });

  it('arguments that make too long a URL are refused before anything is sent', async () => {
    const url = 'https://api.example.com/v1/find';
    const long = call({ text: 'a'.repeat(9_000) }, { backend: { url, method: 'GET' } });
    await failsWith('TEMPER_TOOL_INPUT_INVALID', long, /more than 8192 characters/);
  });

  it('an argument that repeats a parameter of the URL is refused before anything is sent', async () => {
    let requests = 0;
    answer = (_request, response) => {
      requests += 1;
      response.writeHead(204).end();
    };
    const url = 'https://api.example.com/v1/rows?scope=public&filter[owner]=me';
    const rows = (input: JsonObject) => call(input, { url, backend: { url, method: 'GET' } });
    for (const name of ['scope', 'Scope', 'scope[]', 'filter', 'filter[owner]']) {
      const refused = rows({ text: 'x', [name]: 'private' });
      await failsWith(
        'TEMPER_TOOL_INPUT_INVALID',
        refused,
        /argument "[^"]+" of "find" may not repeat the parameter "/,
      );
    }
    const next = /"scope", which the manifest fixes in spec\.backend\.http\.url; call the tool without this argument$/;
    await failsWith('TEMPER_TOOL_INPUT_INVALID', rows({ scope: ['public', 'private'] }), next);
    assert.equal(requests, 0);
    assert.equal(await rows({ scope: null, scopes: 'a', '[scope]': 1 }), null);
    assert.equal(requests, 1);
  });

  it('a connection without a usable credential sends nothing', async () => {
    const missing = connection({ credentialFile: join(folder, 'none') });
    await failsWith('TEMPER_CONNECTION_UNAUTHORIZED', call({}, { connection: missing }), /"search" has no credential/);
    await writeFile(join(folder, 'short'), 'abc');
    const short = connection({ credentialFile: join(folder, 'short') });
    await failsWith('TEMPER_CONNECTION_UNAUTHORIZED', call({}, { connection: short }), /fewer than 8 characters/);
  });
});
