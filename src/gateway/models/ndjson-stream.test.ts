import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { type Retry, TemperError } from '../../lib/errors.ts';
import type { ModelEvent } from '../../models/port.ts';
import { NdjsonModelStream } from './ndjson-stream.ts';

const END: ModelEvent = {
  type: 'end',
  stopReason: 'stop',
  usage: { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 },
  model: 'm',
};
/** Every sleep takes one millisecond. */
const fastClock: Clock = { ...systemClock, sleep: (_milliseconds, signal) => systemClock.sleep(1, signal) };

async function read(events: AsyncIterable<ModelEvent>) {
  const failures: unknown[] = [];
  const answer = new NdjsonModelStream(events, { clock: systemClock, failed: (error) => failures.push(error) });
  const lines: string[] = [];
  for await (const line of answer.lines()) lines.push(line);
  return { lines, failures };
}

describe('the NDJSON stream of a model response', () => {
  it('the lines are the events of the response, up to the end event', async () => {
    const { lines } = await read(
      (async function* (): AsyncGenerator<ModelEvent> {
        yield { type: 'text', text: 'hi\n' };
        yield END;
        yield { type: 'text', text: 'never' };
      })(),
    );
    assert.deepEqual(
      lines.map((line) => JSON.parse(line)),
      [{ type: 'text', text: 'hi\n' }, END],
    );
  });

  it('repetitions of the call are lines before the next event, up to a limit', async () => {
    const repeated = { model: 'a/b', attempt: 2, code: 'TEMPER_MODEL_OVERLOADED', milliseconds: 300 } as const;
    const ended = Promise.withResolvers<ModelEvent>();
    const events = (async function* (): AsyncGenerator<ModelEvent> {
      yield await ended.promise;
    })();
    const answer = new NdjsonModelStream(events, {
      clock: systemClock,
      failed: (error) => assert.fail(String(error)),
    });
    for (let times = 0; times < 100; times += 1) answer.repeats(repeated);
    ended.resolve(END);
    const lines: unknown[] = [];
    for await (const line of answer.lines()) lines.push(JSON.parse(line));
    assert.deepEqual(lines[0], { type: 'retry', ...repeated });
    assert.deepEqual([lines.length, lines.at(-1)], [65, END]);
  });

  it('empty keep-alive lines are sent while the model is silent', async () => {
    const thought = Promise.withResolvers<void>();
    const thinking = (async function* (): AsyncGenerator<ModelEvent> {
      await thought.promise;
      yield END;
    })();
    const answer = new NdjsonModelStream(thinking, { clock: fastClock, failed: (error) => assert.fail(String(error)) });
    const lines: string[] = [];
    for await (const line of answer.lines()) {
      lines.push(line);
      if (lines.length === 3) thought.resolve();
    }
    assert.deepEqual(lines.slice(0, 3), ['\n', '\n', '\n']);
    assert.deepEqual(JSON.parse(lines.at(-1) ?? ''), END);
  });

  it('the last line is the error of the provider; an internal error exposes no details', async () => {
    const failing = async function* (error: Error): AsyncGenerator<ModelEvent> {
      yield { type: 'text', text: 'a' };
      throw error;
    };
    const provider = await read(failing(new TemperError('TEMPER_MODEL_OVERLOADED', 'too much')));
    assert.deepEqual(JSON.parse(provider.lines.at(-1) ?? ''), {
      type: 'error',
      code: 'TEMPER_MODEL_OVERLOADED',
      message: 'too much',
    });
    assert.deepEqual(provider.failures, []);
    const internal = await read(failing(new Error('secret detail')));
    assert.ok(!internal.lines.join('').includes('secret'));
    assert.equal(internal.failures.length, 1);
  });

  it('the error line carries when a repeated call may succeed', async () => {
    const lineOf = async (retry: Retry) => {
      const failing = async function* (): AsyncGenerator<ModelEvent> {
        yield { type: 'text', text: 'a' };
        throw new TemperError('TEMPER_MODEL_RATE_LIMITED', 'busy', { retry });
      };
      return JSON.parse((await read(failing())).lines.at(-1) ?? '') as { retry?: unknown };
    };
    assert.equal((await lineOf(1_500.2)).retry, 1_501);
    assert.equal((await lineOf('backoff')).retry, 'backoff');
    assert.ok(!('retry' in (await lineOf('never'))));
  });

  it('a response without an end event ends with an error line', async () => {
    const { lines } = await read((async function* (): AsyncGenerator<ModelEvent> {})());
    assert.equal(JSON.parse(lines.at(-1) ?? '').code, 'TEMPER_MODEL_FORMAT');
  });

  it('the model call is cancelled when the reader stops early, and when reading never started', async () => {
    let ended = 0;
    const events = async function* (): AsyncGenerator<ModelEvent> {
      try {
        for (;;) yield { type: 'text', text: 'more' };
      } finally {
        ended += 1;
      }
    };
    const deps = { clock: systemClock, failed: () => assert.fail('no failure') };
    for await (const _ of new NdjsonModelStream(events(), deps).lines()) break;
    const unread = new NdjsonModelStream(events(), deps);
    await unread.firstError();
    await unread.cancel();
    assert.equal(ended, 2);
  });
});
