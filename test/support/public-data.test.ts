import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { publicData } from './public-data.ts';

describe('public data beside the checkout', () => {
  it('an absent file skips its test with its path, and never in continuous integration', () => {
    const { file, skip } = publicData('no/such-file', {});
    assert.equal(skip, `${file} is absent`);
    assert.equal(publicData('no/such-file', { CI: 'true' }).skip, false);
  });
});
