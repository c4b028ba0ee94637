import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { ModelRequest } from '../port.ts';
import type { ProviderType } from '../providers.ts';
import { aRequest, eventsOf, rawHttpServer } from '../raw-http-server.testing.ts';
import { type ReplayServer, startReplay } from '../replay/server.ts';
import { metered } from './metered.testing.ts';

const USAGE = { inputTokens: 5_000, outputTokens: 40, cachedInputTokens: 0 };
const TYPES: readonly ProviderType[] = ['openai', 'openai-responses', 'anthropic'];
const MAX_OUTPUT = 1_000;

const request = (changes: Partial<ModelRequest> = {}) => aRequest({ maxOutputTokens: MAX_OUTPUT, ...changes });

for (const type of TYPES) {
  describe(`the charge of an answer over ${type}`, () => {
    let replay: ReplayServer;
    const replayClock = new FakeClock();

    before(async () => {
      const text = 'An answer of several words, sent in many pieces to its reader.';
      const script = {
        rules: [
          { when: { lastUser: 'stored' }, answer: { text, usage: { ...USAGE, cacheCreationInputTokens: 1_000 } } },
          { when: { lastUser: 'late' }, answer: { text, usage: USAGE, delayMilliseconds: 1_000 } },
          // Several servers report no usage.
          { when: { lastUser: 'uncounted' }, answer: { text, usage: { inputTokens: 0, outputTokens: 0 } } },
          {
            when: { lastUser: 'endless' },
            answer: { text, usage: USAGE, chunkBytes: 400, chunkDelayMilliseconds: 60_000 },
          },
          { answer: { text, usage: USAGE } },
        ],
      };
      replay = await startReplay({ script, clock: replayClock });
    });
    after(() => replay[Symbol.asyncDispose]());

    const asking = (text: string) => request({ messages: [{ role: 'user', text }] });

    it('an answer that is read to its end costs the count of the provider', async () => {
      const { ledger, stream } = metered(type, replay.url);
      await eventsOf(stream(request()));
      assert.deepEqual(ledger.commits, [{ inputTokens: 5_000, outputTokens: 40, costMicros: 5_120 }]);
    });

    it('an answer of which the provider stored input in its cache costs that input more, and is reserved with all of it', async () => {
      const { ledger, stream } = metered(type, replay.url);
      await eventsOf(stream(asking('stored')));
      const isPriced = type === 'anthropic';
      // 1,000 of 5,000 tokens at 1.25 times the price of the default.
      assert.equal(ledger.commits[0]?.costMicros, isPriced ? 5_370 : 5_120);
      const [{ inputTokens = 0, costMicros } = {}] = ledger.reserved;
      assert.equal(costMicros, Math.ceil(inputTokens * (isPriced ? 1.25 : 1)) + 3 * MAX_OUTPUT);
    });

    it('an answer that its reader leaves after the first event costs the same input', async () => {
      const { ledger, stream } = metered(type, replay.url);
      const charged = ledger.next();
      for await (const _ of stream(request())) break;
      const { inputTokens, outputTokens = 0 } = await charged;
      assert.equal(inputTokens, 5_000);
      // Anthropic reports the input first, so the answer is not read to its end, and costs the received part of the output.
      assert.ok(type === 'anthropic' ? outputTokens > 0 && outputTokens <= 40 : outputTokens === 40, `${outputTokens}`);
    });

    it('a call that is cancelled before the provider answers ends at once, and costs what the provider counts', async () => {
      const { ledger, stream } = metered(type, replay.url);
      const cancel = new AbortController();
      const before = replay.requests.length;
      const answer = eventsOf(stream(asking('late'), cancel.signal));
      while (replay.requests.length === before) await new Promise((resolve) => setImmediate(resolve));
      const charged = ledger.next();
      cancel.abort();
      await assert.rejects(answer, (error) => isTemperError(error, 'TEMPER_CANCELLED'));
      assert.deepEqual(ledger.commits, []);
      await replayClock.advance(1_000);
      assert.equal((await charged).inputTokens, 5_000);
    });

    it('an answer without a count costs at least the bytes that were sent and received', async () => {
      for (const text of [
        '漢字'.repeat(5_000),
        '1234567890'.repeat(1_000),
        '🎉'.repeat(3_000),
        'plain words '.repeat(900),
      ]) {
        const { ledger, stream } = metered(type, replay.url);
        await eventsOf(stream(asking(`uncounted ${text}`)));
        const [read] = ledger.commits;
        assert.ok((read?.inputTokens ?? 0) >= Buffer.byteLength(text) / 3, JSON.stringify(read));
        assert.ok((read?.outputTokens ?? 0) >= 10, JSON.stringify(read));
        const charged = ledger.next();
        for await (const _ of stream(asking(`uncounted ${text}`))) break;
        const left = await charged;
        assert.equal(left.inputTokens, read?.inputTokens);
        assert.ok((left.outputTokens ?? 0) >= (read?.outputTokens ?? 0), JSON.stringify([left, read]));
      }
    });

    it('an answer without a reader is aborted after 30 seconds, and costs its reservation or the count so far', async () => {
      const clock = new FakeClock();
      const { ledger, stream } = metered(type, replay.url, clock);
      const cancel = new AbortController();
      const before = replay.requests.length;
      const answer = eventsOf(stream(asking('endless'), cancel.signal));
      while (replay.requests.length === before) await new Promise((resolve) => setImmediate(resolve));
      const charged = ledger.next();
      cancel.abort();
      await assert.rejects(answer, (error) => isTemperError(error, 'TEMPER_CANCELLED'));
      await clock.advance(30_000);
      const { inputTokens = 0, outputTokens = 0 } = await charged;
      assert.ok(inputTokens >= (ledger.reserved[0]?.inputTokens ?? 1), `${inputTokens}`);
      assert.ok(type === 'anthropic' || outputTokens === MAX_OUTPUT, `${outputTokens}`);
    });

    it('a process that does not read on aborts the answer at once, and charges its reservation or the count so far', async () => {
      const { ledger, stream } = metered(type, replay.url, systemClock, { maxUnreadMs: 0 });
      for await (const _ of stream(request())) break;
      const [charged] = ledger.commits;
      if (type === 'anthropic') assert.equal(charged?.inputTokens, 5_000);
      else assert.deepEqual(charged, ledger.reserved[0]);
    });

    it('a process that ends aborts the answers that it reads without a reader', async () => {
      const closing = new AbortController();
      const limits = { maxUnreadMs: 30_000 };
      const { ledger, stream } = metered(type, replay.url, systemClock, limits, closing.signal);
      const cancel = new AbortController();
      const before = replay.requests.length;
      const answer = eventsOf(stream(asking('late'), cancel.signal));
      while (replay.requests.length === before) await new Promise((resolve) => setImmediate(resolve));
      cancel.abort();
      await assert.rejects(answer);
      assert.deepEqual(ledger.commits, [], 'the answer is being read');
      const charged = ledger.next();
      closing.abort();
      assert.deepEqual(await charged, ledger.reserved[0]);
    });

    it('only eight answers of one caller are read without a reader, and further ones cost their reservation at once', async () => {
      const { ledger, stream } = metered(type, replay.url);
      const before = replay.requests.length;
      const cancel = new AbortController();
      const answers = Array.from({ length: 9 }, () => eventsOf(stream(asking('late'), cancel.signal)));
      while (replay.requests.length < before + 9) await new Promise((resolve) => setImmediate(resolve));
      cancel.abort();
      await Promise.allSettled(answers);
      assert.deepEqual(ledger.commits, [ledger.reserved[0]]);
      const rest = Array.from({ length: 8 }, () => ledger.next());
      await replayClock.advance(1_000);
      for (const { inputTokens } of await Promise.all(rest)) assert.equal(inputTokens, 5_000);
    });
  });
}

describe('the charge of embeddings', () => {
  it('embeddings cost the count of the provider', async () => {
    await using server = await rawHttpServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end('{"data":[{"index":0,"embedding":[1]}],"usage":{"prompt_tokens":77,"total_tokens":77}}');
    });
    const { ledger, model } = metered('openai', server.url);
    await model.embed(['text'], { signal: new AbortController().signal, deadline: Infinity, key: 'k' });
    assert.deepEqual(ledger.commits, [{ inputTokens: 77, outputTokens: 0, costMicros: 77 }]);
  });

  it('a body without the vectors is a format error, and costs the estimate', async () => {
    await using server = await rawHttpServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end('{"data":[],"usage":{"prompt_tokens":-4}}');
    });
    const { ledger, model } = metered('openai', server.url);
    const embedding = model.embed(['text'], { signal: new AbortController().signal, deadline: Infinity, key: 'k' });
    await assert.rejects(embedding, (error) => isTemperError(error, 'TEMPER_MODEL_FORMAT'));
    assert.deepEqual(ledger.commits, ledger.reserved);
  });
});
