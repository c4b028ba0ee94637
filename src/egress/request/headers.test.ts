import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { headersForClient, headersForTarget } from './headers.ts';
import { plainTarget } from './target.ts';

const TARGET = plainTarget('http://api.example.com/');
/** Header lines as Node has them in `rawHeaders`. */
function raw(...lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    const colon = line.indexOf(': ');
    return [line.slice(0, colon), line.slice(colon + 2)];
  });
}

const HOST = 'Host: api.example.com';
const ADDED = ['via: 1.1 temper-egress', 'connection: close'];

describe('the headers of a request to the proxy', () => {
  it('the target gets the headers of the request, with repeated ones, and none of the connection to the proxy', () => {
    const own = ['Accept: a', 'X-Custom: 1', 'x-custom: 2', 'Authorization: Bearer for-the-target'];
    const proxy = ['Proxy-Authorization: Bearer x', 'temper-delivery-token: d1.x.y', 'Proxy-Connection: close'];
    const hop = ['Connection: keep-alive', 'Keep-Alive: timeout=5', 'TE: trailers', 'Expect: 100-continue'];
    assert.deepEqual(
      headersForTarget(raw(HOST, ...own, ...proxy, ...hop), TARGET),
      raw('host: api.example.com', ...own, ...ADDED),
    );
  });

  it('the length of a body stays as the client sends it: a number of bytes, or chunks', () => {
    for (const [line, sent] of [
      ['Content-Length: 5', 'Content-Length: 5'],
      ['Transfer-Encoding: Chunked', 'transfer-encoding: chunked'],
    ] as const) {
      assert.deepEqual(headersForTarget(raw(HOST, line), TARGET), raw('host: api.example.com', sent, ...ADDED));
    }
  });

  it('the header Host may have the default port and any case', () => {
    for (const host of ['Host: API.example.com', 'host: api.example.com:80']) {
      assert.deepEqual(headersForTarget(raw(host), TARGET), raw('host: api.example.com', ...ADDED));
    }
    const other = plainTarget('http://api.example.com:8080/');
    assert.deepEqual(
      headersForTarget(raw('host: api.example.com:8080'), other),
      raw('host: api.example.com:8080', ...ADDED),
    );
    assert.throws(() => headersForTarget(raw(HOST), other));
  });

  const refused: [what: string, lines: string[]][] = [
    ['no header Host', []],
    ['another header Host', ['Host: evil.test']],
    ['two headers Host', [HOST, 'host: evil.test']],
    ['two equal headers Host', [HOST, HOST]],
    ['a header Host with another port', ['Host: api.example.com:8080']],
    ['a header Host with a user name', ['Host: evil@api.example.com']],
    ['an upgrade to WebSocket', [HOST, 'Upgrade: websocket', 'Connection: Upgrade']],
    ['an upgrade without a header Connection', [HOST, 'upgrade: h2c']],
    ['a header Connection that removes another header', [HOST, 'Connection: close, authorization']],
    ['a transfer coding that is not chunked', [HOST, 'Transfer-Encoding: gzip, chunked']],
    ['two transfer codings', [HOST, 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked']],
    ['too many headers', [HOST, ...Array.from({ length: 100 }, (_, index) => `x-${index}: 1`)]],
  ];
  for (const [what, lines] of refused) {
    it(`a request with ${what} is refused`, () =>
      assert.throws(
        () => headersForTarget(raw(...lines), TARGET),
        (error) => isTemperError(error, 'TEMPER_FETCH_DENIED'),
      ));
  }

  it('the client gets the headers of the response, and none of the connection to the target', () => {
    const own = ['Content-Type: text/plain', 'Set-Cookie: a=1', 'Set-Cookie: b=2'];
    const hop = ['Connection: close, X-Hop', 'X-Hop: 1', 'Transfer-Encoding: chunked', 'Proxy-Authenticate: Basic'];
    assert.deepEqual(headersForClient(raw(...own, ...hop, 'Trailer: x')), raw(...own, 'via: 1.1 temper-egress'));
  });
});
