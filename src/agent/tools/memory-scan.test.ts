import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { scanRecords, valueOf } from './memory-scan.ts';

const bytes = (record: unknown): Uint8Array => Buffer.from(JSON.stringify(record));
const entry = (key: string, value: string, tainted = false): Uint8Array => bytes({ key, value, tainted });

describe('the scan of a memory in bytes', () => {
  const memory = {
    own: [entry('b', 'west'), Buffer.from('no JSON'), bytes([1]), entry('a', 'east'), entry('shared.mine', 'west')],
    shared: [entry('shared.plan', 'west west', true), entry('c', 'west'), Buffer.from([0xff])],
  };

  it('a list has every entry by key, each from its own scope, without records that are no entries', () => {
    const found = scanRecords(undefined, memory);
    assert.deepEqual(
      found.map(({ key, scope, tainted }) => [key, scope, tainted]),
      [
        ['a', 'own', false],
        ['b', 'own', false],
        ['shared.plan', 'shared', true],
      ],
    );
  });

  it('a search has the entries that match, best match first, and their values are read from their records', () => {
    const found = scanRecords('west', memory);
    assert.deepEqual(
      found.map((one) => valueOf(memory, one)),
      ['west west', 'west'],
    );
  });
});
