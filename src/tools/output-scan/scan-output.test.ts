import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { Json } from '../../lib/json.ts';
import { findCredential } from '../../policy/detect/credentials.ts';
import { HARMLESS, SECRETS } from '../../policy/detect/detect.testing.ts';
import { scanOutput, scanText } from './scan-output.ts';

const ALL = { redactsCredentials: true, escapesInvisible: true };

/** What stays of each of the secrets. */
const REDACTED: readonly string[] = [
  '[redacted: an AWS access key]',
  'use [redacted: a GitHub token] now',
  '[redacted: a GitHub token]',
  'key=[redacted: a model provider key]',
  '[redacted: a model provider key]',
  '[redacted: a Slack token]',
  '[redacted: a signed token]',
  '[redacted: a private key]',
  'https://alice:[redacted: a password in a URL]@example.com/path',
  'curl -H "Authorization: Bearer [redacted: an authorization header]"',
];

describe('the scan of results', () => {
  it('every credential that the detector finds is replaced by its kind, at any depth and in names', () => {
    for (const [index, secret] of SECRETS.entries()) {
      assert.equal(scanText(secret, ALL).text, REDACTED[index]);
      const { output, credentials } = scanOutput({ a: [{ b: ['fine', secret] }] }, ALL);
      assert.deepEqual([output, credentials], [{ a: [{ b: ['fine', REDACTED[index] ?? ''] }] }, 1]);
    }
    const named = scanOutput({ client_secret: 'whatever it is', [SECRETS[0] ?? '']: 1 }, ALL);
    assert.deepEqual(named.output, { client_secret: '[redacted: a secret]', [REDACTED[0] ?? '']: 1 });
    assert.equal(named.credentials, 2);
  });

  it('all credentials of a text are replaced, and a private key up to its end', () => {
    const [begin, end] = ['BEGIN', 'END'].map((word) => ['-----' + word, 'PRIVATE', 'KEY-----'].join(' '));
    const text = `${SECRETS[0]} ${SECRETS[2]}\n${begin}\nabc\n${end}\nrest ${SECRETS[8]}`;
    const shown = `${REDACTED[0]} ${REDACTED[2]}\n[redacted: a private key]\nrest ${REDACTED[8]}`;
    assert.equal(scanText(text, ALL).text, shown);
    assert.equal(scanText(`a ${begin}\nabc`, ALL).text, 'a [redacted: a private key]');
  });

  it('texts that only look like credentials stay, and an output without a finding is the same value', () => {
    const output = { texts: [...HARMLESS], emoji: '👩‍💻 ✔️', number: 1, none: null };
    assert.equal(scanOutput(output, ALL).output, output);
  });

  it('invisible characters become escapes, or stay as the policy says', () => {
    const text = 'a\u200bb\u202ec\u001b[2J\ttab\nline\u{e0041}';
    const escaped = 'a\\u{200b}b\\u{202e}c\\u{1b}[2J\ttab\nline\\u{e0041}';
    assert.deepEqual(scanOutput([text], ALL), { output: [escaped], credentials: 0, invisible: 4 });
    assert.equal(scanText(text, { redactsCredentials: true, escapesInvisible: false }).text, text);
    assert.deepEqual(scanText(SECRETS[0] ?? '', { redactsCredentials: false, escapesInvisible: true }), {
      text: SECRETS[0],
      credentials: 0,
    });
  });

  it('a deep output does not overflow the stack, and its secret is removed', () => {
    let deep: Json = SECRETS[0] ?? '';
    for (let depth = 0; depth < 20_000; depth += 1) deep = [deep];
    const { output, credentials } = scanOutput(deep, ALL);
    assert.equal(credentials, 1);
    assert.ok(!JSON.stringify(output).includes(SECRETS[0] ?? ''));
  });

  it('no credential is left in what the scan returns, whatever stands around it', () => {
    const around = fc.string({ maxLength: 30 });
    fc.assert(
      fc.property(fc.array(fc.tuple(around, fc.constantFrom(...SECRETS)), { maxLength: 5 }), around, (parts, last) => {
        const text = parts.map(([before, secret]) => `${before}\n${secret}\n`).join('') + last;
        assert.equal(findCredential('', scanText(text, ALL).text), undefined);
      }),
      { numRuns: 300 },
    );
  });

  it('the work grows linearly: a text of only beginnings is scanned in as many steps as it has characters', () => {
    for (const part of ['-----BEGIN ', '://a:', 'Bearer ', 'eyJ', '-----BEGIN PRIVATE KEY-----'])
      assert.ok(scanText(part.repeat(200_000 / part.length), ALL).text.length > 0, part);
  });
});
