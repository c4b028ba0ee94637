import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Amounts } from '../../ledger/port.ts';
import type { ProviderType } from '../providers.ts';
import { aRequest, eventsOf, rawHttpServer } from '../raw-http-server.testing.ts';
import { metered } from './metered.testing.ts';

/** `openai-compatible` reads the format of `openai`. */
type Format = Exclude<ProviderType, 'openai-compatible'>;

const TEXT = 'An answer of several words, which the server does not count.';
const MAX_OUTPUT = 1_000;

/** Streams TEXT with two reports of usage, each as [input, output] in the JSON of the server. */
const STREAMS: Record<Format, (first: [string, string], last: [string, string]) => string[]> = {
  openai: (...reports) =>
    reports.map(
      ([input, output], index) =>
        `data: {"model":"m","choices":[{"index":0,"delta":{"content":"${index === 0 ? TEXT : ''}"}${index === 0 ? '' : ',"finish_reason":"stop"'}}],"usage":{"prompt_tokens":${input},"completion_tokens":${output}}}`,
    ),
  'openai-responses': (first, last) => [
    `data: {"type":"response.output_text.delta","output_index":0,"delta":"${TEXT}","usage":{"input_tokens":${first[0]}}}`,
    `data: {"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":${last[0]},"output_tokens":${last[1]}}}}`,
  ],
  anthropic: (first, last) => [
    `event: message_start\ndata: {"type":"message_start","message":{"id":"a","model":"m","content":[],"usage":{"input_tokens":${first[0]},"output_tokens":${first[1]}}}}`,
    'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
    `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${TEXT}"}}`,
    `event: message_delta\ndata: {"type":"message_delta","delta":{},"usage":{"input_tokens":${first[0]},"output_tokens":${first[1]}}}`,
    `event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":${last[0]},"output_tokens":${last[1]}}}`,
    'event: message_stop\ndata: {"type":"message_stop"}',
  ],
};

async function charged(type: Format, first: [string, string], last: [string, string]) {
  await using server = await rawHttpServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`${STREAMS[type](first, last).join('\n\n')}\n\n`);
  });
  const { ledger, stream } = metered(type, server.url);
  await eventsOf(stream(aRequest({ maxOutputTokens: MAX_OUTPUT })));
  const [commit = {}] = ledger.commits;
  const [reserved = {}] = ledger.reserved;
  return { commit, reserved };
}

for (const type of ['openai', 'openai-responses', 'anthropic'] as const) {
  describe(`the charge of the usage that a server of type ${type} reports`, () => {
    for (const count of ['null', '-7', '"NaN"', '"5"', '1.5', '1e308', '1e999', '{}', '[]', 'true', '0']) {
      it(`a count of ${count} is no count: the bytes are charged`, async () => {
        const { commit, reserved } = await charged(type, [count, count], [count, count]);
        assert.equal(commit.inputTokens, reserved.inputTokens);
        const { outputTokens = 0 } = commit;
        assert.ok(outputTokens >= TEXT.length / 4 && outputTokens <= MAX_OUTPUT, JSON.stringify(commit));
      });
    }

    it('a huge count is limited, so that one answer cannot use up a quota', async () => {
      const { commit } = await charged(
        type,
        ['9007199254740991', '9007199254740991'],
        ['9007199254740991', '9007199254740991'],
      );
      assert.ok((commit.inputTokens ?? 0) < 17_000, JSON.stringify(commit));
      assert.equal(commit.outputTokens, MAX_OUTPUT);
    });

    it('a count of one token for everything is raised to the least that the bytes have', async () => {
      const { commit } = await charged(type, ['1', '1'], ['1', '1']);
      const { inputTokens = 0, outputTokens = 0 }: Amounts = commit;
      assert.ok(inputTokens >= 4 && outputTokens >= 3, JSON.stringify(commit));
    });

    it('a count that shrinks during the answer keeps its largest value', async () => {
      if (type === 'openai-responses') return assertLastCount();
      const { commit } = await charged(type, ['500', '90'], ['20', '30']);
      assert.deepEqual([commit.inputTokens, commit.outputTokens], [500, 90]);
    });

    /** This format has one report of usage, in its last event. */
    async function assertLastCount(): Promise<void> {
      const { commit } = await charged(type, ['500', '90'], ['20', '30']);
      assert.deepEqual([commit.inputTokens, commit.outputTokens], [20, 30]);
    }
  });
}

describe('cached tokens', () => {
  const CACHED: Record<Format, [report: string, input: number]> = {
    openai: ['{"prompt_tokens":900,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":800}}', 900],
    'openai-responses': ['{"input_tokens":900,"output_tokens":20,"input_tokens_details":{"cached_tokens":9000}}', 900],
    anthropic: [
      '{"input_tokens":100,"output_tokens":20,"cache_read_input_tokens":700,"cache_creation_input_tokens":100}',
      900,
    ],
  };
  const BODIES: Record<Format, (usage: string) => string> = {
    openai: (usage) =>
      `{"model":"m","choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}],"usage":${usage}}`,
    'openai-responses': (usage) =>
      `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}],"usage":${usage}}`,
    anthropic: (usage) => `{"content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":${usage}}`,
  };
  for (const type of ['openai', 'openai-responses', 'anthropic'] as const) {
    it(`cached tokens of ${type} are charged as input, once`, async () => {
      const [report, input] = CACHED[type];
      await using server = await rawHttpServer((_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(BODIES[type](report));
      });
      const { ledger, stream } = metered(type, server.url);
      const events = await eventsOf(stream(aRequest()));
      const end = events.at(-1);
      assert.ok(end?.type === 'end' && end.usage.cachedInputTokens <= end.usage.inputTokens);
      assert.deepEqual([ledger.commits[0]?.inputTokens, ledger.commits[0]?.outputTokens], [input, 20]);
    });
  }
});
