import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import type { Json } from '../../lib/json.ts';
import type { ForwardedApi, HostCalls } from '../../sandbox/port.ts';
import { anOp, denyingHost } from '../forge.testing.ts';
import { fixtureHost } from './fixture-host.ts';

const clock = { ...systemClock, now: () => new Date(0) };

function answer(output: Json, api: ForwardedApi = 'fetch', input: Json = { url: 'https://a.test' }): Promise<Json> {
  const tool = api === 'fetch' ? 'fetch' : 'fs_read_file';
  const host: HostCalls = fixtureHost({ input: {}, fixtures: [{ tool, output }] }, denyingHost, clock);
  return host.call(api, input, anOp());
}

describe('the host of a test', () => {
  it('a fixture answers fetch with the members and headers of a real response', async () => {
    const { headers, ...rest } = (await answer({ body: { a: 1 } })) as Record<string, Json>;
    assert.deepEqual(rest, { status: 200, url: 'https://a.test/', redirected: false, body: '{"a":1}' });
    assert.deepEqual(Object.keys(headers as object), ['cache-control', 'content-type', 'date', 'etag']);
    const { 'content-type': kind, date } = headers as Record<string, string>;
    assert.deepEqual([kind, date], ['application/json; charset=utf-8', 'Thu, 01 Jan 1970 00:00:00 GMT']);
  });

  it('headers of a fixture replace the usual ones, by lower-case name and as text', async () => {
    const given = { status: 404, body: '<p>', headers: { 'Content-Type': 'text/x', 'X-RateLimit-Left': 7 } };
    const { status, headers } = (await answer(given)) as Record<string, Json>;
    assert.equal(status, 404);
    assert.deepEqual(
      [(headers as Record<string, string>)['content-type'], (headers as Record<string, string>)['x-ratelimit-left']],
      ['text/x', '7'],
    );
  });

  it('a response has no member and no type that a real one lacks', async () => {
    const odd = { status: 'ok', redirected: 'no', isTest: true, body: null, headers: ['x'], url: 7 };
    const response = (await answer(odd)) as Record<string, Json>;
    assert.deepEqual(Object.keys(response).toSorted(), ['body', 'headers', 'redirected', 'status', 'url']);
    const { status, redirected, url } = response;
    assert.deepEqual([status, redirected, url], [200, false, 'https://a.test/']);
    assert.equal(typeof response['body'], 'string');
  });

  it('a fixture answers fs.readFile with text, as a file does', async () => {
    assert.equal(await answer({ a: 1 }, 'fs.readFile', { path: 'x' }), '{"a":1}');
    assert.equal(await answer('text', 'fs.readFile', { path: 'x' }), 'text');
  });
});
