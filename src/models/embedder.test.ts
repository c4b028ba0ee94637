import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type EmbeddingServer, startEmbeddingServer } from '../../test/support/embedding-server.ts';
import { systemClock } from '../lib/clock.ts';
import { isTemperError } from '../lib/errors.ts';
import { openModels } from './named-models.ts';
import { anOp } from './raw-http-server.testing.ts';
import { parseNamedModels } from './read-named-models.ts';

const DEPS = { clock: systemClock, random: () => 0, environment: {}, retry: { maxAttempts: 1 } };

/** The configuration of two servers, the first of which has an embedding model of its own. */
function configOf({ url }: EmbeddingServer, other: EmbeddingServer, embedder: string) {
  return parseNamedModels('providers.yaml', {
    providers: [
      { name: 'first', type: 'openai-compatible', baseUrl: url, embeddingModel: 'small' },
      {
        name: 'tei',
        type: 'openai-compatible',
        baseUrl: other.url,
        models: [{ name: 'BAAI/bge-small-en-v1.5', inputPrice: 0, outputPrice: 0 }],
      },
    ],
    discovery: { embedder },
  });
}

describe('the embedder of discovery', () => {
  it('discovery.embedder names the provider and the model behind embed, with its price', async () => {
    await using first = await startEmbeddingServer();
    await using second = await startEmbeddingServer();
    const models = openModels(configOf(first, second, 'tei/BAAI/bge-small-en-v1.5'), DEPS);
    assert.equal(models.embedding?.id, 'tei/BAAI/bge-small-en-v1.5');
    assert.equal(models.embedding.price.inputPrice, 0);
    const [vector] = await models.pipeline.embed(['rain'], anOp());
    assert.ok(vector !== undefined && vector.length > 0);
    assert.deepEqual([first.requests.length, second.requests], [0, [['rain']]]);
  });

  it('an embedder without a configured provider, without a model or of a vendor without embeddings is refused', () => {
    const providers = [
      { name: 'claude', type: 'anthropic' },
      { name: 'tei', type: 'openai-compatible', baseUrl: 'http://tei/v1' },
    ];
    for (const embedder of ['other/m', 'tei', 'tei/', '/m', 'claude/m', '']) {
      assert.throws(
        () => parseNamedModels('providers.yaml', { providers, discovery: { embedder } }),
        (error) => isTemperError(error, 'TEMPER_MANIFEST_INVALID') && error.message.includes('discovery.embedder'),
        embedder,
      );
    }
    assert.throws(
      () => parseNamedModels('providers.yaml', { providers, discovery: { model: 'tei/m' } }),
      /discovery\.model/,
    );
  });

  it('discovery.qdrant needs a URL, and has a default prefix', () => {
    const providers = [{ name: 'tei', type: 'openai-compatible', baseUrl: 'http://tei/v1' }];
    const parse = (qdrant: object) =>
      parseNamedModels('providers.yaml', { providers, discovery: { embedder: 'tei/m', qdrant: { ...qdrant } } });
    const url = 'http://qdrant:6333';
    assert.deepEqual(parse({ url }).discovery?.qdrant, { url, prefix: 'temper' });
    for (const [changes, field] of [
      [{ url: 'qdrant' }, 'url'],
      [{ url, prefix: 'A b' }, 'prefix'],
      [{ url, keyFile: '' }, 'keyFile'],
      [{ url, apiKey: 'x' }, 'apiKey'],
    ] as const)
      assert.throws(() => parse(changes), new RegExp(`discovery\\.qdrant\\.${field}`));
  });
});
