import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { createSourceCipher, keyIdOf, SourceKeyring } from './source-cipher.ts';
import { encryptingKey, parseSourceKeys, rotateSourceKeys, type SourceKey, sourceKeysText } from './source-keys.ts';

const START = Date.parse('2031-01-01T00:00:00Z');
const HOUR_MS = 3_600_000;
const at = (hours: number): Date => new Date(START + hours * HOUR_MS);
const ids = (keys: readonly SourceKey[]): string[] => keys.map(({ id }) => id);

function newKeys() {
  let count = 0;
  return () => ({ id: `key-${(count += 1)}`, key: randomBytes(32) });
}

describe('the keys of withheld sources', () => {
  it('a key is replaced after 90 days, encrypts an hour after it was distributed, and the old one leaves when nothing has it', () => {
    const newKey = newKeys();
    const first = rotateSourceKeys([], undefined, at(0), newKey);
    assert.deepEqual(ids(first), ['key-1']);
    assert.equal(encryptingKey(first, at(0))?.id, 'key-1', 'the first key needs no announcement');
    assert.equal(rotateSourceKeys(first, new Set(['key-1']), at(90 * 24 - 1), newKey), first);
    const due = 90 * 24;
    const both = rotateSourceKeys(first, new Set(['key-1']), at(due), newKey);
    assert.deepEqual(ids(both), ['key-1', 'key-2']);
    assert.equal(encryptingKey(both, at(due))?.id, 'key-1');
    assert.equal(encryptingKey(both, at(due + 1))?.id, 'key-2');
    assert.equal(rotateSourceKeys(both, new Set(['key-2']), at(due + 47), newKey), both, 'a gateway may lag behind');
    assert.equal(rotateSourceKeys(both, new Set(['key-1', 'key-2']), at(due + 49), newKey), both, 'a source has it');
    assert.equal(rotateSourceKeys(both, undefined, at(due + 49), newKey), both, 'unknown after a restart');
    assert.deepEqual(ids(rotateSourceKeys(both, new Set(['key-2']), at(due + 49), newKey)), ['key-2']);
  });

  it('keys survive their Secret, and a Secret with a damaged key is refused as a whole', () => {
    const keys = rotateSourceKeys([], undefined, at(0), newKeys());
    assert.deepEqual(parseSourceKeys(sourceKeysText(keys)), keys);
    const damaged = sourceKeysText(keys).replace(/"key":"..../, '"key":"');
    for (const text of ['', '{}', '{"keys":[]}', damaged]) {
      assert.throws(
        () => parseSourceKeys(text),
        (error) => isTemperError(error, 'TEMPER_CONFIGURATION_INVALID'),
      );
    }
  });
});

describe('the cipher of withheld sources', () => {
  const clock = { now: () => at(0) };
  const text = Buffer.from('function execute() {}');
  const withKeys = () => {
    const keyring = new SourceKeyring();
    keyring.keys = rotateSourceKeys([], undefined, at(0), newKeys());
    return { keyring, cipher: createSourceCipher(keyring, clock) };
  };

  it('a text is decrypted only at its place and with its key', () => {
    const { keyring, cipher } = withKeys();
    const value = cipher.encrypt('agent-1.digest', text);
    assert.doesNotMatch(JSON.stringify(value), /execute/);
    assert.deepEqual(cipher.decrypt('agent-1.digest', value), text);
    const isCorrupt = (error: unknown) => isTemperError(error, 'TEMPER_STATE_CORRUPT');
    assert.throws(() => cipher.decrypt('agent-2.digest', value), isCorrupt);
    keyring.keys = rotateSourceKeys([], undefined, at(0), () => ({ id: 'other', key: randomBytes(32) }));
    assert.throws(() => cipher.decrypt('agent-1.digest', value), isCorrupt);
    assert.ok(!cipher.isCurrent(value) && keyIdOf(value) === 'key-1');
  });

  it('a process without keys neither encrypts nor decrypts', () => {
    const value = withKeys().cipher.encrypt('a', text);
    const cipher = createSourceCipher(new SourceKeyring(), clock);
    for (const use of [() => cipher.encrypt('a', text), () => cipher.decrypt('a', value)]) {
      assert.throws(use, (error) => isTemperError(error, 'TEMPER_SOURCE_UNAVAILABLE') && error.retry === 'backoff');
    }
  });
});
