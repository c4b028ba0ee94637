import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRecordPath } from '../lib/record-store.ts';
import { sessionPath } from './session-path.ts';

describe('the path of a session', () => {
  it('the path names namespace, agent and session', () => {
    const scope = { namespace: 'team-a', agent: 'analyst', session: 's_1' };
    assert.equal(sessionPath(scope), 'sessions/team-a_analyst_s_1');
  });

  it('two sessions never share a path, and every path is a valid record path', () => {
    const scopes = [
      { namespace: 'a', agent: 'b', session: 'c_d' },
      { namespace: 'a', agent: 'b_c', session: 'd' },
      { namespace: 'a_b', agent: 'c', session: 'd' },
      { namespace: 'a', agent: 'b', session: '../../c' },
      { namespace: 'a', agent: 'b', session: '..' },
      { namespace: 'a', agent: 'b', session: '' },
      { namespace: 'a', agent: 'b', session: 'x'.repeat(128) },
      { namespace: 'a', agent: 'b'.repeat(253), session: 'x'.repeat(128) },
      { namespace: 'a', agent: 'b'.repeat(252), session: 'x'.repeat(128) },
    ];
    const paths = scopes.map(sessionPath);
    assert.equal(new Set(paths).size, scopes.length);
    for (const path of paths) assertRecordPath(path);
  });
});
