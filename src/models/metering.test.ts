import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Amounts, Ledger } from '../ledger/port.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import { metering } from './metering.ts';
import { compose, type ModelPipeline, type ResolvedModel } from './pipeline.ts';
import { aModel } from './pipeline.testing.ts';
import type { ModelEvent } from './port.ts';
import { aRequest, anOp, eventsOf } from './raw-http-server.testing.ts';
import { fallbacks } from './resilience/fallback.ts';

const HELLO: ModelEvent = { type: 'text', text: 'hello' };
const endWith = (inputTokens: number, outputTokens: number): ModelEvent => ({
  type: 'end',
  stopReason: 'stop',
  usage: { inputTokens, outputTokens, cachedInputTokens: 0 },
  model: 'm',
});

interface Entry {
  reserved: Amounts;
  commits: Amounts[];
}

function aLedger(isFull = false): { ledger: Ledger; log: Entry[] } {
  const log: Entry[] = [];
  const ledger: Ledger = {
    async reserve(reserved) {
      if (isFull) {
        const resumesAt = '2031-01-01T00:00:00Z';
        return { granted: false, quota: 'spec.quotas.tokensPerHour', limit: 10, used: 9, resumesAt };
      }
      log.push({ reserved, commits: [] });
      return { granted: true, id: String(log.length - 1) };
    },
    async commit(id, used) {
      log[Number(id)]?.commits.push(used);
    },
    usage: () => Promise.reject(new Error('not used')),
  };
  return { ledger, log };
}

/** Plays the steps of the requested model; `embed` throws the errors. */
function playing(steps: (model: string) => (ModelEvent | Error)[]): ModelPipeline & { asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    async *stream({ model }) {
      asked.push(model.id);
      for (const step of steps(model.id)) {
        if (step instanceof Error) throw step;
        yield step;
      }
    },
    async embed() {
      for (const step of steps('embed')) if (step instanceof Error) throw step;
      return [];
    },
  };
}

const MODEL: ResolvedModel = { ...aModel('test/model'), price: { inputPrice: 2, outputPrice: 10 } };
const failure = (code: ErrorCode) => new TemperError(code, 'it failed');
let serial = 0;
const ids = { next: (prefix: string) => `${prefix}-${(serial += 1)}` };

function aCall(steps: (ModelEvent | Error)[], isFull = false) {
  const { ledger, log } = aLedger(isFull);
  const provider = playing(() => steps);
  const pipeline = compose(provider, [metering({ ledger, ids })]);
  const stream = () => pipeline.stream({ ...aRequest({ maxOutputTokens: 100 }), model: MODEL }, anOp());
  return { log, provider, pipeline, stream };
}

describe('metering', () => {
  it('a call reserves its estimated input and maximum output and commits the reported usage once', async () => {
    const { log, stream } = aCall([HELLO, endWith(7, 3)]);
    await eventsOf(stream());
    const inputTokens = Math.ceil('be briefhello'.length / 4);
    assert.deepEqual(log, [
      {
        reserved: { inputTokens, outputTokens: 100, costMicros: inputTokens * 2 + 1_000 },
        commits: [{ inputTokens: 7, outputTokens: 3, costMicros: 44 }],
      },
    ]);
  });

  it('the usage is committed before the consumer sees the end, so that a consumer may stop there', async () => {
    const { log, stream } = aCall([endWith(7, 3)]);
    for await (const event of stream()) {
      assert.equal(event.type, 'end');
      assert.equal(log[0]?.commits.length, 1);
      break;
    }
    assert.equal(log[0]?.commits.length, 1);
  });

  it('a call that was refused before its first event costs nothing', async () => {
    for (const code of ['TEMPER_MODEL_RATE_LIMITED', 'TEMPER_MODEL_UNREACHABLE', 'TEMPER_MODEL_NOT_FOUND'] as const) {
      const { log, stream } = aCall([failure(code)]);
      await assert.rejects(eventsOf(stream()), (error) => isTemperError(error, code));
      assert.deepEqual(log[0]?.commits, [{}], code);
    }
  });

  it('a stream that breaks off, times out or is abandoned costs its reservation', async () => {
    const broken = aCall([HELLO, failure('TEMPER_MODEL_RATE_LIMITED')]);
    await assert.rejects(eventsOf(broken.stream()));
    const late = aCall([failure('TEMPER_MODEL_TIMEOUT')]);
    await assert.rejects(eventsOf(late.stream()));
    const abandoned = aCall([HELLO, endWith(7, 3)]);
    for await (const _ of abandoned.stream()) break;
    for (const { log } of [broken, late, abandoned]) assert.deepEqual(log[0]?.commits, [log[0]?.reserved]);
  });

  it('implausible usage of a provider is limited to whole numbers from 0 to 100 million', async () => {
    const { log, stream } = aCall([endWith(-5, 1e300)]);
    await eventsOf(stream());
    assert.deepEqual(log[0]?.commits, [{ inputTokens: 0, outputTokens: 100_000_000, costMicros: 1_000_000_000 }]);
  });

  it('a denied call reaches no provider and no fallback', async () => {
    const { ledger } = aLedger(true);
    const provider = playing(() => [endWith(1, 1)]);
    const pipeline = compose(provider, [metering({ ledger, ids }), fallbacks([aModel('b/two')])]);
    const answer = eventsOf(pipeline.stream({ ...aRequest(), model: MODEL }, anOp()));
    await assert.rejects(answer, (error) => {
      assert.ok(isTemperError(error, 'TEMPER_QUOTA_EXCEEDED'));
      assert.match(error.message, /^9 of 10 tokens allowed by spec\.quotas\.tokensPerHour are used/);
      return true;
    });
    assert.deepEqual(provider.asked, []);
  });

  it('each model that fallbacks try is charged by itself, at its own price', async () => {
    const { ledger, log } = aLedger();
    const provider = playing((model) => (model === 'b/two' ? [endWith(10, 10)] : [failure('TEMPER_MODEL_OVERLOADED')]));
    const answered: string[] = [];
    const layers = [
      metering({ ledger, ids }),
      fallbacks([aModel('b/two')], (requested, model) => answered.push(`${requested.id} → ${model.id}`)),
    ];
    await eventsOf(compose(provider, layers).stream({ ...aRequest(), model: MODEL }, anOp()));
    assert.deepEqual(provider.asked, ['test/model', 'b/two']);
    assert.deepEqual(
      log.map(({ commits }) => commits),
      [[{}], [{ inputTokens: 10, outputTokens: 10, costMicros: 40 }]],
    );
    assert.deepEqual(answered, ['test/model → b/two']);
  });

  it('embeddings are charged by their characters, and nothing when the provider refuses them', async () => {
    const done = aCall([]);
    await done.pipeline.embed(['12345678', '1'], anOp());
    assert.deepEqual(done.log[0]?.commits, [{ inputTokens: 3, outputTokens: 0, costMicros: 3 }]);
    const refused = aCall([failure('TEMPER_MODEL_NOT_FOUND')]);
    await assert.rejects(refused.pipeline.embed(['1'], anOp()));
    assert.deepEqual(refused.log[0]?.commits, [{}]);
  });
});
