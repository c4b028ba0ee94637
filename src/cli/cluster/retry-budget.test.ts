import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { TemperError } from '../../lib/errors.ts';
import { withRetry } from './retry-budget.ts';

const unavailable = (retry: 'backoff' | 'never') =>
  new TemperError('TEMPER_GATEWAY_UNREACHABLE', 'no endpoints', { retry });

function setup() {
  const errors: string[] = [];
  return { errors, io: { error: (text: string) => void errors.push(text), signal: NEVER_ABORTED } };
}

describe('retries while a gateway is being replaced', () => {
  it('a call is retried until it succeeds, and the reason is printed once', async () => {
    const { io, errors } = setup();
    let calls = 0;
    const call = () => ((calls += 1) < 3 ? Promise.reject(unavailable('backoff')) : Promise.resolve('answer'));
    assert.equal(await withRetry(5, io, call), 'answer');
    assert.deepEqual(errors, ['the gateway does not respond; retrying for up to 4 s\n']);
  });

  it('a call is retried while NATS is unavailable', async () => {
    const { io, errors } = setup();
    const failures: Error[] = [new TemperError('TEMPER_BUS_UNAVAILABLE', 'the bus is away since noon')];
    const call = () => {
      const failure = failures.shift();
      return failure === undefined ? Promise.resolve('answer') : Promise.reject(failure);
    };
    assert.equal(await withRetry(5, io, call), 'answer');
    assert.match(errors.join(''), /^NATS is unavailable; retrying/);
  });

  it('a call fails with the last error when every attempt fails', async () => {
    let calls = 0;
    const call = () => Promise.reject(((calls += 1), unavailable('backoff')));
    await assert.rejects(withRetry(2, setup().io, call), { message: 'no endpoints' });
    assert.equal(calls, 2);
  });

  it('a call that NATS never answers fails with what to check', async () => {
    const away = () => new TemperError('TEMPER_BUS_UNAVAILABLE', 'NATS is away', { retry: 'backoff' });
    await assert.rejects(
      withRetry(2, setup().io, () => Promise.reject(away())),
      { code: 'TEMPER_BUS_UNAVAILABLE', retry: 'backoff', message: /^NATS is away; .* within 2 s\. `temper check`/ },
    );
  });

  it('a refused call is not retried', async () => {
    for (const error of [unavailable('never'), new TemperError('TEMPER_NOT_FOUND', 'no agent', { retry: 'backoff' })]) {
      let calls = 0;
      await assert.rejects(
        withRetry(5, setup().io, () => Promise.reject(((calls += 1), error))),
        error,
      );
      assert.equal(calls, 1);
    }
  });
});
