import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tunnelTarget } from '../request/target.ts';
import { serverNameProblem } from './server-name.ts';

const problemOf = (serverName: string | undefined, authority: string): string | undefined =>
  serverNameProblem({ serverName, encrypted: false }, tunnelTarget(authority));

describe('the server name of a tunnel', () => {
  it('a tunnel to a host needs the name of that host', () => {
    assert.equal(problemOf('api.example.com', 'API.example.com:443'), undefined);
    assert.match(problemOf('evil.test', 'api.example.com:443') ?? '', /another server/);
    assert.match(problemOf('example.com', 'api.example.com:443') ?? '', /another server/);
    assert.match(problemOf(undefined, 'api.example.com:443') ?? '', /names no server/);
  });

  it('a tunnel to an IP address needs a handshake without a name', () => {
    assert.equal(problemOf(undefined, '93.184.215.14:443'), undefined);
    assert.equal(problemOf(undefined, '[2606:4700::1111]:443'), undefined);
    assert.match(problemOf('api.example.com', '93.184.215.14:443') ?? '', /an IP address/);
  });
});
