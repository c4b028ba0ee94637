import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { copiesOf } from './topology.ts';

const FOLLOWER = { name: 'n1', current: true, active: 1, lag: 0, offline: false };

describe('the copies of a stream', () => {
  it('a stream of a server without a cluster has its one copy', () => {
    assert.deepEqual(copiesOf(1, undefined), { declared: 1, current: 1, lag: 0 });
  });
  it('a copy counts while its server is online and the copy is up to date', () => {
    const { lag: _lag, ...current } = FOLLOWER;
    const replicas = [current as typeof FOLLOWER, { ...FOLLOWER, current: false, lag: 7 }];
    assert.deepEqual(copiesOf(3, { name: 'temper', leader: 'n0', replicas }), { declared: 3, current: 2, lag: 7 });
    const offline = [FOLLOWER, { ...FOLLOWER, offline: true }];
    assert.equal(copiesOf(3, { name: 'temper', leader: 'n0', replicas: offline }).current, 2);
  });
  it('without a leader no copy can be used', () => {
    assert.equal(copiesOf(3, { name: 'temper', replicas: [FOLLOWER, FOLLOWER] }).current, 0);
  });
});
