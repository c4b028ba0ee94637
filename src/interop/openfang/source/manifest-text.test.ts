import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseOpenFangManifest } from './manifest-text.ts';

const problemOf = (text: string, format: 'toml' | 'json' = 'toml'): string => {
  const parsed = parseOpenFangManifest(text, format);
  return 'problem' in parsed ? parsed.problem : '';
};

describe('the text of a manifest of OpenFang', () => {
  it('dates and numbers without a JSON form become texts', () => {
    const parsed = parseOpenFangManifest('a = 1979-05-27T07:32:00Z\nb = inf\nc = nan\nd = 1_000', 'toml');
    assert.deepEqual(parsed, { manifest: { a: '1979-05-27T07:32:00.000Z', b: 'Infinity', c: 'NaN', d: 1000 } });
  });

  it('keys that name a prototype are ordinary members', () => {
    const parsed = parseOpenFangManifest('[__proto__]\nname = "x"\n[constructor]\nprototype = 1', 'toml');
    assert.ok('manifest' in parsed);
    assert.deepEqual(Object.keys(parsed.manifest), ['__proto__', 'constructor']);
    assert.equal(Object.getPrototypeOf(parsed.manifest), Object.prototype);
    assert.equal((parsed.manifest as { name?: string }).name, undefined);
  });

  it('a syntax error names its line, and repeats no line of the file', () => {
    assert.match(problemOf('name = "a"\nsecret = \u0007'), /^line 2, column \d+: /);
    assert.doesNotMatch(problemOf('secret_value = ?'), /secret_value/);
    assert.match(problemOf('a = 1\na = 2'), /redefine/);
    assert.match(problemOf('a = 99999999999999999999'), /losslessly/);
  });

  it('a JSON text is read, and a key that occurs twice is refused', () => {
    assert.deepEqual(parseOpenFangManifest('{"name": "a"}', 'json'), { manifest: { name: 'a' } });
    assert.match(problemOf('{"name": "a", "name": "b"}', 'json'), /occurs twice/);
    assert.match(problemOf('[1]', 'json'), /no table of keys/);
  });

  it('deep and large texts are refused', () => {
    assert.match(problemOf(`a = ${'['.repeat(100)}${']'.repeat(100)}`), /nested/);
    assert.match(problemOf(`[${Array.from({ length: 100 }, () => 'a').join('.')}]`), /nested deeper than 32/);
    assert.match(problemOf(`a = [${'1,'.repeat(20_000)}]`), /more than 10000 values/);
    assert.match(problemOf('x'.repeat(1_000_000)), /line 1/);
  });
});
