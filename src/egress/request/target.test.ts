import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import type { Target } from '../../net/targets.ts';
import { NO_PLAIN_REQUEST, NO_TUNNEL } from './target.testing.ts';
import { plainTarget, tunnelTarget } from './target.ts';

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
