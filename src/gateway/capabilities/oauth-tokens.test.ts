import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, beforeEach, describe, it } from 'node:test';
import { callOptions } from '../../../test/support/call-options.ts';
import type { OAuthConnection } from '../../connections/connection.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError } from '../../lib/errors.ts';
import { reachableHosts } from './egress-hosts.ts';
import { callHttpTool } from './http-tool.ts';
import { OAuthTokens } from './oauth-tokens.ts';
import { DELIVERY, Tunnels } from './tunnels.testing.ts';

const SECRET = 'hunter2 hunter2'.replace(' ', '+');
const URL_OF_TOOL = 'https://api.example.com/v1/find';

describe('a connection with OAuth client credentials', () => {
  let tunnels: Tunnels;
  let folder = '';
  let issued: number;
  let asked: { authorization: string; form: Record<string, string> }[];
  let tokenAnswer: (response: ServerResponse) => void;
  let isAccepted: (token: string) => boolean;
  let toolAnswer: (token: string) => object;
  let signed: (object | undefined)[];
  let tokens: OAuthTokens;
  let late: number;

  const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + late };
  const sign = (claims: { connects?: object }): string => {
    signed.push(claims.connects);
    return 'd1.x.y';
  };
  const answerToken = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const form = Object.fromEntries(new URLSearchParams(await text(request)));
    asked.push({ authorization: request.headers.authorization ?? '', form });
    tokenAnswer(response);
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-oauth-'));
    await writeFile(join(folder, 'secret'), `${SECRET}\n`);
    tunnels = await Tunnels.open((request, response) => {
      if (request.url === '/token') return void answerToken(request, response);
      const token = (request.headers.authorization ?? '').replace('Bearer ', '');
      if (!isAccepted(token)) return void response.writeHead(401).end();
      response.setHeader('content-type', 'application/json').end(JSON.stringify(toolAnswer(token)));
    });
  });
  after(async () => {
    await tunnels[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });
  beforeEach(() => {
    issued = 0;
    asked = [];
    signed = [];
    late = 0;
    isAccepted = () => true;
    toolAnswer = (token) => ({ number: token.slice('access-token-'.length) });
    tokenAnswer = (response) => {
      issued += 1;
      const body = { access_token: `access-token-${issued}`, token_type: 'Bearer', expires_in: 3_600 };
      response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
    };
    tokens = new OAuthTokens({ files: tunnels.files, deliveryTokens: { sign }, clock });
  });

  const connection = (oauth: Partial<OAuthConnection['oauth']> = {}): OAuthConnection => ({
    name: 'search',
    hosts: ['api.example.com:443'],
    namespaces: ['team-a'],
    credentialFile: join(folder, 'secret'),
    oauth: { tokenUrl: 'https://other.example.com/token', clientId: 'temper agents', ...oauth },
  });
  const call = (oauth?: Partial<OAuthConnection['oauth']>) => {
    const url = new URL(URL_OF_TOOL);
    const client = connection(oauth);
    const hosts = reachableHosts(url, client, { files: tunnels.files, deliveryTokens: { sign } });
    const tool = { name: 'find', backend: { url: URL_OF_TOOL }, url, connection: client, hosts };
    return callHttpTool(tool, {}, DELIVERY, { clock, tokens }, callOptions(10_000_000));
  };
  const failsWith = (code: ErrorCode, work: Promise<unknown>, words: RegExp): Promise<void> =>
    assert.rejects(work, (error) => {
      assert.ok(isTemperError(error, code), String(error));
      assert.match(error.message, words);
      assert.doesNotMatch(error.message, /hunter2|access-token/);
      return true;
    });

  it('a gateway asks the token endpoint once, through the egress proxy with a token for its host, and sends the access token', async () => {
    const oauth = { scopes: ['find', 'read'], resource: URL_OF_TOOL };
    assert.deepEqual(await call(oauth), { number: '1' });
    assert.deepEqual(await call(oauth), { number: '1' });
    const basic = Buffer.from('temper+agents:hunter2%2Bhunter2').toString('base64');
    const form = { grant_type: 'client_credentials', scope: 'find read', resource: URL_OF_TOOL };
    assert.deepEqual(asked, [{ authorization: `Basic ${basic}`, form }]);
    const [first] = signed;
    assert.deepEqual(first, { host: 'other.example.com', port: 443, by: 'Connection' });
  });

  it('the client secret is in the body when the server wants it so', async () => {
    await call({ authentication: 'Post' });
    const form = { grant_type: 'client_credentials', client_id: 'temper agents', client_secret: SECRET };
    assert.deepEqual(asked, [{ authorization: '', form }]);
  });

  it('a token is asked for again before it expires', async () => {
    await call();
    late = 3_500_000;
    assert.deepEqual(await call(), { number: '1' });
    late = 3_571_000;
    assert.deepEqual(await call(), { number: '2' });
  });

  it('a token that the endpoint refuses is renewed once, and a new one that is refused is an error', async () => {
    await call();
    isAccepted = (token) => token !== 'access-token-1';
    assert.deepEqual(await call(), { number: '2' });
    isAccepted = () => false;
    await failsWith('TEMPER_CONNECTION_UNAUTHORIZED', call(), /"search": the server answered 401/);
    await failsWith('TEMPER_CONNECTION_UNAUTHORIZED', call(), /"search": the server answered 401/);
    assert.equal(issued, 4);
  });

  it('concurrent calls of an agent share one request for a token', async () => {
    await Promise.all([call(), call(), call()]);
    assert.equal(issued, 1);
  });

  it('an answer with the access token reaches no agent', async () => {
    toolAnswer = (token) => ({ echo: Buffer.from(token).toString('base64') });
    await failsWith('TEMPER_TOOL_OUTPUT_INVALID', call(), /contains the credential/);
  });

  for (const [what, status, body, code, words] of [
    [
      'refuses the client',
      401,
      { error: 'invalid_client', error_description: SECRET },
      'TEMPER_CONNECTION_UNAUTHORIZED',
      /401 \(invalid_client\)/,
    ],
    ['repeats the secret', 400, { error: SECRET }, 'TEMPER_CONNECTION_UNAUTHORIZED', /answered 400; check/],
    ['fails', 503, {}, 'TEMPER_CONNECTION_FAILED', /answered 503/],
    ['gives no token', 200, { token_type: 'bearer' }, 'TEMPER_CONNECTION_FAILED', /no bearer token/],
    [
      'gives a token of another type',
      200,
      { access_token: 'access-token-1', token_type: 'mac' },
      'TEMPER_CONNECTION_FAILED',
      /no bearer token/,
    ],
    [
      'gives a token that is no header',
      200,
      { access_token: 'a b\r\nx: y zzzz', token_type: 'bearer' },
      'TEMPER_CONNECTION_FAILED',
      /no bearer token/,
    ],
    ['redirects', 307, {}, 'TEMPER_FETCH_DENIED', /redirects/],
  ] as [string, number, object, ErrorCode, RegExp][]) {
    it(`a token endpoint that ${what} is an error without the secret`, async () => {
      tokenAnswer = (response) => {
        const headers = { 'content-type': 'application/json', location: 'https://example.org/' };
        response.writeHead(status, headers).end(JSON.stringify(body));
      };
      await failsWith(code, call(), words);
    });
  }
});
