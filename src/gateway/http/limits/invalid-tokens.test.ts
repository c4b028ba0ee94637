import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ErrorCode } from '../../../lib/error-codes.ts';
import { isTemperError, TemperError } from '../../../lib/errors.ts';
import { FakeClock } from '../../../lib/fake-clock.testing.ts';
import { InvalidTokenLimits } from './invalid-tokens.ts';

function setup() {
  const clock = new FakeClock();
  const limits = new InvalidTokenLimits(clock, {
    pods: { perSecond: 1, burst: 3 },
    users: { perSecond: 10, burst: 30 },
  });
  const verifications = { count: 0 };
  const send = (address: string, code?: ErrorCode, kind: 'pods' | 'users' = 'pods') =>
    limits.verify(address, kind, async () => {
      verifications.count += 1;
      if (code !== undefined) throw new TemperError(code, 'no');
      return 'known';
    });
  const fails = (address: string, code: ErrorCode, sent: ErrorCode = code, kind: 'pods' | 'users' = 'pods') =>
    assert.rejects(send(address, sent, kind), (error) => isTemperError(error, code));
  return { clock, verifications, send, fails };
}

describe('InvalidTokenLimits', () => {
  it('an address that sends invalid tokens is refused before they are verified, and no other address is', async () => {
    const { verifications, send, fails } = setup();
    for (let index = 0; index < 3; index += 1) await fails('10.0.0.1', 'TEMPER_TOKEN_INVALID');
    for (let index = 0; index < 10; index += 1) await fails('10.0.0.1', 'TEMPER_RATE_LIMITED', 'TEMPER_TOKEN_INVALID');
    assert.equal(verifications.count, 3);
    assert.equal(await send('10.0.0.2'), 'known');
  });

  it('invalid tokens that arrive together are limited like those that arrive one after the other', async () => {
    const { verifications, send } = setup();
    await Promise.allSettled(Array.from({ length: 20 }, () => send('10.0.0.1', 'TEMPER_TOKEN_AUDIENCE')));
    assert.equal(verifications.count, 3);
  });

  it('valid tokens and refusals for other reasons are not counted', async () => {
    const { send, fails } = setup();
    for (let index = 0; index < 10; index += 1) {
      await send('10.0.0.1');
      await fails('10.0.0.1', 'TEMPER_POD_STARTING');
    }
  });

  it('tokens of users have a limit of their own, and a refused address may send again after the stated time', async () => {
    const { clock, send, fails } = setup();
    for (let index = 0; index < 3; index += 1) await fails('10.0.0.1', 'TEMPER_TOKEN_INVALID');
    assert.equal(await send('10.0.0.1', undefined, 'users'), 'known');
    await assert.rejects(
      send('10.0.0.1'),
      (error) => isTemperError(error, 'TEMPER_RATE_LIMITED') && error.retry === 1_000,
    );
    await clock.advance(1_000);
    assert.equal(await send('10.0.0.1'), 'known');
  });
});
