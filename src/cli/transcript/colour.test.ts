import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { usesColour } from './colour.ts';

describe('the choice of colour', () => {
  for (const [environment, isTerminal, expected] of [
    [{}, true, true],
    [{}, false, false],
    [{ NO_COLOR: '1' }, true, false],
    [{ NO_COLOR: '' }, true, true],
    [{ NO_COLOR: '1', FORCE_COLOR: '1' }, true, false],
    [{ FORCE_COLOR: '1' }, false, true],
    [{ FORCE_COLOR: '3' }, false, true],
    [{ FORCE_COLOR: '0' }, true, false],
    [{ FORCE_COLOR: '' }, false, false],
    [{ TERM: 'dumb' }, true, false],
    [{ TERM: 'dumb', FORCE_COLOR: '1' }, true, true],
  ] as const) {
    const where = isTerminal ? 'a terminal' : 'a pipe';
    it(`${JSON.stringify(environment)} on ${where} ${expected ? 'has' : 'has no'} colour`, () => {
      assert.equal(usesColour(environment, isTerminal), expected);
    });
  }
});
