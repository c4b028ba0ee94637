import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import type { DatabaseService } from './config.ts';
import { openServiceTools, type ServiceToolsDeps } from './start.ts';

const database = (name: string, ...namespaces: string[]): DatabaseService => ({
  name,
  type: 'PostgreSQL',
  host: 'db.example.com',
  database: name,
  user: 'reader',
  namespaces,
  passwordFile: '/none',
});
const open = (services: Partial<ServiceToolsDeps>) =>
  openServiceTools({ databases: [], clock: systemClock, deliveryTokens: { sign: () => '' }, ...services });

describe('the tools of services of the platform', () => {
  it('a namespace has the tools of its services alone, and reads no name of a database of another one', () => {
    const tools = open({
      webSearch: { type: 'SearXNG', url: 'http://searxng.svc:8080/', private: true, namespaces: ['team-a'] },
      databases: [database('sales', 'team-a', 'team-b'), database('payroll', 'team-b')],
    });
    const described = (namespace: string) =>
      tools.list(namespace).map(({ descriptor }) => [descriptor.name, descriptor.inputSchema['properties']]);
    assert.deepEqual(
      tools.list('team-a').map(({ descriptor: { name, hosts, category } }) => [name, hosts, category]),
      [
        ['web_search', ['searxng.svc:8080'], 'web'],
        ['sql_query', undefined, 'database'],
      ],
    );
    assert.doesNotMatch(JSON.stringify(described('team-a')), /payroll/);
    assert.match(JSON.stringify(described('team-b')), /payroll/);
    assert.deepEqual(tools.list('team-c'), []);
    assert.equal(tools.find('team-b', 'web_search'), undefined);
    assert.notEqual(tools.find('team-a', 'sql_query')?.definition, tools.find('team-b', 'sql_query')?.definition);
  });

  it('a search service without namespaces is for all of them, and a release without services has no tools', () => {
    const tools = open({ webSearch: { type: 'SearXNG', url: 'http://searxng.svc:8080/', private: true } });
    assert.equal(tools.find('anyone', 'web_search')?.descriptor.name, 'web_search');
    assert.deepEqual(open({}).list('anyone'), []);
  });

  it('another server behind the same name is another definition', () => {
    const definitionOf = (host: string) =>
      open({ databases: [{ ...database('sales', 'team-a'), host }] }).find('team-a', 'sql_query')?.definition;
    assert.notEqual(definitionOf('db.example.com'), definitionOf('other.example.com'));
  });
});
