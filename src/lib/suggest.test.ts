import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { editDistance, suggestName } from './suggest.ts';

const KNOWN = ['tokensPerHour', 'tokensPerDay', 'costPerDay', 'Full', 'standard'];

describe('the closest name', () => {
  it('the known name closest to a mistyped name is suggested', () => {
    assert.equal(suggestName('tokenPerHour', KNOWN), 'tokensPerHour');
    assert.equal(suggestName('full', KNOWN), 'Full');
    assert.equal(suggestName('standrad', KNOWN), 'standard');
    assert.equal(suggestName('rnu', ['run', 'send']), 'run');
  });

  it('an edit distance that is limited is the same up to its limit, and above it for any larger one', () => {
    const near = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 9 });
    fc.assert(
      fc.property(near, near, fc.nat(4), (one, other, most) => {
        const distance = editDistance(one, other);
        const limited = editDistance(one, other, most);
        if (distance <= most) assert.equal(limited, distance);
        else assert.ok(limited > most);
      }),
      { numRuns: 1_000 },
    );
  });

  it('no name is suggested when every known name is far away', () => {
    assert.equal(suggestName('memory', KNOWN), undefined);
    assert.equal(suggestName('', KNOWN), undefined);
    assert.equal(suggestName('x'.repeat(100_000), KNOWN), undefined);
  });
});
