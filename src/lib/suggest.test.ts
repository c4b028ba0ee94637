import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { suggestName } from './suggest.ts';

const KNOWN = ['tokensPerHour', 'tokensPerDay', 'costPerDay', 'Full', 'standard'];

describe('the closest name', () => {
  it('the known name closest to a mistyped name is suggested', () => {
    assert.equal(suggestName('tokenPerHour', KNOWN), 'tokensPerHour');
    assert.equal(suggestName('full', KNOWN), 'Full');
    assert.equal(suggestName('standrad', KNOWN), 'standard');
    assert.equal(suggestName('rnu', ['run', 'send']), 'run');
  });

  it('no name is suggested when every known name is far away', () => {
    assert.equal(suggestName('memory', KNOWN), undefined);
    assert.equal(suggestName('', KNOWN), undefined);
    assert.equal(suggestName('x'.repeat(100_000), KNOWN), undefined);
  });
});
