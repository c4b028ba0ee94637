import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../../test/support/stubs.ts';
import { readBody } from '../../../lib/async/read-body.ts';
import { systemClock } from '../../../lib/clock.ts';
import { isTemperError } from '../../../lib/errors.ts';
import type { Json } from '../../../lib/json.ts';
import { httpSearch } from './http-search.ts';
import type { SearchType } from './provider.ts';

const KEY = 'key-0123456789';

describe('web_search over HTTP', () => {
  let server: Server;
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  let seen: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[] = [];
  before(async () => {
    const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const body = await readBody(request, 10_000, () => new Error('too large'));
      seen.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body });
      answer(request, response);
    };
    server = createServer((request, response) => {
      void receive(request, response);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => {
    server.close();
    server.closeAllConnections();
  });

  const json =
    (body: Json, status = 200) =>
    (_: IncomingMessage, response: ServerResponse) =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  const origin = (): string => `http://localhost:${(server.address() as AddressInfo).port}`;
  const search = (type: SearchType, { key = KEY, query = 'rate of EUR & USD', count = 2 } = {}) => {
    const provider = { type, url: `${origin()}/search`, isPrivate: false };
    // The names of this machine resolve without a name server.
    const run = httpSearch({ provider, key: async () => (key === '' ? undefined : key), clock: systemClock });
    return run({ query, count }, { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 30_000, key: 'test' });
  };
  const failed = (work: Promise<unknown>, words: RegExp): Promise<void> =>
    assert.rejects(work, (error) => {
      assert.ok(isTemperError(error, 'TEMPER_SEARCH_FAILED'), String(error));
      assert.match(error.message, words);
      assert.ok(!error.message.includes(KEY), error.message);
      return true;
    });
  const RESULT = { title: 'EUR', url: 'https://example.com/eur' };

  it('each type of service gets the query and the key as it documents them', async () => {
    const results = [{ ...RESULT, content: 'one', description: 'one' }];
    for (const type of ['SearXNG', 'Brave', 'Tavily'] as const) {
      seen = [];
      answer = json(type === 'Brave' ? { web: { results } } : { results });
      assert.deepEqual(await search(type), [{ ...RESULT, snippet: 'one' }], type);
      const [{ method, url, headers, body } = assert.fail()] = seen;
      const asked = new URL(url, origin()).searchParams;
      if (type === 'SearXNG') {
        assert.deepEqual([method, asked.get('q'), asked.get('format')], ['GET', 'rate of EUR & USD', 'json']);
        assert.equal(headers.authorization, `Bearer ${KEY}`);
      } else if (type === 'Brave') {
        assert.deepEqual([method, asked.get('q'), asked.get('count')], ['GET', 'rate of EUR & USD', '2']);
        assert.equal(headers['x-subscription-token'], KEY);
      } else {
        assert.equal(method, 'POST');
        assert.deepEqual(JSON.parse(body), { query: 'rate of EUR & USD', max_results: 2 });
        assert.equal(headers.authorization, `Bearer ${KEY}`);
      }
    }
  });

  it('results are bounded, without tags, invisible characters and addresses that no agent could fetch', async () => {
    const hostile = [
      {
        title: '<b>T\u200b\u202eitle</b>',
        url: 'https://example.com/1',
        content: `<script>x</script>${'long '.repeat(2_000)}`,
      },
      { title: 7, url: 'javascript:alert(1)', content: 'no' },
      { title: 'no', url: 'https://user:pass@example.com/', content: 'no' },
      { title: 'no', url: '/relative', content: 'no' },
      'no',
      null,
      { title: null, url: 'http://example.com/2' },
      { title: 'beyond the number', url: 'https://example.com/3' },
    ];
    answer = json({ results: hostile });
    const [first = assert.fail(), second, ...rest] = await search('SearXNG');
    assert.equal(first.title, 'Title');
    assert.ok(first.snippet.length <= 1_000 && first.snippet.startsWith('xlong'), first.snippet.slice(0, 20));
    assert.deepEqual([second, rest], [{ title: '', url: 'http://example.com/2', snippet: '' }, []]);
    for (const body of [{}, { results: 'x' }, [], { web: [] }]) {
      answer = json(body);
      assert.deepEqual(await search('SearXNG'), []);
    }
  });

  it('an answer that is no result is a failure, which never has the key', async () => {
    answer = json({ error: KEY }, 401);
    await failed(search('Brave'), /status 401/);
    answer = (_, response) => response.end('<html>');
    await failed(search('Tavily'), /not JSON/);
    answer = (_, response) => response.writeHead(302, { location: 'https://evil.test/' }).end();
    await failed(search('Brave'), /evil\.test/);
    answer = (_, response) => response.writeHead(302, { location: `${origin()}/again` }).end();
    await failed(search('Brave'), /redirects/);
    answer = (_, response) => response.end('x'.repeat(1_100_000));
    await failed(search('SearXNG'), /larger/);
    answer = (request) => request.socket.destroy();
    await failed(search('SearXNG'), /no results/);
    await failed(search('Brave', { key: '' }), /its key is not set/);
  });
});
