import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { HealthRecorder } from './health.ts';

function aRecorder() {
  const recorder = new HealthRecorder(systemClock, ['openai', 'anthropic']);
  const told: string[] = [];
  recorder.changes(({ provider, state, fallback }) => told.push([provider, state, fallback ?? ''].join(' ')));
  const fail = (code: ErrorCode, provider = 'openai') => recorder.failed(provider, new TemperError(code, 'said so'));
  return { recorder, told, fail };
}

describe('the state of providers', () => {
  it('is told again, once a minute, while all is well', () => {
    let time = 0;
    const recorder = new HealthRecorder({ ...systemClock, monotonic: () => time }, ['openai']);
    let told = 0;
    recorder.changes(() => (told += 1));
    for (time = 0; time < 120_000; time += 1_000) recorder.succeeded('openai');
    assert.equal(told, 2);
  });

  it('changes at once when a key is refused, and back with the first answer', () => {
    const { recorder, told, fail } = aRecorder();
    fail('TEMPER_MODEL_UNAUTHORIZED');
    fail('TEMPER_MODEL_UNAUTHORIZED');
    recorder.succeeded('openai');
    recorder.succeeded('openai');
    assert.deepEqual(told, ['openai Unauthorized ', 'openai Available ']);
  });

  it('needs three failures in a row of a provider that is busy', () => {
    const { recorder, told, fail } = aRecorder();
    fail('TEMPER_MODEL_OVERLOADED');
    fail('TEMPER_MODEL_TIMEOUT');
    recorder.succeeded('openai');
    fail('TEMPER_MODEL_OVERLOADED');
    fail('TEMPER_MODEL_OVERLOADED');
    assert.deepEqual(told, ['openai Available ']);
    fail('TEMPER_MODEL_RATE_LIMITED');
    assert.deepEqual(told, ['openai Available ', 'openai Unavailable ']);
  });

  it('says nothing of failures of the request, nor of providers that are not configured', () => {
    const { recorder, told, fail } = aRecorder();
    for (let times = 0; times < 5; times += 1) fail('TEMPER_MODEL_CONTEXT_OVERFLOW');
    fail('TEMPER_MODEL_UNAUTHORIZED', 'made-up');
    recorder.usedInstead('openai/a', 'anthropic/b');
    assert.deepEqual(told, []);
    assert.deepEqual(
      recorder.list().map(({ provider }) => provider),
      ['openai', 'anthropic'],
    );
  });

  it('names the model that stands in, once', () => {
    const { recorder, told, fail } = aRecorder();
    fail('TEMPER_MODEL_BILLING');
    recorder.usedInstead('openai/a', 'anthropic/b');
    recorder.usedInstead('openai/a', 'anthropic/b');
    assert.deepEqual(told, ['openai Unavailable ', 'openai Unavailable anthropic/b']);
  });
});
