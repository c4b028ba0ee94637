import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { editDistance } from '../../lib/suggest.ts';
import { Vocabulary } from './vocabulary.ts';

const LETTERS = 'abcdefgh';
const WORDS = 3_000;

/** The order of the letters with a number. */
function permutation(number: number): string {
  const left = LETTERS.split('');
  let rest = number;
  let word = '';
  while (left.length > 0) {
    const at = rest % left.length;
    rest = Math.floor(rest / left.length);
    word += left.splice(at, 1)[0];
  }
  return word;
}

describe('the words near a word', () => {
  it('thousands of words with the same letters are compared in several steps, and the near ones are found', () => {
    const words = Array.from({ length: WORDS }, (_, number) => permutation(number));
    const vocabulary = new Vocabulary();
    for (const word of words) vocabulary.add(word);
    const wanted = permutation(1_234);
    const steps = vocabulary.nearSteps(wanted);
    let count = 1;
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) count += 1;
    assert.ok(count >= WORDS / 1_000, `${count} steps`);
    const expected = words.filter((word) => word !== wanted && editDistance(word, wanted) <= 2);
    assert.ok(expected.length > 3);
    assert.deepEqual(step.value.toSorted(), expected.toSorted());
  });
});
