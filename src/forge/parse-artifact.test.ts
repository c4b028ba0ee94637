import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import { aRequest, artifactOf } from './forge.testing.ts';
import { parseArtifact } from './parse-artifact.ts';

const good = artifactOf(aRequest());

/** Each JSON text of an artifact. The text that the tests vary is a member of an object there. */
const TEXTS: Record<string, (text: string) => Partial<ToolArtifact>> = {
  inputSchema: (text) => ({ inputSchema: text }),
  outputSchema: (text) => ({ outputSchema: text }),
  'the input of a test': (text) => ({ tests: [{ input: text }] }),
  'the expected output of a test': (text) => ({ tests: [{ input: '{}', expectedOutput: text }] }),
  'the input of a fixture': (text) => ({
    tests: [{ input: '{}', fixtures: [{ tool: 'fetch', input: text, output: '1' }] }],
  }),
  'the output of a fixture': (text) => ({ tests: [{ input: '{}', fixtures: [{ tool: 'fetch', output: text }] }] }),
  'the mapping of a step': (text) => ({
    implementation: { mode: 'Compose', steps: [{ name: 'one', tool: 'read', inputMapping: text }] },
  }),
};

/** Second spellings of a value, and texts that two readers can read as two values. */
const FORMS: Record<string, string> = {
  'a member that occurs twice': '{"a":1,"a":2}',
  'a member that occurs twice, once escaped': '{"a":1,"\\u0061":2}',
  'members in another order': '{"b":1,"a":2}',
  'an escape of a plain character': '{"a":"\\u0041"}',
  'an escape with capital digits': '{"a":"\\u001B"}',
  'an escaped slash': '{"a":"\\/"}',
  'a lone surrogate': '{"a":"\\ud800"}',
  'two escapes of one character': '{"a":"\\ud83d\\ude00"}',
  'white space': '{"a": 1}',
  'a line feed at the end': '{"a":1}\n',
  'a byte order mark': '\ufeff{"a":1}',
  'a minus zero': '{"a":-0}',
  'a fraction without digits': '{"a":1.0}',
  'an exponent': '{"a":1e2}',
  'a number beyond the largest one': '{"a":1e999}',
  'a number with more digits than a double has': '{"a":9007199254740993}',
  'a number that becomes zero': '{"a":1e-999}',
  'a prototype': '{"__proto__":{"a":1}}',
  'a constructor': '{"constructor":1}',
  'an escaped prototype': '{"\\u005f_proto__":1}',
  'two values': '{"a":1}{"a":2}',
  'a comment': '{"a":1}/* b */',
  nothing: '',
  'too many levels': `{"a":${'['.repeat(70)}${']'.repeat(70)}}`,
};

describe('an artifact', () => {
  it('an artifact that a request gives is read', () => {
    assert.ok(!('malformed' in parseArtifact(good)));
    for (const build of Object.values(TEXTS))
      assert.ok(!('malformed' in parseArtifact({ ...good, ...build('{"a":1}') })));
  });

  for (const [form, text] of Object.entries(FORMS)) {
    it(`every JSON text of an artifact has one reading: ${form} is refused`, () => {
      for (const [place, build] of Object.entries(TEXTS)) {
        const parsed = parseArtifact({ ...good, ...build(text) });
        assert.ok('malformed' in parsed, place);
        assert.match(parsed.malformed, /canonical|valid JSON|nested too deeply/);
      }
    });
  }
});
