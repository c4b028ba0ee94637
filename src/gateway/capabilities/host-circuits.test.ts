import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { HostCircuits } from './host-circuits.ts';

describe('the circuits of hosts', () => {
  const clock = new FakeClock();
  const circuits = new HostCircuits(clock);
  const fail = (agent: string, code: ErrorCode = 'TEMPER_FETCH_FAILED', host = 'a.example.com') =>
    circuits
      .during(agent, host, () => Promise.reject(new TemperError(code, 'no')))
      .catch((error: unknown) => (isTemperError(error) ? error.message : 'another error'));

  it('five failures of a host stop further calls of this agent for some time, and of no other agent', async () => {
    for (let at = 0; at < 5; at += 1) assert.equal(await fail('a-1'), 'no');
    assert.match(await fail('a-1'), /a\.example\.com failed several times; it is asked again in \d+ s/);
    assert.equal(await fail('a-2'), 'no');
    assert.equal(await fail('a-1', 'TEMPER_FETCH_FAILED', 'b.example.com'), 'no');
    clock.skip(40_000);
    assert.equal(await circuits.during('a-1', 'a.example.com', async () => 'found'), 'found');
    assert.equal(await fail('a-1'), 'no');
  });

  it('failures of a question do not count', async () => {
    for (let at = 0; at < 9; at += 1) assert.equal(await fail('a-3', 'TEMPER_TOOL_FAILED'), 'no');
  });
});
