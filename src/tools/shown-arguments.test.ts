import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isUnprintable } from '../lib/printable.ts';
import { createSecretRedactor } from '../telemetry/secret-redactor.ts';
import { shownArguments } from './shown-arguments.ts';

const SECRET = 'hunter2-of-this-process';
const { redact } = createSecretRedactor([SECRET]);
const shown = (input: Parameters<typeof shownArguments>[0]): string => shownArguments(input, redact);

describe('the arguments that an approver reads', () => {
  it('ordinary arguments are shown whole, as JSON', () => {
    const input = {
      path: 'a/b.txt',
      count: 3,
      maxTokens: 500,
      tokens: null,
      secret: '',
      token: true,
      rows: [{ x: null }, true],
      text: 'two\nlines "quoted"',
    };
    assert.deepEqual(JSON.parse(shown(input)), input);
  });

  for (const [what, input] of Object.entries({
    'a secret of the process': { note: `it is ${SECRET}.` },
    'a secret of the process in base64': { note: Buffer.from(SECRET).toString('base64') },
    'a short password': { login: { password: 'tiny' } },
    'a token by its name': { 'session-token': 'tiny', cookies: { a: 'tiny' }, AUTHORIZATION: ['tiny'] },
    'a password that is no text': { apiKey: [1, 2, 3, 'tiny'] },
    'a key in the name of a member': { [`ghp_${'a1B2'.repeat(9)}`]: 1 },
    'a provider key': { header: `sk-ant-${'a1B2'.repeat(9)}` },
    'a password in a URL': { url: 'https://user:tiny@host.example/' },
    'an authorization header': { headers: { Authorization: `Bearer ${'a1B2'.repeat(9)}` } },
    'a private key': { pem: '-----BEGIN PRIVATE KEY-----\ntiny\n-----END PRIVATE KEY-----' },
  })) {
    it(`${what} is not shown`, () => {
      const text = shown(input);
      for (const part of [SECRET, 'tiny', 'a1B2a1B2', Buffer.from(SECRET).toString('base64').slice(2, -4)]) {
        assert.ok(!text.includes(part), text);
      }
      assert.match(text, /redacted/);
    });
  }

  it('a secret beside other text hides only itself where its extent is known', () => {
    assert.equal(
      shown({ command: `rm -rf /data # ghp_${'a1B2'.repeat(9)}` }),
      '{"command":"rm -rf /data # [redacted]"}',
    );
  });

  it('long arguments are cut with their length, and no part of a secret remains at the cut', () => {
    for (let before = 16_300; before < 16_400; before += 7) {
      const parts = Array.from({ length: 5 }, (_, index) =>
        index < 4 ? 'x'.repeat(3_900) : 'x'.repeat(before - 15_640),
      );
      const text = shown([...parts, SECRET, 'more '.repeat(4_000)]);
      assert.ok(text.length <= 16_384, `${text.length}`);
      assert.ok(!text.includes('hunter2'), text.slice(-100));
      assert.match(text, /… \(\d+ characters\)$/);
    }
    assert.match(
      shown({ a: 'x'.repeat(9_000), path: 'visible' }),
      /^\{"a":"x+… \(9000 characters\)","path":"visible"\}$/,
    );
  });

  it('no argument controls a terminal or exceeds the limit of the field', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.string({ unit: 'binary' }), (value, text) => {
        const out = shown([value as never, { [text]: text, long: text.repeat(900) }]);
        assert.ok(out.length <= 16_384 && out.isWellFormed());
        for (const character of out) assert.ok(!isUnprintable(character.codePointAt(0) ?? 0), JSON.stringify(out));
      }),
    );
  });
});
