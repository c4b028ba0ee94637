import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { flushPromises } from '../lib/fake-clock.testing.ts';
import type { Amounts, Ledger } from '../ledger/port.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import { metering } from './metering.ts';
import { textSize } from './charge/request-size.ts';
import { calledBy, compose, type ModelPipeline, type ResolvedModel, type UsageMeter } from './pipeline.ts';
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

/** What a call that costs nothing commits. */
const NOTHING: Amounts = { inputTokens: 0, outputTokens: 0, costMicros: 0 };

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

type PlayStep = ModelEvent | Error | ((meter: UsageMeter | undefined) => void);

/** Plays the steps of the requested model; `embed` throws the errors. A step may also use the meter. */
function playing(steps: (model: string) => PlayStep[]): ModelPipeline & { asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    async *stream({ model }, { meter }) {
      asked.push(model.id);
      meter?.sent();
      for (const step of steps(model.id)) {
        if (step instanceof Error) throw step;
        if (typeof step === 'function') step(meter);
        else yield step;
      }
    },
    async embed(_texts, { meter }) {
      meter?.sent();
      for (const step of steps('embed')) {
        if (step instanceof Error) throw step;
        if (typeof step === 'function') step(meter);
      }
      return [];
    },
  };
}

const MODEL: ResolvedModel = { ...aModel('test/model'), price: { inputPrice: 2, outputPrice: 10 } };
const failure = (code: ErrorCode) => new TemperError(code, 'it failed');
let serial = 0;
const ids = { next: (prefix: string) => `${prefix}-${(serial += 1)}` };

/** A request is at most a hundred output tokens. */
function aCall(steps: PlayStep[], isFull = false, request = aRequest({ maxOutputTokens: 100 })) {
  const { ledger, log } = aLedger(isFull);
  const provider = playing(() => steps);
  const pipeline = compose(provider, [metering({ ids }), calledBy({ id: 'a', ledger })]);
  const stream = () => pipeline.stream({ ...request, model: MODEL }, anOp());
  return { log, provider, pipeline, stream };
}

describe('metering', () => {
  it('a call reserves its estimated input and maximum output and commits the reported usage once', async () => {
    const { log, stream } = aCall([HELLO, endWith(7, 3)]);
    await eventsOf(stream());
    const { tokens: inputTokens } = textSize(
      '{"system":"be brief","messages":[{"role":"user","text":"hello"}],"tools":[]}',
    );
    assert.deepEqual(log, [
      {
        reserved: { inputTokens, outputTokens: 100, costMicros: inputTokens * 2 + 1_000 },
        commits: [{ inputTokens: 7, outputTokens: 3, costMicros: 44 }],
      },
    ]);
  });

  it('the caller learns what each call is charged and by which model, and nothing of one that costs nothing', async () => {
    const { ledger } = aLedger();
    const seen: unknown[] = [];
    const onCharged = ({ id }: ResolvedModel, used: Amounts): void => void seen.push([id, used]);
    const call = (steps: PlayStep[]) =>
      compose(
        playing(() => steps),
        [metering({ ids }), calledBy({ id: 'a', ledger, onCharged })],
      ).stream({ ...aRequest({ maxOutputTokens: 100 }), model: MODEL }, anOp());
    await eventsOf(call([HELLO, endWith(7, 3)]));
    await assert.rejects(eventsOf(call([failure('TEMPER_MODEL_RATE_LIMITED')])));
    assert.deepEqual(seen, [['test/model', { inputTokens: 7, outputTokens: 3, costMicros: 44 }]]);
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
      assert.deepEqual(log[0]?.commits, [NOTHING], code);
    }
  });

  it('a stream that breaks off, times out or is abandoned without a count of the provider costs its reservation', async () => {
    const broken = aCall([HELLO, failure('TEMPER_MODEL_RATE_LIMITED')]);
    await assert.rejects(eventsOf(broken.stream()));
    const late = aCall([failure('TEMPER_MODEL_TIMEOUT')]);
    await assert.rejects(eventsOf(late.stream()));
    const abandoned = aCall([HELLO, endWith(7, 3)]);
    for await (const _ of abandoned.stream()) break;
    for (const { log } of [broken, late, abandoned]) assert.deepEqual(log[0]?.commits, [log[0]?.reserved]);
  });

  it('a stream that breaks off after a count of the provider costs this input and the received output', async () => {
    const counts = (meter: UsageMeter | undefined) =>
      meter?.counted({ inputTokens: 70, outputTokens: 1, cachedInputTokens: 0 }, false);
    const { log, stream } = aCall([counts, HELLO, failure('TEMPER_MODEL_OVERLOADED')]);
    await assert.rejects(eventsOf(stream()));
    assert.deepEqual(log[0]?.commits, [{ inputTokens: 70, outputTokens: 2, costMicros: 160 }], '"hello" has 2 tokens');
  });

  it('an answer whose reader left stays reserved until the provider has counted it', async () => {
    const done = Promise.withResolvers<void>();
    let meter: UsageMeter | undefined;
    const leaves = (given: UsageMeter | undefined) => {
      meter = given;
      meter?.unread(done.promise);
    };
    const { log, stream } = aCall([leaves, HELLO, HELLO]);
    for await (const _ of stream()) break;
    assert.deepEqual(log[0]?.commits, []);
    meter?.counted({ inputTokens: 70, outputTokens: 30, cachedInputTokens: 0 }, true);
    done.resolve();
    await flushPromises();
    assert.deepEqual(log[0]?.commits, [{ inputTokens: 70, outputTokens: 30, costMicros: 440 }]);
  });

  it('a call that was never sent costs nothing', async () => {
    const { ledger, log } = aLedger();
    const provider: ModelPipeline = {
      ...playing(() => []),
      async *stream() {
        yield* [];
        throw failure('TEMPER_CANCELLED');
      },
    };
    const pipeline = compose(provider, [metering({ ids }), calledBy({ id: 'a', ledger })]);
    await assert.rejects(eventsOf(pipeline.stream({ ...aRequest(), model: MODEL }, anOp())));
    assert.deepEqual(log[0]?.commits, [NOTHING]);
  });

  it('an attempt that the provider may charge costs its input, although a retry answered', async () => {
    const attempt = (code: ErrorCode) => (meter: UsageMeter | undefined) => {
      meter?.failed(failure(code));
      meter?.sent();
    };
    for (const [codes, inputs] of [
      [['TEMPER_MODEL_TIMEOUT'], 1],
      [['TEMPER_MODEL_TIMEOUT', 'TEMPER_MODEL_RATE_LIMITED', 'TEMPER_MODEL_TIMEOUT'], 2],
      [['TEMPER_MODEL_OVERLOADED'], 0],
    ] as const) {
      const { log, stream } = aCall([...codes.map(attempt), HELLO, endWith(7, 3)]);
      await eventsOf(stream());
      const estimate = log[0]?.reserved.inputTokens ?? 0;
      assert.equal(log[0]?.commits[0]?.inputTokens, 7 + inputs * estimate, codes.join());
    }
    const { log, stream } = aCall([attempt('TEMPER_MODEL_TIMEOUT'), failure('TEMPER_MODEL_RATE_LIMITED')]);
    await assert.rejects(eventsOf(stream()));
    assert.deepEqual(
      [log[0]?.commits[0]?.inputTokens, log[0]?.commits[0]?.outputTokens],
      [log[0]?.reserved.inputTokens, 0],
    );
  });

  it('a call that is cancelled while it waits for a retry of a rejected attempt costs nothing', async () => {
    const rejected = (meter: UsageMeter | undefined) => meter?.failed(failure('TEMPER_MODEL_RATE_LIMITED'));
    const { log, stream } = aCall([rejected, failure('TEMPER_CANCELLED')]);
    await assert.rejects(eventsOf(stream()));
    assert.deepEqual(log[0]?.commits, [NOTHING]);
  });

  it('a request that the provider rejects as invalid costs nothing, and an answer with an invalid format costs its reservation', async () => {
    const rejected = new TemperError('TEMPER_MODEL_FORMAT', 'no', { details: { status: 400 } });
    const refused = aCall([rejected]);
    await assert.rejects(eventsOf(refused.stream()));
    assert.deepEqual(refused.log[0]?.commits, [NOTHING]);
    const invalid = aCall([failure('TEMPER_MODEL_FORMAT')]);
    await assert.rejects(eventsOf(invalid.stream()));
    assert.deepEqual(invalid.log[0]?.commits, [invalid.log[0]?.reserved]);
  });

  it('a count that is missing, negative or not a number is replaced by the estimate', async () => {
    for (const usage of [endWith(0, 0), endWith(-5, -1), endWith(Number.NaN, Number.NaN)]) {
      const { log, stream } = aCall([HELLO, usage]);
      await eventsOf(stream());
      const inputTokens = log[0]?.reserved.inputTokens ?? 0;
      assert.ok(inputTokens > 0);
      assert.deepEqual(log[0]?.commits, [{ inputTokens, outputTokens: 2, costMicros: inputTokens * 2 + 20 }]);
    }
  });

  it('a count below what the bytes have at least is raised to that, and runs of one character may have few tokens', async () => {
    const words = 'Some words of a request that a server counts as one token. ';
    const said: ModelEvent = { type: 'text', text: words.repeat(40) };
    const request = aRequest({ maxOutputTokens: 100, messages: [{ role: 'user', text: words.repeat(100) }] });
    const { log, stream } = aCall([said, endWith(1, 1)], false, request);
    await eventsOf(stream());
    const { inputTokens = 0, outputTokens = 0 } = log[0]?.commits[0] ?? {};
    assert.ok(inputTokens > (words.length * 90) / 16, `${inputTokens}`);
    assert.ok(outputTokens > (words.length * 35) / 16, `${outputTokens}`);
    const blank = aRequest({ maxOutputTokens: 100, messages: [{ role: 'user', text: ' '.repeat(20_000) }] });
    const run = aCall([{ type: 'text', text: '-'.repeat(5_000) }, endWith(300, 80)], false, blank);
    await eventsOf(run.stream());
    assert.deepEqual(run.log[0]?.commits[0], { inputTokens: 300, outputTokens: 80, costMicros: 1_400 });
  });

  it('an attempt for which the provider counted input is not free, whatever error follows', async () => {
    const counts = (meter: UsageMeter | undefined) =>
      meter?.counted({ inputTokens: 70, outputTokens: 0, cachedInputTokens: 0 }, false);
    const failed = (meter: UsageMeter | undefined) => meter?.failed(failure('TEMPER_MODEL_OVERLOADED'));
    const { log, stream } = aCall([counts, failed, failure('TEMPER_MODEL_OVERLOADED')]);
    await assert.rejects(eventsOf(stream()));
    assert.deepEqual(log[0]?.commits, [{ inputTokens: 70, outputTokens: 0, costMicros: 140 }]);
    const sent = (meter: UsageMeter | undefined) => meter?.sent();
    const retried = aCall([counts, failed, sent, HELLO, endWith(7, 3)]);
    await eventsOf(retried.stream());
    assert.equal(retried.log[0]?.commits[0]?.inputTokens, 77);
  });

  it('an implausibly large count is limited by the bytes of the request and by the output limit', async () => {
    const { log, stream } = aCall([endWith(1e300, Number.POSITIVE_INFINITY)]);
    await eventsOf(stream());
    const { inputTokens = 0, outputTokens } = log[0]?.commits[0] ?? {};
    assert.ok(inputTokens > 16_384 && inputTokens < 17_000, String(inputTokens));
    assert.equal(outputTokens, 0, 'infinity is no count');
    const large = aCall([endWith(7, 1e300)]);
    await eventsOf(large.stream());
    assert.deepEqual(large.log[0]?.commits[0]?.outputTokens, 100);
  });

  it('every member of a request counts, also ids, names and schemas', async () => {
    const long = 'x'.repeat(30_000);
    const tool = { name: 'look', description: '', inputSchema: {} };
    const requests = [
      aRequest({ messages: [{ role: 'tool', toolCallId: long, name: '', text: '', isError: false }] }),
      aRequest({ messages: [{ role: 'tool', toolCallId: '', name: long, text: '', isError: false }] }),
      aRequest({ messages: [{ role: 'assistant', text: '', toolCalls: [{ id: long, name: '', arguments: '' }] }] }),
      aRequest({ tools: [{ ...tool, inputSchema: { [long]: {} } }] }),
      aRequest({ tools: [{ ...tool, description: long }] }),
    ];
    for (const request of requests) {
      const { log, stream } = aCall([endWith(1, 1)], false, request);
      await eventsOf(stream());
      assert.ok((log[0]?.reserved.inputTokens ?? 0) >= 10_000, JSON.stringify(request).slice(0, 200));
    }
  });

  it('a request that cannot fit into the window of its model is refused before it is reserved and sent', async () => {
    const limit = 8 * MODEL.contextTokens;
    const request = aRequest({ messages: [{ role: 'user', text: 'x'.repeat(limit) }] });
    const { log, provider, stream } = aCall([endWith(1, 1)], false, request);
    await assert.rejects(eventsOf(stream()), (error) => {
      assert.ok(isTemperError(error, 'TEMPER_MODEL_CONTEXT_OVERFLOW'));
      assert.match(error.message, /at most 1024000 fit into its context window of 128000 tokens/);
      return true;
    });
    assert.deepEqual([log, provider.asked], [[], []]);
  });

  it('a charged call without a caller fails before it is sent', async () => {
    const provider = playing(() => [endWith(1, 1)]);
    const pipeline = compose(provider, [metering({ ids })]);
    const answer = eventsOf(pipeline.stream({ ...aRequest(), model: MODEL }, anOp()));
    await assert.rejects(answer, (error) => isTemperError(error, 'TEMPER_INTERNAL'));
    assert.deepEqual(provider.asked, []);
  });

  it('a denied call reaches no provider and no fallback', async () => {
    const { ledger } = aLedger(true);
    const provider = playing(() => [endWith(1, 1)]);
    const pipeline = compose(provider, [
      metering({ ids }),
      calledBy({ id: 'a', ledger }),
      fallbacks([aModel('b/two')]),
    ]);
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
      metering({ ids }),
      calledBy({ id: 'a', ledger }),
      fallbacks([aModel('b/two')], (requested, model) => answered.push(`${requested.id} → ${model.id}`)),
    ];
    await eventsOf(compose(provider, layers).stream({ ...aRequest(), model: MODEL }, anOp()));
    assert.deepEqual(provider.asked, ['test/model', 'b/two']);
    assert.deepEqual(
      log.map(({ commits }) => commits),
      [[NOTHING], [{ inputTokens: 10, outputTokens: 10, costMicros: 40 }]],
    );
    assert.deepEqual(answered, ['test/model → b/two']);
  });

  it('embeddings cost the count of the provider, else their estimate, and nothing when the provider refuses them', async () => {
    const counts = (meter: UsageMeter | undefined) =>
      meter?.counted({ inputTokens: 9, outputTokens: 0, cachedInputTokens: 0 }, true);
    const counted = aCall([counts]);
    await counted.pipeline.embed(['12345678', '1'], anOp());
    assert.deepEqual(counted.log[0]?.commits, [{ inputTokens: 9, outputTokens: 0, costMicros: 9 }]);
    const done = aCall([]);
    await done.pipeline.embed(['日'.repeat(30_000)], anOp());
    const { inputTokens = 0 } = done.log[0]?.commits[0] ?? {};
    assert.ok(inputTokens >= 60_000, `${inputTokens} tokens`);
    const refused = aCall([failure('TEMPER_MODEL_NOT_FOUND')]);
    await assert.rejects(refused.pipeline.embed(['1'], anOp()));
    assert.deepEqual(refused.log[0]?.commits, [NOTHING]);
  });
});

describe('the size of a text', () => {
  it('the size counts UTF-8 bytes exactly', () => {
    for (const text of ['', 'plain', 'ÄÖ', '日本語', '😀', 'mixed Ж 漢 🎉 1'])
      assert.equal(textSize(text).bytes, Buffer.byteLength(text), text);
  });

  it('the estimate of a text has the documented weight of each character', () => {
    const tokens = (text: string): number => textSize(text.repeat(300)).tokens / 300;
    assert.deepEqual(['a', ' ', 'A', '7', '{', '\n'].map(tokens), [1 / 3, 1 / 3, 2 / 3, 1, 1, 1]);
    assert.deepEqual(['é', '日', '😀'].map(tokens), [4 / 3, 2, 8 / 3]);
  });
});
