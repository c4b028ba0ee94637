import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import type { Target } from '../../net/targets.ts';
import { plainTarget, tunnelTarget } from './target.ts';

/** `src/net/targets.test.ts` has the forms of hosts and addresses; these are those of a request line. */
const NO_TUNNEL = [
  '',
  'api.example.com',
  'api.example.com:',
  'api.example.com:0',
  'api.example.com:0443',
  'api.example.com:65536',
  'api.example.com:443443',
  'api.example.com:+443',
  'api.example.com:443 ',
  ' api.example.com:443',
  'api.example.com:443/',
  'api.example.com:443?',
  'api.example.com:443#',
  'api.example.com:443@evil.test:443',
  'user@api.example.com:443',
  'api.example.com\\@evil.test:443',
  'api.example.com.:443',
  'api.example.com%00.evil.test:443',
  'https://api.example.com:443',
  '//api.example.com:443',
  '/api.example.com:443',
  '*:443',
  '*.example.com:443',
  '[example.com]:443',
  '[::1]:443',
  '[::ffff:127.0.0.1]:443',
  '[64:ff9b::7f00:1]:443',
  '[fe80::1%25eth0]:443',
  '::1:443',
  'localhost:443',
  'metadata.google.internal:80',
  '169.254.169.254:80',
  '10.0.0.1:6443',
  '2130706433:443',
  '0x7f.1:443',
  '127.1:443',
  'kubernetes.default.svc:443',
  'аpi.example.com:443',
  'api。example。com:443',
  'api.example.com\r\nHost: evil.test:443',
  'api.example.com\0:443',
  `${'a'.repeat(254)}:443`,
];

const NO_PLAIN_REQUEST = [
  '/',
  '*',
  '/path?query',
  'api.example.com',
  'api.example.com:80',
  'https://api.example.com/',
  'ftp://api.example.com/',
  'ws://api.example.com/',
  'http:api.example.com',
  'http:///api.example.com/',
  'http://',
  'http://user@api.example.com/',
  'http://api.example.com@evil.test/',
  'http://api.example.com#@evil.test/',
  'http://api.example.com/path#fragment',
  'http://api.example.com\\@evil.test/',
  'http://api.example.com:0/',
  'http://api.example.com:65536/',
  'http://api.example.com./',
  'http://localhost/',
  'http://127.0.0.1/',
  'http://[::1]/',
  'http://169.254.169.254/latest/meta-data/',
  'http://api.example.com/a b',
  'http://api.exa\tmple.com/',
];

function isDenied(work: () => Target): void {
  assert.throws(work, (error) => isTemperError(error, 'TEMPER_FETCH_DENIED'));
}

describe('the target of a request to the proxy', () => {
  for (const authority of NO_TUNNEL) {
    it(`CONNECT to ${JSON.stringify(authority.slice(0, 60))} is refused`, () =>
      isDenied(() => tunnelTarget(authority)));
  }
  for (const url of NO_PLAIN_REQUEST) {
    it(`a request for ${JSON.stringify(url)} is refused`, () => isDenied(() => plainTarget(url)));
  }

  it('CONNECT may name a host in any case, a punycode name, a public address and any port', () => {
    const of = ({ host, port, isIpAddress }: Target) => [host, port, isIpAddress];
    assert.deepEqual(of(tunnelTarget('API.Example.com:443')), ['api.example.com', 443, false]);
    assert.deepEqual(of(tunnelTarget('api.example.com:8443')), ['api.example.com', 8_443, false]);
    assert.deepEqual(of(tunnelTarget('xn--bcher-kva.example:443')), ['xn--bcher-kva.example', 443, false]);
    assert.deepEqual(of(tunnelTarget('93.184.215.14:443')), ['93.184.215.14', 443, true]);
    assert.deepEqual(of(tunnelTarget('[2606:4700::1111]:443')), ['2606:4700::1111', 443, true]);
  });

  it('a request may name a host with and without a port', () => {
    const of = ({ host, port, url }: Target) => [host, port, url.pathname + url.search];
    assert.deepEqual(of(plainTarget('http://API.example.com/a?b=c:1')), ['api.example.com', 80, '/a?b=c:1']);
    assert.deepEqual(of(plainTarget('http://api.example.com:8080')), ['api.example.com', 8_080, '/']);
    assert.deepEqual(of(plainTarget('HTTP://api.example.com:80/a:b')), ['api.example.com', 80, '/a:b']);
    assert.deepEqual(of(plainTarget('http://[2606:4700::1111]:8080/')), ['2606:4700::1111', 8_080, '/']);
  });
});
