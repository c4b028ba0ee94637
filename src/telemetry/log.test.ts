import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { TemperError } from '../lib/errors.ts';
import { createLogger, type Logger, type LogLevel } from './log.ts';
import { createSecretRedactor, type SecretRedactor } from './secret-redactor.ts';

function aLogger(
  secrets: SecretRedactor = createSecretRedactor(),
  level: LogLevel = 'debug',
): { log: Logger; lines: string[] } {
  const lines: string[] = [];
  return { lines, log: createLogger({ level, secrets, destination: { write: (line) => lines.push(line) } }) };
}

describe('the logger', () => {
  it('the logger writes one JSON line per entry, with time, level and fields', () => {
    const { log, lines } = aLogger();
    log.child({ agent: 'analyst' }).info({ turns: 3 }, 'answered');
    assert.equal(lines.length, 1);
    const line = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
    assert.deepEqual([line.level, line.agent, line.turns, line.message], ['info', 'analyst', 3, 'answered']);
    assert.ok(!Number.isNaN(Date.parse(String(line.time))));
  });
  it('the logger drops entries below its level', () => {
    const { log, lines } = aLogger(createSecretRedactor(), 'warn');
    log.info({}, 'quiet');
    log.warn({}, 'loud');
    assert.equal(lines.length, 1);
  });
  it('the logger writes the code of a TemperError and the stack of any other error', () => {
    const { log, lines } = aLogger();
    log.error({ error: new TemperError('TEMPER_TIMEOUT', 'late', { cause: new RangeError('inner') }) }, 'failed');
    const { error } = JSON.parse(lines[0] ?? '') as {
      error: { code: string; stack?: string; cause: { name: string; stack: string } };
    };
    assert.deepEqual([error.code, error.stack, error.cause.name], ['TEMPER_TIMEOUT', undefined, 'RangeError']);
    assert.match(error.cause.stack, /inner/);
  });
  it('the logger escapes characters that control a terminal, and the line stays valid JSON', () => {
    const { log, lines } = aLogger();
    const hostile = 'a\u001b[2Jb\nc\u009bd\u202eevil\u2028x\u{e0041}\ud800';
    log.info({ [hostile]: hostile }, hostile);
    const line = lines[0] ?? '';
    assert.equal((JSON.parse(line) as { message: string }).message, hostile);
    assert.doesNotMatch(line.slice(0, -1), /[^\x20-\x7e]/);
  });
});

const CANARIES = [
  'canary-plain-7f3a91c0',
  'quote"and\\slash/8841',
  'line\nbreak\ttab-5521',
  'ünïcödé-schlüssel-77',
  'sp ace+plus&amp=99%31',
  'p@ssw0rd!',
];

/** Every encoding in which a caller might log a secret. */
const ENCODINGS: Record<string, (secret: string) => string> = {
  plain: (secret) => secret,
  'in the middle': (secret) => `before${secret}after`,
  json: (secret) => JSON.stringify({ key: secret }),
  url: (secret) => `https://example.com/?key=${encodeURIComponent(secret)}&x=1`,
  'lower-case url': (secret) => encodeURIComponent(secret).replaceAll(/%../g, (code) => code.toLowerCase()),
  form: (secret) => new URLSearchParams({ key: secret }).toString(),
  hex: (secret) => Buffer.from(secret).toString('hex'),
  HEX: (secret) => Buffer.from(secret).toString('hex').toUpperCase(),
  base64: (secret) => Buffer.from(secret).toString('base64'),
  base64url: (secret) => Buffer.from(secret).toString('base64url'),
  'base64 of a user and it': (secret) => Buffer.from(`u:${secret}`).toString('base64'),
  'base64 of more around it': (secret) => Buffer.from(`{"password":"${secret}","x":1}`).toString('base64'),
  'base64 one further': (secret) => Buffer.from(`x${secret}yz`).toString('base64url'),
};

/** Whether the text still contains the secret, plain or encoded. */
function reveals(text: string, secret: string): boolean {
  const decoded = [
    text,
    text.replaceAll('\\\\', '\\'),
    decodeURIComponent(text.replaceAll(/%(?![0-9A-Fa-f]{2})/g, '%25')),
  ];
  for (const run of text.match(/[A-Za-z0-9+/_-]{8,}/g) ?? []) {
    for (const start of [0, 1, 2, 3]) decoded.push(Buffer.from(run.slice(start), 'base64').toString('utf8'));
    decoded.push(Buffer.from(run, 'hex').toString('utf8'));
  }
  return decoded.some((form) => form.includes(secret));
}

describe('redaction of secrets', () => {
  it('no log line contains a secret, in any encoding, field or depth', () => {
    const { log, lines } = aLogger(createSecretRedactor(CANARIES));
    for (const secret of CANARIES) {
      for (const [form, write] of Object.entries(ENCODINGS)) {
        assert.ok(reveals(write(secret), secret) || form === 'json' || form === 'form', `the test detects ${form}`);
        const text = write(secret);
        log.info({ text, deep: { list: [{ text }] }, [text]: 1 }, text);
        log.error({ error: new Error(text, { cause: new TemperError('TEMPER_INTERNAL', text) }) }, 'failed');
        log.child({ text }).debug({}, 'child');
      }
    }
    for (const line of lines) {
      JSON.parse(line);
      for (const secret of CANARIES) assert.ok(!reveals(line, secret), `${secret} in ${line}`);
    }
  });
  it('secrets can be added and removed at run time', () => {
    const secrets = createSecretRedactor();
    assert.equal(secrets.redact('the value is swordfish'), 'the value is swordfish');
    secrets.add('swordfish');
    assert.equal(secrets.redact('the value is swordfish'), 'the value is [redacted]');
    secrets.remove('swordfish');
    assert.equal(secrets.redact('the value is swordfish'), 'the value is swordfish');
    assert.throws(() => secrets.add('short'), RangeError);
  });
  it('texts in the format of well-known keys are redacted without being registered', () => {
    const { redact } = createSecretRedactor();
    const jwt = `eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.${'s'.repeat(40)}`;
    const keys = [
      `sk-proj-${'a'.repeat(40)}`,
      `sk-ant-api03-${'b'.repeat(40)}`,
      `ghp_${'c'.repeat(36)}`,
      `github_pat_${'d'.repeat(40)}`,
      `xoxb-1234-${'e'.repeat(20)}`,
      `AKIA${'F'.repeat(16)}`,
      jwt,
    ];
    for (const key of keys) {
      for (const text of [
        key,
        `key=${key}`,
        `"${key}"`,
        `Authorization: Bearer ${key}`,
        `https://x/${key}/y`,
        `my_${key}.`,
      ]) {
        assert.ok(!redact(text).includes(key.slice(-16)), text);
        assert.match(redact(text), /\[redacted\]/);
      }
    }
    const pem = '-----BEGIN EC PRIVATE KEY-----\\nMHcCAQEE\\n-----END EC PRIVATE KEY-----';
    assert.equal(redact(`a ${pem} b ${pem}`), 'a [redacted] b [redacted]');
    assert.equal(redact('-----BEGIN PRIVATE KEY-----\\nMHcC'), '[redacted]');
  });
  it('ordinary text is not redacted', () => {
    const { redact } = createSecretRedactor();
    for (const text of [
      'ask-me-anything-about-the-quarterly-report',
      'sha256:3f2a91c03f2a91c03f2a91c03f2a91c03f2a91c03f2a91c03f2a91c03f2a91c0',
      'temper.dev/v1alpha1.EmergentTool-csv-rows',
      '-----BEGIN CERTIFICATE-----\\nMIIB\\n-----END CERTIFICATE-----',
      'desk-top_computer.and.more-words-here',
    ]) {
      assert.equal(redact(text), text);
    }
  });
  it('a very long text is redacted like a short one', () => {
    const { redact } = createSecretRedactor(CANARIES);
    for (const text of ['eyJ-', 'Bearer ', '-----BEGIN ', 'a.']) {
      assert.equal(redact(text.repeat(200_000)), text.repeat(200_000));
    }
    for (const text of ['sk-', '-----BEGIN PRIVATE KEY-----', 'ghp_']) {
      assert.equal(redact(text.repeat(200_000)), '[redacted]');
    }
    assert.ok(!redact('eyJhbGci.'.repeat(200_000)).includes('eyJhbGci.eyJhbGci.eyJhbGci'));
  });
  it('a secret is redacted at any position of a text', () => {
    const secrets = createSecretRedactor(CANARIES);
    fc.assert(
      fc.property(fc.string(), fc.constantFrom(...CANARIES), fc.string(), (before, secret, after) => {
        assert.ok(!secrets.redact(before + secret + after).includes(secret));
      }),
    );
  });
});
