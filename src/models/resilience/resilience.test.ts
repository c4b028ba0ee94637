import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, TemperError, type Retry } from '../../lib/errors.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { aModel } from '../pipeline.testing.ts';
import { aRequest, eventsOf } from '../raw-http-server.testing.ts';
import { CircuitBreaker, type CircuitBreakerOptions } from './circuit-breaker.ts';
import { fallbacks } from './fallback.ts';
import { AutoAdvancingClock } from '../../lib/fake-clock.testing.ts';
import type { ModelPipeline, ResolvedRequest } from '../pipeline.ts';
import type { ModelEvent, RepeatedCall } from '../port.ts';
import { retries } from './retry.ts';

const END: ModelEvent = {
  type: 'end',
  stopReason: 'stop',
  usage: { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 },
  model: 'm',
};
const HELLO: ModelEvent = { type: 'text', text: 'hello' };

const failure = (code: ErrorCode, retry: Retry = 'never'): TemperError => new TemperError(code, 'it failed', { retry });
const overloaded = (): TemperError => failure('TEMPER_MODEL_OVERLOADED', 'backoff');

const COUNTED = [
  'TEMPER_MODEL_RATE_LIMITED',
  'TEMPER_MODEL_OVERLOADED',
  'TEMPER_MODEL_UNREACHABLE',
  'TEMPER_MODEL_TIMEOUT',
  'TEMPER_MODEL_BILLING',
] as const;

const aResolvedRequest = (): ResolvedRequest => ({ ...aRequest(), model: aModel('test/model') });

type PlayStep = ModelEvent | TemperError;

/** Plays one list of events and errors per call; repeats the last list. */
function scripted(...plays: PlayStep[][]): ModelPipeline & { asked: string[] } {
  const asked: string[] = [];
  const steps = (): PlayStep[] => plays[Math.min(asked.length, plays.length) - 1] ?? [];
  return {
    asked,
    async *stream(request) {
      asked.push(request.model.id);
      for (const step of steps()) {
        if (step instanceof TemperError) throw step;
        yield step;
      }
    },
    async embed() {
      asked.push('embed');
      const error = steps().find((step) => step instanceof TemperError);
      if (error) throw error;
      return [new Float32Array([1])];
    },
  };
}

const opAt = (clock: AutoAdvancingClock, milliseconds = 3_600_000, signal = NEVER_ABORTED): CallOptions => ({
  signal,
  deadline: clock.monotonic() + milliseconds,
  key: 'k',
});
const circuitBreaker = (provider: string, options: CircuitBreakerOptions) =>
  new CircuitBreaker(provider, options).layer;
const code = (wanted: ErrorCode) => (error: unknown) => isTemperError(error, wanted);

describe('retries', () => {
  const middle = (): number => 0.5;

  it('retries makes three attempts, waiting 300 ms and then 600 ms', async () => {
    const clock = new AutoAdvancingClock();
    const model = scripted([overloaded()], [overloaded()], [HELLO, END]);
    assert.deepEqual(
      await eventsOf(retries({ clock, random: middle })(model).stream(aResolvedRequest(), opAt(clock))),
      [HELLO, END],
    );
    assert.deepEqual(clock.slept, [300, 600]);
  });

  it('the caller is notified of each repetition before its wait, with the attempt and the reason', async () => {
    const clock = new AutoAdvancingClock();
    const seen: [RepeatedCall, number][] = [];
    const op = { ...opAt(clock), onRepeat: (repeated: RepeatedCall) => void seen.push([repeated, clock.slept.length]) };
    const model = scripted([overloaded()], [failure('TEMPER_MODEL_RATE_LIMITED', 7_000)], [overloaded()], [END]);
    const layered = fallbacks([aModel('test/other')])(retries({ clock, random: middle })(model));
    await eventsOf(layered.stream(aResolvedRequest(), op));
    assert.deepEqual(seen, [
      [{ model: 'test/model', attempt: 2, code: 'TEMPER_MODEL_OVERLOADED', milliseconds: 300 }, 0],
      [{ model: 'test/model', attempt: 3, code: 'TEMPER_MODEL_RATE_LIMITED', milliseconds: 7_000 }, 1],
      [{ model: 'test/other', attempt: 1, code: 'TEMPER_MODEL_OVERLOADED', milliseconds: 0 }, 2],
    ]);
  });

  it('retries throws the last error after three attempts', async () => {
    const clock = new AutoAdvancingClock();
    const model = scripted([overloaded()]);
    const answer = eventsOf(retries({ clock, random: middle })(model).stream(aResolvedRequest(), opAt(clock)));
    await assert.rejects(answer, code('TEMPER_MODEL_OVERLOADED'));
    assert.equal(model.asked.length, 3);
  });

  it('retries varies its waits by 20 %, up to 30 s', async () => {
    for (const [random, share] of [
      [0, 0.8],
      [1, 1.2],
    ] as const) {
      const clock = new AutoAdvancingClock();
      const model = scripted([overloaded()]);
      const retried = retries({ clock, random: () => random, maxAttempts: 12 })(model);
      await assert.rejects(eventsOf(retried.stream(aResolvedRequest(), opAt(clock))));
      assert.equal(clock.slept[0], 300 * share);
      assert.equal(Math.max(...clock.slept), 30_000);
    }
  });

  it('retries waits as long as the provider requested', async () => {
    const clock = new AutoAdvancingClock();
    const model = scripted([failure('TEMPER_MODEL_RATE_LIMITED', 7_000)], [END]);
    await eventsOf(retries({ clock, random: middle })(model).stream(aResolvedRequest(), opAt(clock)));
    assert.deepEqual(clock.slept, [7_000]);
  });

  it('retries does not wait past the deadline, nor for a provider that requests more than 30 s', async () => {
    for (const [retry, allowed] of [
      [7_000, 5_000],
      [31_000, 3_600_000],
    ] as const) {
      const clock = new AutoAdvancingClock();
      const model = scripted([failure('TEMPER_MODEL_RATE_LIMITED', retry)]);
      const answer = eventsOf(
        retries({ clock, random: middle })(model).stream(aResolvedRequest(), opAt(clock, allowed)),
      );
      await assert.rejects(answer, code('TEMPER_MODEL_RATE_LIMITED'));
      assert.deepEqual(clock.slept, []);
    }
  });

  it('retries does not retry permanent errors', async () => {
    const clock = new AutoAdvancingClock();
    const model = scripted([failure('TEMPER_MODEL_UNAUTHORIZED')]);
    await assert.rejects(eventsOf(retries({ clock, random: middle })(model).stream(aResolvedRequest(), opAt(clock))));
    assert.equal(model.asked.length, 1);
  });

  it('retries does not retry after the first event was emitted', async () => {
    const clock = new AutoAdvancingClock();
    const model = scripted([HELLO, overloaded()], [HELLO, END]);
    const answer = eventsOf(retries({ clock, random: middle })(model).stream(aResolvedRequest(), opAt(clock)));
    await assert.rejects(answer, code('TEMPER_MODEL_OVERLOADED'));
    assert.equal(model.asked.length, 1);
  });

  it('retries stops waiting when the caller cancels', async () => {
    const clock = new AutoAdvancingClock();
    const model = scripted([overloaded()]);
    const op = opAt(clock, 1_000_000, AbortSignal.abort());
    const answer = eventsOf(retries({ clock, random: middle })(model).stream(aResolvedRequest(), op));
    await assert.rejects(answer, code('TEMPER_CANCELLED'));
  });

  it('retries retries embeddings too', async () => {
    const clock = new AutoAdvancingClock();
    const model = scripted([overloaded()], []);
    const vectors = await retries({ clock, random: middle })(model).embed(['a'], opAt(clock));
    assert.equal(vectors.length, 1);
    assert.equal(model.asked.length, 2);
  });
});

describe('fallbacks', () => {
  const clock = new AutoAdvancingClock();

  it('fallbacks tries the models in order until one answers', async () => {
    const model = scripted([overloaded()], [failure('TEMPER_MODEL_BILLING')], [HELLO, END]);
    const answer = fallbacks(['b/two', 'test/model', 'c/three'].map(aModel))(model).stream(
      aResolvedRequest(),
      opAt(clock),
    );
    assert.deepEqual(await eventsOf(answer), [HELLO, END]);
    assert.deepEqual(model.asked, ['test/model', 'b/two', 'c/three']);
  });

  it('fallbacks lists the error of each model when all fail', async () => {
    const model = scripted([failure('TEMPER_MODEL_BILLING')], [failure('TEMPER_MODEL_RATE_LIMITED', 900)]);
    const answer = eventsOf(fallbacks(['b/two'].map(aModel))(model).stream(aResolvedRequest(), opAt(clock)));
    await assert.rejects(answer, (error) => {
      assert.ok(isTemperError(error, 'TEMPER_MODEL_UNAVAILABLE'));
      assert.match(error.message, /test\/model.*b\/two/);
      assert.equal(error.retry, 900);
      return true;
    });
  });

  it('fallbacks reports a request that was too long for one of the models, so that a shorter one is sent', async () => {
    const tooLong = failure('TEMPER_MODEL_CONTEXT_OVERFLOW');
    for (const plays of [
      [[tooLong], [tooLong]],
      [[tooLong], [overloaded()]],
      [[failure('TEMPER_MODEL_BILLING')], [tooLong]],
    ]) {
      const model = scripted(...plays);
      const answer = eventsOf(fallbacks(['b/two'].map(aModel))(model).stream(aResolvedRequest(), opAt(clock)));
      await assert.rejects(answer, code('TEMPER_MODEL_CONTEXT_OVERFLOW'));
      assert.equal(model.asked.length, 2);
    }
  });

  it('fallbacks does not change the model in the middle of an answer', async () => {
    const model = scripted([HELLO, overloaded()]);
    const answer = eventsOf(fallbacks(['b/two'].map(aModel))(model).stream(aResolvedRequest(), opAt(clock)));
    await assert.rejects(answer, code('TEMPER_MODEL_OVERLOADED'));
    assert.equal(model.asked.length, 1);
  });

  it('fallbacks calls no further model when the caller cancelled', async () => {
    const model = scripted([failure('TEMPER_CANCELLED')]);
    const answer = eventsOf(fallbacks(['b/two'].map(aModel))(model).stream(aResolvedRequest(), opAt(clock)));
    await assert.rejects(answer, code('TEMPER_CANCELLED'));
    assert.equal(model.asked.length, 1);
  });
});

describe('circuit breaker', () => {
  const call = (model: ModelPipeline, clock: AutoAdvancingClock): Promise<ModelEvent[]> =>
    eventsOf(model.stream(aResolvedRequest(), opAt(clock)));
  const failTimes = async (model: ModelPipeline, clock: AutoAdvancingClock, times: number): Promise<void> => {
    for (let time = 0; time < times; time += 1) await assert.rejects(call(model, clock));
  };

  it('the circuit opens after three consecutive failures and reports the time of the next probe', async () => {
    const clock = new AutoAdvancingClock();
    const inner = scripted([overloaded()]);
    const model = circuitBreaker('openai', { clock })(inner);
    await failTimes(model, clock, 3);
    await assert.rejects(call(model, clock), (error) => {
      assert.ok(isTemperError(error, 'TEMPER_MODEL_UNAVAILABLE'));
      assert.match(error.message, /"openai".*30 s/);
      assert.equal(error.retry, 30_000);
      return true;
    });
    assert.equal(inner.asked.length, 3);
  });

  it('the circuit opens for a provider that cannot be reached', async () => {
    const clock = new AutoAdvancingClock();
    const inner = scripted([failure('TEMPER_MODEL_UNREACHABLE', 'backoff')]);
    const model = circuitBreaker('openai', { clock })(inner);
    await failTimes(model, clock, 3);
    await assert.rejects(call(model, clock), code('TEMPER_MODEL_UNAVAILABLE'));
    assert.equal(inner.asked.length, 3);
  });

  it('the circuit counts consecutive failures only', async () => {
    const clock = new AutoAdvancingClock();
    const inner = scripted([overloaded()], [overloaded()], [END], [overloaded()], [overloaded()], [END]);
    const model = circuitBreaker('openai', { clock })(inner);
    await failTimes(model, clock, 2);
    await call(model, clock);
    await failTimes(model, clock, 2);
    await call(model, clock);
  });

  it('the circuit allows one probe after 30 s and closes when it succeeds', async () => {
    const clock = new AutoAdvancingClock();
    const inner = scripted([overloaded()], [overloaded()], [overloaded()], [HELLO, END]);
    const model = circuitBreaker('openai', { clock })(inner);
    await failTimes(model, clock, 3);
    clock.advance(30_000);
    const probe = model.stream(aResolvedRequest(), opAt(clock))[Symbol.asyncIterator]();
    assert.deepEqual((await probe.next()).value, HELLO);
    await assert.rejects(call(model, clock), code('TEMPER_MODEL_UNAVAILABLE'));
    assert.deepEqual((await probe.next()).value, END);
    assert.equal((await probe.next()).done, true);
    assert.deepEqual(await call(model, clock), [HELLO, END]);
  });

  it('the circuit stays open twice as long when the probe fails, and closes after the cool-down', async () => {
    const clock = new AutoAdvancingClock();
    const inner = scripted([overloaded()], [overloaded()], [overloaded()], [overloaded()], [END]);
    const model = circuitBreaker('openai', { clock, probeIntervalMs: 50_000 })(inner);
    await failTimes(model, clock, 3);
    clock.advance(50_000);
    await assert.rejects(call(model, clock), code('TEMPER_MODEL_OVERLOADED'));
    clock.advance(49_999);
    await assert.rejects(call(model, clock), code('TEMPER_MODEL_UNAVAILABLE'));
    clock.advance(70_001);
    assert.deepEqual(await call(model, clock), [END]);
    assert.deepEqual(await call(model, clock), [END]);
  });

  it('the circuit doubles its cool-down each time the provider fails again', async () => {
    const clock = new AutoAdvancingClock();
    const inner = scripted(...Array.from({ length: 6 }, () => [overloaded()]), [END]);
    const model = circuitBreaker('openai', { clock, probeIntervalMs: 3_600_000 })(inner);
    await failTimes(model, clock, 3);
    clock.advance(60_000);
    await failTimes(model, clock, 3);
    clock.advance(119_999);
    await assert.rejects(call(model, clock), code('TEMPER_MODEL_UNAVAILABLE'));
    clock.advance(1);
    assert.deepEqual(await call(model, clock), [END]);
  });

  it('the circuit opens at once, for five hours, after a billing error', async () => {
    const clock = new AutoAdvancingClock();
    const inner = scripted([failure('TEMPER_MODEL_BILLING')], [END]);
    const model = circuitBreaker('openai', { clock, probeIntervalMs: 6 * 3_600_000 })(inner);
    await failTimes(model, clock, 1);
    clock.advance(5 * 3_600_000 - 1);
    await assert.rejects(call(model, clock), code('TEMPER_MODEL_UNAVAILABLE'));
    clock.advance(1);
    assert.deepEqual(await call(model, clock), [END]);
  });

  it('the circuit does not count errors of the request', async () => {
    const clock = new AutoAdvancingClock();
    const inner = scripted([failure('TEMPER_MODEL_FORMAT')]);
    const model = circuitBreaker('openai', { clock })(inner);
    await failTimes(model, clock, 5);
    assert.equal(inner.asked.length, 5);
  });

  it('the circuit probes again when the consumer of a probe stops reading', async () => {
    const clock = new AutoAdvancingClock();
    const inner = scripted([overloaded()], [overloaded()], [overloaded()], [HELLO, END]);
    const model = circuitBreaker('openai', { clock })(inner);
    await failTimes(model, clock, 3);
    clock.advance(30_000);
    for await (const event of model.stream(aResolvedRequest(), opAt(clock))) {
      assert.deepEqual(event, HELLO);
      break;
    }
    assert.deepEqual(await call(model, clock), [HELLO, END]);
  });
});

describe('circuit breaker with several callers', () => {
  const unused = (): never => assert.fail('not used');
  const ledger = { reserve: unused, commit: unused, usage: unused };

  function aProvider(options: Partial<CircuitBreakerOptions> = {}) {
    const clock = new AutoAdvancingClock();
    const failing = new Map<string, TemperError>();
    const asked: string[] = [];
    const inner: ModelPipeline = {
      async *stream(_request, { caller }) {
        asked.push(caller?.id ?? '');
        const error = failing.get(caller?.id ?? '');
        if (error) throw error;
        yield END;
      },
      embed: () => Promise.reject(new Error('not used')),
    };
    const breaker = new CircuitBreaker('openai', { clock, ...options });
    const model = breaker.layer(inner);
    const call = (id: string) =>
      eventsOf(model.stream(aResolvedRequest(), { ...opAt(clock), caller: { id, ledger } })).then(
        () => 'answered',
        (error: TemperError) => error.code,
      );
    return { clock, breaker, failing, asked, call };
  }

  for (const code of COUNTED) {
    it(`${code} of one agent stops only this agent`, async () => {
      const { breaker, failing, asked, call } = aProvider();
      failing.set('evil', failure(code, 'backoff'));
      assert.equal(await call('victim'), 'answered');
      for (let times = 0; times < 20; times += 1) {
        await call('evil');
        assert.equal(await call('victim'), 'answered');
      }
      assert.equal(await call('evil'), 'TEMPER_MODEL_UNAVAILABLE');
      assert.ok(asked.filter((id) => id === 'evil').length <= 3);
      assert.deepEqual(breaker.state, { provider: 'openai', isOpen: false, openCallers: 1 });
    });
  }

  it('the circuit of the provider opens when every active agent fails, and closes for all with the first answer', async () => {
    const { breaker, failing, call } = aProvider();
    const agents = ['a', 'b', 'c'];
    for (const id of agents) {
      assert.equal(await call(id), 'answered');
      failing.set(id, overloaded());
    }
    for (const id of agents) {
      assert.equal(breaker.state.isOpen, false, `before ${id} fails`);
      for (let times = 0; times < 3; times += 1) await call(id);
    }
    assert.deepEqual(breaker.state, { provider: 'openai', isOpen: true, openCallers: 3 });
    failing.clear();
    assert.equal(await call('a'), 'TEMPER_MODEL_UNAVAILABLE');
    assert.equal(await call('d'), 'answered', 'an agent that has not failed may always call');
    assert.deepEqual(breaker.state, { provider: 'openai', isOpen: false, openCallers: 0 });
    assert.equal(await call('a'), 'answered');
  });

  it('while the circuit of the provider is open, one failure opens the circuit of a further agent', async () => {
    const { breaker, failing, asked, call } = aProvider();
    for (const id of ['a', 'b', 'c', 'd']) failing.set(id, overloaded());
    for (const id of ['a', 'b', 'c']) for (let times = 0; times < 3; times += 1) await call(id);
    assert.equal(breaker.state.isOpen, true);
    assert.equal(await call('d'), 'TEMPER_MODEL_OVERLOADED');
    assert.equal(await call('d'), 'TEMPER_MODEL_UNAVAILABLE');
    assert.equal(asked.filter((id) => id === 'd').length, 1);
  });

  it('failures before an answer of another agent do not open the circuit of the provider', async () => {
    const { breaker, failing, call } = aProvider();
    assert.equal(await call('victim'), 'answered');
    for (const id of ['a', 'b']) {
      failing.set(id, overloaded());
      for (let times = 0; times < 3; times += 1) await call(id);
      assert.equal(await call('victim'), 'answered');
    }
    assert.deepEqual(breaker.state, { provider: 'openai', isOpen: false, openCallers: 2 });
  });

  it('an agent that was active more than an hour ago need not fail', async () => {
    const { clock, breaker, failing, call } = aProvider();
    assert.equal(await call('idle'), 'answered');
    clock.advance(3_600_000);
    failing.set('a', overloaded());
    for (let times = 0; times < 3; times += 1) await call('a');
    assert.equal(breaker.state.isOpen, true);
  });

  it('the circuits of at most 1,000 failing agents are kept', async () => {
    const { breaker, failing, call } = aProvider({ failuresToOpen: 1 });
    for (let agent = 0; agent < 1_010; agent += 1) {
      failing.set(`agent-${agent}`, overloaded());
      await call(`agent-${agent}`);
    }
    assert.equal(breaker.state.openCallers, 1_000);
  });
});
