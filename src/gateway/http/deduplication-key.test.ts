import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { deduplicationKey, type KeyedRoute } from './deduplication-key.ts';

const ROUTES: readonly KeyedRoute[] = ['review/observed', 'review/reported', 'review/drop', 'reports'];

describe('keys of records', () => {
  it('records of two routes, two agents or two requests never share a key, whatever the client sends', () => {
    const part = fc.string({ unit: fc.constantFrom('/', 'a', 'review', 'observed', 'sha256:0', '"', ',') });
    const request = fc.tuple(
      fc.constantFrom(...ROUTES),
      fc.constantFrom('u-1', 'u-2'),
      fc.array(part, { maxLength: 3 }),
    );
    fc.assert(
      fc.property(request, request, (one, other) => {
        const same = JSON.stringify(one) === JSON.stringify(other);
        assert.equal(deduplicationKey(...one) === deduplicationKey(...other), same);
      }),
    );
  });

  it('a key begins with its route, and holds nothing of what the client sent', () => {
    for (const route of ROUTES) {
      assert.match(deduplicationKey(route, 'u-1', ['../review/observed/u-2/x']), /^[a-z/]+\/u-1\/[0-9a-f]{64}$/);
    }
  });
});
