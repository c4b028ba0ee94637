import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { isTemperError } from '../lib/errors.ts';
import { aRequest, anOp, rawHttpServer, eventsOf, textOf } from './raw-http-server.testing.ts';
import { createModels, type NamedModelsConfig, openModels } from './named-models.ts';
import { costInMicros, type PricedTokens } from './price.ts';
import type { ModelsDeps, ProviderType } from './providers.ts';
import { startReplay } from './replay/server.ts';

const DEPS: ModelsDeps = { clock: systemClock, random: () => 0, environment: {}, retry: { maxAttempts: 1 } };
const replay = () => startReplay({ script: { rules: [{ answer: { text: 'from {{model}}' } }] }, clock: systemClock });

describe('createModels', () => {
  it('createModels routes by the name before the first slash and sends the rest as the model', async () => {
    await using server = await replay();
    const config: NamedModelsConfig = {
      providers: [
        { name: 'openai', type: 'openai', baseUrl: `${server.url}/v1` },
        { name: 'answers', type: 'openai-responses', baseUrl: `${server.url}/v1` },
        { name: 'anthropic', type: 'anthropic', baseUrl: server.url },
        { name: 'local', type: 'openai-compatible', baseUrl: `${server.url}/v1` },
      ],
      aliases: { 'default/default': 'local/some/small-one' },
    };
    const models = createModels(config, DEPS);
    const say = async (model: string): Promise<string> =>
      textOf(await eventsOf(models.stream(aRequest({ model }), anOp())));
    assert.equal(await say('openai/gpt'), 'from gpt');
    assert.equal(await say('answers/gpt'), 'from gpt');
    assert.equal(await say('anthropic/claude'), 'from claude');
    assert.equal(await say('local/some/small-one'), 'from some/small-one');
    assert.equal(await say('default/default'), 'from some/small-one');
    assert.deepEqual(
      server.requests.map((request) => request.path.split('/').at(-1)),
      ['completions', 'responses', 'messages', 'completions', 'completions'],
    );
    assert.equal(server.requests[0]?.body['max_completion_tokens'], 1_000);
    assert.equal(server.requests[3]?.body['max_tokens'], 1_000);
  });

  it('the error for a model without a provider lists the configured providers', async () => {
    const models = createModels({ providers: [{ name: 'openai', type: 'openai' }] }, DEPS);
    for (const model of ['other/gpt', 'openai', 'default/default']) {
      await assert.rejects(eventsOf(models.stream(aRequest({ model }), anOp())), (error) => {
        assert.ok(isTemperError(error, 'TEMPER_MODEL_UNAVAILABLE'), model);
        assert.match(error.message, /configured providers: openai/);
        return true;
      });
    }
  });

  it('createModels rejects duplicate providers and a compatible provider without a baseUrl', () => {
    const twice = { name: 'a', type: 'openai' } as const;
    for (const providers of [[twice, twice], [{ name: 'a', type: 'openai-compatible' } as const]])
      assert.throws(
        () => createModels({ providers }, DEPS),
        (error) => isTemperError(error, 'TEMPER_MANIFEST_INVALID'),
      );
  });

  it('createModels reads a key file at every call and reports a missing key', async () => {
    const seen: (string | undefined)[] = [];
    await using server = await rawHttpServer((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(401, { 'content-type': 'application/json' });
      response.end('{"error":{"message":"no","code":"invalid_api_key"}}');
    });
    const folder = await mkdtemp(join(tmpdir(), 'keys-'));
    const keyFile = join(folder, 'key');
    try {
      const baseUrl = `${server.url}/v1`;
      const models = createModels(
        {
          providers: [
            { name: 'file', type: 'openai', baseUrl, keyFile },
            { name: 'variable', type: 'openai', baseUrl, keyEnvironment: 'SOME_KEY' },
            { name: 'unset', type: 'openai', baseUrl, keyEnvironment: 'OTHER_KEY' },
          ],
        },
        { ...DEPS, environment: { SOME_KEY: 'from-variable' } },
      );
      const refused = async (provider: string): Promise<string> => {
        try {
          await eventsOf(models.stream(aRequest({ model: `${provider}/m` }), anOp()));
        } catch (error) {
          assert.ok(isTemperError(error, 'TEMPER_MODEL_UNAUTHORIZED'));
          return error.message;
        }
        assert.fail('was not refused');
      };
      assert.match(await refused('file'), /key file .* cannot be read/);
      for (const key of ['first-key', 'second-key']) {
        await writeFile(keyFile, `${key}\n`);
        await refused('file');
      }
      await refused('variable');
      assert.match(await refused('unset'), /OTHER_KEY is not set/);
      assert.deepEqual(seen, ['Bearer first-key', 'Bearer second-key', 'Bearer from-variable']);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('embed uses the provider with an embedding model', async () => {
    await using server = await rawHttpServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(
        '{"data":[{"index":1,"embedding":[2]},{"index":0,"embedding":[1,0.5]}],"model":"e","object":"list"}',
      );
    });
    const local = { name: 'local', type: 'openai-compatible', baseUrl: `${server.url}/v1` } as const;
    const models = createModels({ providers: [{ ...local, embeddingModel: 'e' }] }, DEPS);
    assert.deepEqual(await models.embed(['a', 'b'], anOp()), [Float32Array.of(1, 0.5), Float32Array.of(2)]);
    await assert.rejects(createModels({ providers: [local] }, DEPS).embed(['a'], anOp()), (error) =>
      isTemperError(error, 'TEMPER_MODEL_NOT_FOUND'),
    );
  });
});

describe('openModels', () => {
  const config: NamedModelsConfig = {
    providers: [
      { name: 'a', type: 'openai', models: [{ name: 'm', contextWindow: 8_000, inputPrice: 0.15, outputPrice: 0.6 }] },
    ],
    aliases: { 'default/default': 'a/m' },
  };
  const usage = { inputTokens: 1_000, outputTokens: 100 };

  const costOf = (name: string, used: typeof usage): number =>
    costInMicros(openModels(config, DEPS).resolve(name).price, used);

  it('a name or an alias resolves to provider, model, prices and context window', () => {
    const resolved = {
      id: 'a/m',
      provider: 'a',
      model: 'm',
      price: { inputPrice: 0.15, outputPrice: 0.6 },
      contextTokens: 8_000,
    };
    assert.deepEqual(openModels(config, DEPS).resolve('a/m'), resolved);
    assert.deepEqual(openModels(config, DEPS).resolve('default/default'), resolved);
    assert.equal(costOf('default/default', usage), 210);
  });

  it('cached input has prices of its own; without them it costs as other input, and for Anthropic its storage a quarter more', () => {
    const model = { name: 'm', inputPrice: 4, outputPrice: 20 };
    const priced = { ...model, cachedInputPrice: 0.4, cacheCreationPrice: 8 };
    const used = { inputTokens: 1_000, outputTokens: 0, cachedInputTokens: 500, cacheCreationInputTokens: 100 };
    const cost = (type: ProviderType, own: typeof model, tokens: PricedTokens = used): number => {
      const { resolve } = openModels({ providers: [{ name: 'a', type, models: [own] }], aliases: {} }, DEPS);
      return costInMicros(resolve('a/m').price, tokens);
    };
    assert.deepEqual([cost('openai', model), cost('anthropic', model)], [4_000, 4_100]);
    assert.deepEqual([cost('openai', priced), cost('anthropic', priced)], [2_600, 2_600]);
    // Counts of a defective server do not make an answer cheaper than its input at the lowest price.
    const absurd = { inputTokens: 1_000, outputTokens: 0, cachedInputTokens: 9_000, cacheCreationInputTokens: 0 };
    assert.equal(cost('openai', priced, absurd), 400);
  });

  it('a model without a configured price costs $1 and $3 per million tokens and reads 128,000 tokens', () => {
    assert.equal(costOf('a/other', { inputTokens: 1_000_000, outputTokens: 1_000_000 }), 4_000_000);
    assert.equal(costOf('b/m', usage), 1_300);
    assert.equal(openModels(config, DEPS).resolve('b/m').contextTokens, 128_000);
  });
});
