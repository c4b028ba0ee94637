import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { aModel } from '../../models/pipeline.testing.ts';
import { HealthRecorder } from './health.ts';

function aRecorder() {
  const open = new Set<string>();
  const isOpen = (provider: string): boolean => open.has(provider);
  const recorder = new HealthRecorder(systemClock, { providers: ['openai', 'anthropic'], isOpen });
  const published: string[] = [];
  recorder.changes(({ provider, state, fallback }) => published.push([provider, state, fallback ?? ''].join(' ')));
  const fail = (code: ErrorCode, provider = 'openai', caller = 'a', status?: number) => {
    const details = status === undefined ? {} : { status };
    recorder.failed(provider, new TemperError(code, 'said so', { details }), caller);
  };
  return { recorder, published, fail, open };
}

describe('the health of model providers', () => {
  it('an available provider is published again once a minute', () => {
    let time = 0;
    const recorder = new HealthRecorder(
      { ...systemClock, monotonic: () => time },
      { providers: ['openai'], isOpen: () => false },
    );
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

  it('a provider becomes unavailable when a call fails while its circuit is open', () => {
    const { recorder, published, fail, open } = aRecorder();
    for (let times = 0; times < 9; times += 1) fail('TEMPER_MODEL_OVERLOADED');
    assert.deepEqual(published, [], 'the circuit of the agent does not concern the others');
    open.add('openai');
    fail('TEMPER_MODEL_UNREACHABLE');
    recorder.succeeded('openai');
    assert.deepEqual(published, ['openai Unavailable ', 'openai Available ']);
  });

  it('refusals with status 403 concern the key only when every active agent is refused', () => {
    const { recorder, published, fail } = aRecorder();
    recorder.succeeded('openai', 'victim');
    for (let times = 0; times < 9; times += 1) fail('TEMPER_MODEL_UNAUTHORIZED', 'openai', 'evil', 403);
    assert.deepEqual(published, ['openai Available ']);
    fail('TEMPER_MODEL_UNAUTHORIZED', 'openai', 'victim', 403);
    assert.deepEqual(published, ['openai Available ', 'openai Unauthorized ']);
    const alone = aRecorder();
    alone.fail('TEMPER_MODEL_UNAUTHORIZED', 'openai', 'only', 403);
    assert.deepEqual(alone.published, ['openai Unauthorized ']);
  });

  it('the published message contains no text of the provider, which may repeat a request', () => {
    const { recorder, open } = aRecorder();
    open.add('openai');
    const details = { status: 429 };
    recorder.failed('openai', new TemperError('TEMPER_MODEL_RATE_LIMITED', 'words of an agent', { details }));
    const message = recorder.list()[0]?.message ?? '';
    assert.match(message, /^provider "openai" \(status 429\): /);
    assert.doesNotMatch(message, /words of an agent/);
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
    const { recorder, published, fail, open } = aRecorder();
    open.add('openai');
    fail('TEMPER_MODEL_BILLING');
    recorder.recordFallback(aModel('openai/a'), aModel('anthropic/b'));
    recorder.recordFallback(aModel('openai/a'), aModel('anthropic/b'));
    assert.deepEqual(published, ['openai Unavailable ', 'openai Unavailable anthropic/b']);
  });
});
