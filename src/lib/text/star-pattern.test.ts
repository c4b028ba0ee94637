import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { matchesStars } from './star-pattern.ts';

/** The plain definition: a star takes no character, or one and stays. */
function naive(pattern: string, text: string): boolean {
  if (pattern === '') return text === '';
  if (pattern.startsWith('*')) return naive(pattern.slice(1), text) || (text !== '' && naive(pattern, text.slice(1)));
  return pattern[0] === text[0] && text !== '' && naive(pattern.slice(1), text.slice(1));
}

describe('a pattern with stars', () => {
  it('matchesStars agrees with the definition of a star for every short pattern and text', () => {
    const letters = (alphabet: string, maxLength: number): fc.Arbitrary<string> =>
      fc.array(fc.constantFrom(...alphabet.split('')), { maxLength }).map((items) => items.join(''));
    fc.assert(
      fc.property(letters('ab*', 7), letters('ab', 9), (pattern, text) => {
        assert.equal(matchesStars(pattern, text), naive(pattern, text), `${pattern} ${text}`);
      }),
      { numRuns: 5_000 },
    );
  });

  it('the first and the last part of a pattern never share a character of the text', () => {
    assert.equal(matchesStars('ab*ba', 'aba'), false);
    assert.equal(matchesStars('ab*ba', 'abba'), true);
    assert.equal(matchesStars('a*b*b', 'ab'), false);
  });
});
