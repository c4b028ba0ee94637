import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { closestName } from './closest.ts';

const KNOWN = ['tokensPerHour', 'tokensPerDay', 'costPerDay', 'Full', 'standard'];

describe('the closest name', () => {
  it('finds what a mistyped name was meant to be', () => {
    assert.equal(closestName('tokenPerHour', KNOWN), 'tokensPerHour');
    assert.equal(closestName('full', KNOWN), 'Full');
    assert.equal(closestName('standrad', KNOWN), 'standard');
  });

  it('says nothing rather than something far away', () => {
    assert.equal(closestName('memory', KNOWN), undefined);
    assert.equal(closestName('', KNOWN), undefined);
    assert.equal(closestName('x'.repeat(100_000), KNOWN), undefined);
  });
});
