import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import type { CliIo } from '../io.ts';
import { providersFromEnvironment, readProviders, replayProviders } from './providers.ts';

describe('a providers file', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-providers-'));
  });
  after(() => rm(folder, { recursive: true }));

  async function read(text: string) {
    await writeFile(join(folder, 'providers.yaml'), text);
    return readProviders('providers.yaml', { cwd: folder } as CliIo);
  }

  it('a providers file configures providers, their models and aliases', async () => {
    const found = await read(`
providers:
  - name: local
    type: openai-compatible
    baseUrl: http://127.0.0.1:8080/v1
    models: [{name: small, contextWindow: 8000, inputPrice: 0.1, outputPrice: 0.2}]
aliases: {default/default: local/small}
`);
    assert.equal(found.providers[0]?.models?.[0]?.contextWindow, 8_000);
    assert.deepEqual(found.aliases, { 'default/default': 'local/small' });
  });

  for (const [what, text, place] of [
    ['no list of providers', 'aliases: {}', 'providers must be a list'],
    ['an unknown type', 'providers: [{name: a, type: opneai}]', 'providers[0].type must be one of'],
    [
      'a mistyped member',
      'providers: [{name: a, type: openai, keyEnviroment: K}]',
      'providers[0].keyEnviroment is not known',
    ],
    [
      'a price that is not a number',
      'providers: [{name: a, type: openai, models: [{name: m, inputPrice: cheap}]}]',
      'inputPrice must be a number',
    ],
    ['a nameless provider', 'providers: [{type: openai}]', 'providers[0].name must be a non-empty string'],
    [
      'an alias to nothing',
      'providers: [{name: a, type: openai}]\naliases: {x/y: 3}',
      'aliases.x/y must be a non-empty string',
    ],
  ] as const) {
    it(`a providers file with ${what} is refused, and the message names the field`, async () => {
      await assert.rejects(
        read(text),
        (error) => isTemperError(error, 'TEMPER_MANIFEST_INVALID') && error.message.includes(place),
      );
    });
  }

  it('a providers file that is not YAML is refused, and the message names the file', async () => {
    await assert.rejects(
      read('a: [1'),
      (error) => isTemperError(error, 'TEMPER_MANIFEST_INVALID') && error.message.includes('providers.yaml'),
    );
  });
});

describe('providers without a providers file', () => {
  it('providers come from the API keys, and the author model is never the judge', () => {
    for (const name of ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY']) {
      const { aliases } = providersFromEnvironment({ [name]: 'key' });
      const author = aliases['default/default'];
      for (const examiner of ['default/judge', 'default/safety', 'default/correctness'])
        assert.notEqual(aliases[examiner], author);
      assert.notEqual(aliases['default/safety'], aliases['default/correctness']);
    }
  });

  it('the variable of the official client names the URL of the provider, and a value that is no URL is refused', () => {
    for (const vendor of ['OPENAI', 'ANTHROPIC']) {
      const key = { [`${vendor}_API_KEY`]: 'key' };
      const proxy = 'https://models.example.com/v1';
      const urlsOf = (value: string) =>
        providersFromEnvironment({ ...key, [`${vendor}_BASE_URL`]: value }).providers.map(({ baseUrl }) => baseUrl);
      assert.deepEqual(urlsOf(proxy), [proxy]);
      assert.deepEqual(urlsOf(''), [undefined]);
      for (const bad of ['models.example.com', 'file:///etc/passwd']) {
        assert.throws(
          () => urlsOf(bad),
          (error) => isTemperError(error, 'TEMPER_USAGE') && error.message.startsWith(`${vendor}_BASE_URL`),
        );
      }
    }
  });

  it('the error without an API key states the options', () => {
    assert.throws(
      () => providersFromEnvironment({}),
      (error) => {
        assert.ok(isTemperError(error, 'TEMPER_MODEL_UNAVAILABLE'), String(error));
        for (const option of ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', '--providers FILE', '--model-script FILE'])
          assert.ok(error.message.includes(option), `${option}: ${error.message}`);
        return true;
      },
    );
  });

  it('all providers use the replay server of a script', () => {
    const { providers } = replayProviders('http://127.0.0.1:1');
    assert.ok(providers.every(({ baseUrl }) => baseUrl?.startsWith('http://127.0.0.1:1')));
  });
});
