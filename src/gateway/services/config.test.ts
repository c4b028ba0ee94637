import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { parseDatabaseServices, parseSearchService } from './config.ts';

const SOURCE = 'gateway.yaml';
const refused = (work: () => unknown, words: RegExp): void =>
  assert.throws(work, (error) => {
    assert.ok(isTemperError(error, 'TEMPER_CONFIGURATION_INVALID'), String(error));
    assert.match(error.message, words);
    return true;
  });

describe('the search service of a release', () => {
  it('a service with a default needs its type and key only, and one in a private network may use http', () => {
    const keyFile = '/etc/temper/search/key';
    assert.equal(parseSearchService({ type: 'Brave', keyFile }, true, SOURCE)?.url.startsWith('https://'), true);
    const own = { type: 'SearXNG', url: 'http://searxng.tools.svc:8080/search', private: true };
    assert.deepEqual(parseSearchService(own, false, SOURCE), own);
    assert.equal(parseSearchService(undefined, true, SOURCE), undefined);
  });

  it('a service that would get its key in the clear, or that nothing can reach, is refused with the field', () => {
    const cases: [object, RegExp][] = [
      [{ type: 'Bing' }, /webSearch\/type/],
      [{ type: 'Brave' }, /keyFile must name/],
      [{ type: 'SearXNG' }, /url must be a URL/],
      [{ type: 'SearXNG', url: 'http://searx.example.com/' }, /url must be https/],
      [{ type: 'SearXNG', url: 'https://user:pass@searx.example.com/' }, /without user/],
      [{ type: 'SearXNG', url: 'http://searx.svc/', private: true, keyFile: '/k' }, /in the clear/],
      [{ type: 'SearXNG', url: 'https://searx.example.com/', namespaces: [] }, /webSearch\/namespaces/],
      [{ type: 'SearXNG', url: 'https://searx.example.com/', key: 'x' }, /webSearch/],
    ];
    for (const [value, words] of cases) refused(() => parseSearchService(value, true, SOURCE), words);
    const open = { type: 'SearXNG', url: 'https://searx.example.com/search' };
    refused(() => parseSearchService(open, false, SOURCE), /egress proxy/);
  });
});

describe('the databases of a release', () => {
  const server = {
    name: 'sales',
    type: 'PostgreSQL',
    host: 'db.example.com',
    database: 'sales',
    user: 'reader',
    namespaces: ['team-a'],
    passwordFile: '/etc/temper/databases/sales/password',
  };

  it('a PostgreSQL server is accepted', () => {
    assert.deepEqual(parseDatabaseServices([server], SOURCE), [server]);
    assert.deepEqual(parseDatabaseServices(undefined, SOURCE), []);
  });

  it('SQLite, a server without TLS, without namespaces or with a used name is refused', () => {
    const { namespaces: _namespaces, ...everywhere } = server;
    const cases: [unknown, RegExp][] = [
      [[server, { name: 'notes', type: 'SQLite', file: '/data/notes.db' }], /databases\/1: type SQLite .*PostgreSQL/],
      [[{ ...server, tls: false }], /databases\/0/],
      [[everywhere], /databases\/0 .*namespaces/],
      [[{ ...server, host: 'db.example.com/x' }], /databases\/0\/host/],
      [[server, server], /"sales" is used twice/],
    ];
    for (const [value, words] of cases) refused(() => parseDatabaseServices(value, SOURCE), words);
  });
});
