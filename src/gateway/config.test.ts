import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gatewayConfig } from './config.ts';

const REQUIRED = {
  tls: { certificate: '/tls.crt', key: '/tls.key' },
  nats: { servers: ['tls://nats:4222'], seedFile: '/gateway.nk' },
  deliveryTokenKeys: ['/key', '/other.key'],
};

describe('the configuration of the gateway', () => {
  it('the number of connections has a default, and a number that cannot be meant is refused with its field', () => {
    assert.equal(gatewayConfig(REQUIRED).maxConnections, 2_500);
    assert.equal(gatewayConfig({ ...REQUIRED, maxConnections: 20_000 }).maxConnections, 20_000);
    for (const maxConnections of [0, -1, 1.5, '4000', 1e9]) {
      assert.throws(() => gatewayConfig({ ...REQUIRED, maxConnections }), {
        code: 'TEMPER_CONFIGURATION_INVALID',
        message: /\/maxConnections/,
      });
    }
  });

  it('a public search service without the egress proxy, and a database of SQLite, end the start with their field', () => {
    const webSearch = { type: 'SearXNG', url: 'https://searx.example.com/search' };
    const egress = { endpoints: '/egress', tokenFile: '/token' };
    assert.equal(gatewayConfig({ ...REQUIRED, webSearch, egress }).webSearch?.url, webSearch.url);
    assert.throws(() => gatewayConfig({ ...REQUIRED, webSearch }), /webSearch\.url/);
    const databases = [{ name: 'notes', type: 'SQLite', file: '/notes.db' }];
    assert.throws(() => gatewayConfig({ ...REQUIRED, databases }), /databases\/0: type SQLite/);
  });

  it('a repository of agents on a public host needs the egress proxy, and one in a private network does not', () => {
    const repository = { url: 'https://git.example.com/code.git' };
    const entry = { name: 'code', hosts: ['git.example.com:443'], namespaces: ['team-a'], credentialFile: '/token' };
    const egress = { endpoints: '/egress', tokenFile: '/token' };
    const of = (change: object, more: object = {}) =>
      gatewayConfig({ ...REQUIRED, ...more, connections: [{ ...entry, repository, ...change }] });
    assert.deepEqual(of({}, { egress }).connections[0]?.repository, repository);
    assert.equal(of({ private: true }).connections.length, 1);
    assert.throws(() => of({}), /connections\/0\/repository is reached through the egress proxy/);
  });
});
