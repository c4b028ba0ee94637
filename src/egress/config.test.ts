import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../lib/errors.ts';
import { egressConfig } from './config.ts';

const LEAST = {
  tls: { certificate: '/tls/tls.crt', key: '/tls/tls.key' },
  gateway: { endpoints: '/endpoints', tokenFile: '/token' },
};

describe('the configuration of the egress proxy', () => {
  it('the least configuration has the documented defaults', () => {
    const { isExcluded, ...rest } = egressConfig(LEAST);
    assert.deepEqual(rest, {
      ...LEAST,
      listen: { host: '::', port: 8_445 },
      health: { host: '::', port: 9_090 },
      logLevel: 'info',
      maxConnections: 2_500,
    });
    assert.equal(isExcluded('34.118.224.1'), false);
    assert.equal(egressConfig({ ...LEAST, excludedRanges: ['34.118.224.0/20'] }).isExcluded('34.118.224.1'), true);
  });

  it('an upstream proxy has a name and a port', () => {
    const of = (httpsProxy: string) => egressConfig({ ...LEAST, httpsProxy }).upstreamProxy;
    assert.deepEqual(of('http://Proxy.example:3128/'), { host: 'proxy.example', port: 3_128 });
    assert.deepEqual(of('http://10.0.0.9'), { host: '10.0.0.9', port: 80 });
    const { upstreamProxy } = egressConfig({
      ...LEAST,
      httpsProxy: 'http://10.0.0.9',
      httpsProxyCredentialFile: '/proxy/credentials',
    });
    assert.deepEqual(upstreamProxy, { host: '10.0.0.9', port: 80, credentialFile: '/proxy/credentials' });
  });

  it('a missing, unknown or invalid field is refused with its path', () => {
    const invalid: [value: unknown, words: RegExp][] = [
      [{}, /tls/],
      [{ ...LEAST, allow: ['**'] }, /additional|allow/i],
      [{ ...LEAST, listen: { port: 70_000 } }, /\/listen\/port/],
      [{ ...LEAST, excludedRanges: ['10.0.0.0'] }, /"10\.0\.0\.0" is not a range/],
      [{ ...LEAST, httpsProxy: 'https://proxy.example:3128' }, /\/httpsProxy/],
      [{ ...LEAST, httpsProxy: 'http://user:password@proxy.example:3128' }, /\/httpsProxy/],
      [{ ...LEAST, httpsProxy: 'http://proxy.example:99999' }, /\/httpsProxy.*99999/],
      [{ ...LEAST, httpsProxyCredentialFile: '/proxy/credentials' }, /httpsProxyCredentialFile.*set httpsProxy too/],
      [undefined, /configuration of the egress proxy/],
    ];
    for (const [value, words] of invalid) {
      assert.throws(
        () => egressConfig(value),
        (error) => isTemperError(error, 'TEMPER_CONFIGURATION_INVALID') && words.test(error.message),
        JSON.stringify(value),
      );
    }
  });
});
