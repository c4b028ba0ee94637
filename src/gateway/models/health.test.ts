import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { aModel } from '../../models/pipeline.testing.ts';
import { HealthRecorder } from './health.ts';

function aRecorder() {
  const recorder = new HealthRecorder(systemClock, ['openai', 'anthropic']);
  const published: string[] = [];
  recorder.changes(({ provider, state, fallback }) => published.push([provider, state, fallback ?? ''].join(' ')));
  const fail = (code: ErrorCode, provider = 'openai') => recorder.failed(provider, new TemperError(code, 'said so'));
  return { recorder, published, fail };
}

describe('the health of model providers', () => {
  it('an available provider is published again once a minute', () => {
    let time = 0;
    const recorder = new HealthRecorder({ ...systemClock, monotonic: () => time }, ['openai']);
    let published = 0;
    recorder.changes(() => (published += 1));
    for (time = 0; time < 120_000; time += 1_000) recorder.succeeded('openai');
    assert.equal(published, 2);
  });

  it('a refused key changes the state at once, and the first response changes it back', () => {
    const { recorder, published, fail } = aRecorder();
    fail('TEMPER_MODEL_UNAUTHORIZED');
    fail('TEMPER_MODEL_UNAUTHORIZED');
    recorder.succeeded('openai');
    recorder.succeeded('openai');
    assert.deepEqual(published, ['openai Unauthorized ', 'openai Available ']);
  });

  it('a provider becomes unavailable after three overload errors in a row', () => {
    const { recorder, published, fail } = aRecorder();
    fail('TEMPER_MODEL_OVERLOADED');
    fail('TEMPER_MODEL_TIMEOUT');
    recorder.succeeded('openai');
    fail('TEMPER_MODEL_OVERLOADED');
    fail('TEMPER_MODEL_OVERLOADED');
    assert.deepEqual(published, ['openai Available ']);
    fail('TEMPER_MODEL_UNREACHABLE');
    assert.deepEqual(published, ['openai Available ', 'openai Unavailable ']);
  });

  it('request errors and providers that are not configured publish nothing', () => {
    const { recorder, published, fail } = aRecorder();
    for (let times = 0; times < 5; times += 1) fail('TEMPER_MODEL_CONTEXT_OVERFLOW');
    fail('TEMPER_MODEL_UNAUTHORIZED', 'made-up');
    recorder.recordFallback(aModel('openai/a'), aModel('anthropic/b'));
    assert.deepEqual(published, []);
    assert.deepEqual(
      recorder.list().map(({ provider }) => provider),
      ['openai', 'anthropic'],
    );
  });

  it('the fallback model is published once', () => {
    const { recorder, published, fail } = aRecorder();
    fail('TEMPER_MODEL_BILLING');
    recorder.recordFallback(aModel('openai/a'), aModel('anthropic/b'));
    recorder.recordFallback(aModel('openai/a'), aModel('anthropic/b'));
    assert.deepEqual(published, ['openai Unavailable ', 'openai Unavailable anthropic/b']);
  });
});
