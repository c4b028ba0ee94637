import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CallShares } from './call-shares.ts';

/** Takes as many calls as the namespace gets, with agents of its own for each. */
function takeAll(shares: CallShares, namespace: string): Disposable[] {
  const taken: Disposable[] = [];
  for (let agent = 0; ; agent += 1) {
    try {
      taken.push(shares.take({ agentUid: `${namespace}/${agent}`, namespace }));
    } catch {
      return taken;
    }
  }
}

describe('the shares of calls that a gateway executes', () => {
  it('an agent has four calls in work, its namespace sixteen', () => {
    const shares = new CallShares();
    const agent = { agentUid: 'a', namespace: 'team-a' };
    const taken = Array.from({ length: 4 }, () => shares.take(agent));
    assert.throws(() => shares.take(agent), { code: 'TEMPER_RATE_LIMITED', message: /^4 calls of the agent/ });
    assert.equal(takeAll(shares, 'team-a').length, 12);
    assert.throws(() => shares.take({ agentUid: 'b', namespace: 'team-a' }), { message: /^16 calls of the namespace/ });
    taken[0]?.[Symbol.dispose]();
    shares.take(agent);
  });

  it('whatever other namespaces take, the next one has a place, and all together have no more than the limit', () => {
    const shares = new CallShares();
    const counts = Array.from({ length: 30 }, (_, number) => takeAll(shares, `team-${number}`).length);
    assert.deepEqual(counts.slice(0, 3), [16, 16, 16]);
    assert.ok(
      counts.slice(0, 6).every((count) => count > 0),
      counts.join(' '),
    );
    assert.ok(counts.reduce((sum, count) => sum + count, 0) <= 64, counts.join(' '));
  });

  it('a namespace that comes late gets as much as the others as soon as they end calls', () => {
    const shares = new CallShares();
    const early = ['a', 'b', 'c', 'd'].map((namespace) => takeAll(shares, namespace));
    const late = takeAll(shares, 'late');
    assert.ok(late.length > 0);
    for (const calls of early) for (const call of calls.splice(8)) call[Symbol.dispose]();
    assert.ok(late.length + takeAll(shares, 'late').length >= 8);
  });
});
