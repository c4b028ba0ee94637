import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { closestName } from './closest.ts';

const KNOWN = ['tokensPerHour', 'tokensPerDay', 'costPerDay', 'Full', 'standard'];

describe('the closest name', () => {
  it('the known name closest to a mistyped name is suggested', () => {
    assert.equal(closestName('tokenPerHour', KNOWN), 'tokensPerHour');
    assert.equal(closestName('full', KNOWN), 'Full');
    assert.equal(closestName('standrad', KNOWN), 'standard');
  });

  it('no name is suggested when every known name is far away', () => {
    assert.equal(closestName('memory', KNOWN), undefined);
    assert.equal(closestName('', KNOWN), undefined);
    assert.equal(closestName('x'.repeat(100_000), KNOWN), undefined);
  });
});
