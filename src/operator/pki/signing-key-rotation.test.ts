import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rotateSigningKeys, signingKeyData, type SigningKeys, signingKeysIn } from './signing-key-rotation.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOW = new Date('2031-01-01T00:00:00.000Z');
const later = (ms: number): Date => new Date(NOW.getTime() + ms);

function keysOf(serial: { value: number }): () => string {
  return () => `key-${(serial.value += 1)}`;
}

describe('the rotation of the keys of delivery tokens', () => {
  it('a new key is distributed for an hour before it signs, and the previous one verifies for two hours after', () => {
    const newKey = keysOf({ value: 0 });
    const first = rotateSigningKeys(undefined, NOW, newKey);
    assert.deepEqual(signingKeyData(first), {
      'delivery-token.key': 'key-1',
      phase: 'single',
      since: '2031-01-01T00:00:00.000Z',
    });
    assert.equal(rotateSigningKeys(first, later(30 * DAY - 1), newKey), first);
    const announced = rotateSigningKeys(first, later(30 * DAY), newKey);
    assert.deepEqual([announced.current, announced.other], ['key-1', 'key-2']);
    assert.equal(rotateSigningKeys(announced, later(30 * DAY + HOUR - 1), newKey), announced);
    const retiring = rotateSigningKeys(announced, later(30 * DAY + HOUR), newKey);
    assert.deepEqual([retiring.current, retiring.other], ['key-2', 'key-1']);
    assert.equal(rotateSigningKeys(retiring, later(30 * DAY + 3 * HOUR - 1), newKey), retiring);
    const done = rotateSigningKeys(retiring, later(30 * DAY + 3 * HOUR), newKey);
    assert.deepEqual([done.current, done.other, done.phase], ['key-2', undefined, 'single']);
  });

  it('the Secret holds the state, and a Secret without a phase has one key that begins its life', () => {
    const keys: SigningKeys = { current: 'a', other: 'b', phase: 'announced', since: NOW };
    assert.deepEqual(signingKeysIn(signingKeyData(keys), later(1)), keys);
    assert.equal(signingKeysIn(undefined, NOW), undefined);
    assert.equal(signingKeysIn({ 'delivery-token.key': '' }, NOW), undefined);
    const single = { current: 'a', phase: 'single', since: NOW };
    for (const more of [{}, { phase: 'other', since: NOW.toISOString() }, { phase: 'retiring', since: 'soon' }]) {
      assert.deepEqual(signingKeysIn({ 'delivery-token.key': 'a', ...more }, NOW), single);
    }
    const ahead = { 'delivery-token.key': 'a', phase: 'single', since: later(DAY).toISOString() };
    assert.deepEqual(signingKeysIn(ahead, NOW), single);
  });

  it('every gateway accepts each token until its deadline, although gateways read the Secret up to 45 minutes late', () => {
    const newKey = keysOf({ value: 0 });
    const quarter = HOUR / 4;
    const states: SigningKeys[] = [];
    for (let at = 0; at < 62 * DAY; at += quarter) states.push(rotateSigningKeys(states.at(-1), later(at), newKey));
    assert.equal(new Set(states.map(({ current }) => current)).size, 3);
    // A gateway that is 45 minutes ahead or behind verifies; a token lives for an hour.
    for (const [index, signer] of states.entries()) {
      for (const reader of states.slice(Math.max(0, index - 3), index + 8)) {
        assert.ok([reader.current, reader.other].includes(signer.current), `the token of quarter ${index}`);
      }
    }
  });
});
