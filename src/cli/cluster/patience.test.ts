import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TemperError } from '../../lib/errors.ts';
import { insist } from './patience.ts';

const away = (retry: 'backoff' | 'never') => new TemperError('TEMPER_GATEWAY_UNREACHABLE', 'no endpoints', { retry });

function scene() {
  const errors: string[] = [];
  return { errors, io: { error: (text: string) => void errors.push(text), signal: new AbortController().signal } };
}

describe('a call of a gateway that is being replaced', () => {
  it('is made again until it is answered, and people are told once', async () => {
    const { io, errors } = scene();
    let calls = 0;
    const call = () => ((calls += 1) < 3 ? Promise.reject(away('backoff')) : Promise.resolve('answer'));
    assert.equal(await insist(5, io, call), 'answer');
    assert.deepEqual(errors, ['the gateway does not answer; it is tried again for up to 4 s\n']);
  });

  it('is made again while the bus is away', async () => {
    const { io, errors } = scene();
    const failures: Error[] = [new TemperError('TEMPER_BUS_UNAVAILABLE', 'the bus is away since noon')];
    const call = () => {
      const failure = failures.shift();
      return failure === undefined ? Promise.resolve('answer') : Promise.reject(failure);
    };
    assert.equal(await insist(5, io, call), 'answer');
    assert.match(errors.join(''), /^the bus is away; it is tried again/);
  });

  it('fails with the last reason when there is no answer', async () => {
    let calls = 0;
    const call = () => Promise.reject(((calls += 1), away('backoff')));
    await assert.rejects(insist(2, scene().io, call), { message: 'no endpoints' });
    assert.equal(calls, 2);
  });

  it('is not made again when it was refused', async () => {
    for (const error of [away('never'), new TemperError('TEMPER_NOT_FOUND', 'no agent', { retry: 'backoff' })]) {
      let calls = 0;
      await assert.rejects(
        insist(5, scene().io, () => Promise.reject(((calls += 1), error))),
        error,
      );
      assert.equal(calls, 1);
    }
  });
});
