import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { publicData } from '../../test/support/public-data.ts';
import { isTemperError } from '../lib/errors.ts';
import {
  aRequest,
  anOp,
  rawHttpServer,
  callsOf,
  eventsOf,
  modelOver,
  textOf,
  type WireName,
} from './raw-http-server.testing.ts';
import type { ModelEvent } from './port.ts';

interface Recording {
  id: string;
  source: string;
  api: WireName;
  stream: boolean;
  status: number;
  headers: Record<string, string>;
  body: string;
}

const { file, present, skip } = publicData('wire/recordings.jsonl');
const recordings = present
  ? readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Recording)
  : [];
const named = (part: string): Recording => {
  const found = recordings.find((recording) => recording.source.includes(part));
  assert.ok(found, part);
  return found;
};
/** Recordings that are not an answer, and the error that each must become. */
const REFUSED: Record<string, string> = {
  'togetherai-reranking': 'TEMPER_MODEL_FORMAT',
  'openai-error.1': 'TEMPER_MODEL_BILLING',
};

/** Sends the recorded bytes, in one piece or in chunks, through the real SDK. */
async function played(recording: Recording, chunkBytes = Number.POSITIVE_INFINITY): Promise<ModelEvent[]> {
  const bytes = Buffer.from(recording.body);
  await using server = await rawHttpServer((_request, response) => {
    response.writeHead(recording.status, recording.headers);
    const size = Math.min(chunkBytes, bytes.byteLength);
    for (let start = 0; start < bytes.byteLength; start += size) response.write(bytes.subarray(start, start + size));
    response.end();
  });
  return await eventsOf(modelOver(recording.api, server.url).stream(aRequest(), anOp()));
}

function assertWellFormed(events: readonly ModelEvent[]): void {
  const ends = events.filter((event) => event.type === 'end');
  assert.equal(ends.length, 1, 'exactly one end');
  assert.equal(events.at(-1)?.type, 'end', 'nothing after the end');
  const end = ends[0];
  const calls = callsOf(events);
  assert.equal(end?.stopReason === 'tool-calls', calls.length > 0, 'tool calls and the stop reason agree');
  for (const count of Object.values(end?.usage ?? {})) assert.ok(Number.isSafeInteger(count) && count >= 0);
  assert.ok((end?.usage.cachedInputTokens ?? 0) <= (end?.usage.inputTokens ?? 0));
  assert.ok(events.length > 1 || end?.stopReason === 'refusal', 'something was said or done');
}

describe('recorded provider answers', { skip }, () => {
  it('the file has at least 78 recordings', () => {
    assert.ok(recordings.length >= 78);
  });

  for (const recording of recordings) {
    const refusal = Object.entries(REFUSED).find(([part]) => recording.source.includes(part))?.[1];
    const name = recording.source.split('/').at(-1);
    it(`${recording.id} ${name} ${refusal ? `is rejected with ${refusal}` : 'gives the same events in one piece and in chunks of 7 bytes'}`, async () => {
      if (refusal !== undefined) {
        for (const size of [undefined, 7])
          await assert.rejects(played(recording, size), (error) => isTemperError(error) && error.code === refusal);
        return;
      }
      const whole = await played(recording);
      assertWellFormed(whole);
      assert.deepEqual(await played(recording, 7), whole);
    });
  }
});

describe('events of recorded answers', { skip }, () => {
  it('the adapter assembles streamed tool arguments', async () => {
    const events = await played(named('openai-client-tool-search.2'));
    assert.deepEqual(callsOf(events), [
      { name: 'get_weather', arguments: { location: 'San Francisco, CA', unit: 'fahrenheit' } },
    ]);
  });

  it('the adapter unwraps a parallel wrapper with two calls', async () => {
    assert.deepEqual(callsOf(await played(named('parallel-tool-call-wrapper'))), [
      { name: 'weather', arguments: { location: 'San Francisco' } },
      { name: 'cityAttractions', arguments: { city: 'Rome' } },
    ]);
  });

  it('the stop reason is refusal where the model refused', async () => {
    for (const part of ['anthropic-refusal.json', 'anthropic-refusal-no-details.json']) {
      const end = (await played(named(part))).at(-1);
      assert.equal(end?.type === 'end' && end.stopReason, 'refusal', part);
    }
  });

  it('a message_start that is sent twice starts one message', async () => {
    const events = await played(named('duplicate-message-start'));
    assert.equal(textOf(events), 'Hello, World!');
    assert.deepEqual(events.at(-1), {
      type: 'end',
      stopReason: 'stop',
      usage: { inputTokens: 17, outputTokens: 227, cachedInputTokens: 0 },
      model: 'claude-3-haiku-20240307',
    });
  });

  it('hosted tools of the provider become provider events, never tool calls', async () => {
    const events = await played(named('openai-code-interpreter-tool.1'));
    assert.deepEqual(callsOf(events), []);
    assert.ok(events.some((event) => event.type === 'provider' && event.name === 'code_interpreter_call'));
  });

  it('reasoning tokens that are missing from the completion count are output tokens', async () => {
    const end = (await played(named('xai-text'))).at(-1);
    assert.deepEqual(end?.type === 'end' && end.usage, { inputTokens: 12, outputTokens: 322, cachedInputTokens: 2 });
  });

  it('text that is in deltas, item and completed response is emitted once', async () => {
    const events = await played(named('github-copilot-id-rotation'));
    assert.equal(textOf(events).split('There are').length, 2);
    assert.equal(events.filter((event) => event.type === 'reasoning').length, 1);
  });

  it('the adapter stops reading at the end of the first answer', async () => {
    const events = await played(named('anthropic-programmatic-tool-calling'));
    assert.deepEqual(callsOf(events), [{ name: 'rollDie', arguments: { player: 'player1' } }]);
  });
});
