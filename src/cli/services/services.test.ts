import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { parseDatabases } from './read-databases.ts';
import { parseSearch } from './read-search.ts';

function refused(work: () => unknown, words: RegExp): void {
  assert.throws(work, (error) => {
    assert.ok(isTemperError(error, 'TEMPER_MANIFEST_INVALID'), String(error));
    assert.match(error.message, words);
    return true;
  });
}

describe('the search service of a user', () => {
  it('parseSearch completes the address of a service that has one', () => {
    assert.deepEqual(parseSearch('search.yaml', { type: 'Tavily', keyEnvironment: 'TAVILY_KEY' }), {
      type: 'Tavily',
      url: 'https://api.tavily.com/search',
      isPrivate: false,
      keyEnvironment: 'TAVILY_KEY',
    });
    const own = { type: 'SearXNG', url: 'https://search.company.internal/search', private: true };
    assert.deepEqual(parseSearch('search.yaml', own), { type: 'SearXNG', url: own.url, isPrivate: true });
  });

  it('parseSearch refuses a file with the field and the rule', () => {
    for (const [value, words] of [
      [[], /must be an object/],
      [{ type: 'Other' }, /type must be one of SearXNG, Brave, Tavily/],
      [{ type: 'Brave' }, /keyEnvironment must name the variable/],
      [{ type: 'Brave', keyEnvironment: 'PATH' }, /ends with _TOKEN or _KEY/],
      [{ type: 'Brave', keyEnvironment: 'A_KEY', key: 'secret' }, /key is not known/],
      [{ type: 'SearXNG' }, /url must be a non-empty string/],
      [{ type: 'SearXNG', url: 'http://search.example.com/' }, /url must be an https URL/],
      [{ type: 'SearXNG', url: 'https://user:pass@example.com/' }, /without user name/],
      [{ type: 'SearXNG', url: 'https://example.com/', private: 'yes' }, /private must be true or false/],
    ] as const) {
      refused(() => parseSearch('search.yaml', value), words);
    }
  });
});

describe('the databases of a user', () => {
  const server = {
    name: 'sales',
    type: 'PostgreSQL',
    host: 'db.example.com',
    database: 'sales',
    user: 'reader',
    passwordEnvironment: 'SALES_KEY',
  };
  const parse = (entry: object) => parseDatabases('databases.yaml', { databases: [entry] });

  it('parseDatabases completes a server, which has TLS', () => {
    assert.deepEqual(parse(server), [{ ...server, port: 5_432, tls: true, maxConnections: 4 }]);
    assert.deepEqual(parse({ name: 'shop', type: 'SQLite', file: '/data/shop.db' }), [
      { name: 'shop', type: 'SQLite', file: '/data/shop.db' },
    ]);
    assert.equal(parse({ ...server, host: 'localhost', tls: false }).length, 1);
  });

  it('parseDatabases refuses an entry with the field and the rule', () => {
    for (const [change, words] of [
      [{ type: 'MySQL' }, /databases\[0\]\.type must be PostgreSQL or SQLite/],
      [{ tls: false }, /tls may be false only for a server on localhost/],
      [{ port: 0 }, /port must be a whole number from 1 to 65535/],
      [{ password: 'secret' }, /password is not known/],
      [{ passwordEnvironment: 'HOME' }, /ends with _TOKEN or _KEY/],
      [{ caFile: 'ca.pem' }, /caFile must be an absolute path/],
      [{ description: 'x'.repeat(301) }, /at most 300 characters/],
      [{ name: 'Sales' }, /name must be lower-case/],
    ] as const) {
      refused(() => parse({ ...server, ...change }), words);
    }
    refused(() => parse({ name: 'shop', type: 'SQLite', file: 'shop.db' }), /file must be an absolute path/);
    refused(() => parseDatabases('databases.yaml', { databases: [server, server] }), /a second time/);
  });
});
