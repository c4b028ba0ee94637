import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { MemoryHit } from '../ports.ts';
import { MAX_QUERY_WORDS, rankTexts, textOf } from './memory-ranking.ts';

const split = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

const rankEntries = (entries: readonly MemoryHit[], query: string, budget?: number): MemoryHit[] => {
  const texts = entries.map((entry) => ({ key: entry.key, text: textOf(entry.value), entry }));
  return rankTexts(texts, query, budget).map(({ entry }) => entry);
};

/** BM25 as its definition has it, word by word. */
function naiveScores(entries: readonly MemoryHit[], query: string): Map<string, number> {
  const documents = entries.map(({ key, value }) => [...split(`${key} ${key} ${key}`), ...split(textOf(value))]);
  const average = documents.reduce((sum, words) => sum + words.length, 0) / documents.length;
  const scores = new Map<string, number>();
  for (const word of new Set(split(query))) {
    const found = documents.filter((words) => words.includes(word)).length;
    const weight = Math.log(1 + (documents.length - found + 0.5) / (found + 0.5));
    for (const [index, words] of documents.entries()) {
      const count = words.filter((other) => other === word).length;
      const key = entries[index]?.key ?? '';
      const part = (weight * count * 2.2) / (count + 1.2 * (0.25 + (0.75 * words.length) / average));
      scores.set(key, (scores.get(key) ?? 0) + (count === 0 ? 0 : part));
    }
  }
  return scores;
}

const word = fc.constantFrom('west', 'East', 'north', 'a', '7', 'zürich', '数');
const words = fc.array(word, { minLength: 1, maxLength: 8 }).map((items) => items.join(' '));
const memories = fc
  .uniqueArray(fc.record({ key: words, value: fc.oneof(words, fc.array(words), fc.record({ note: words })) }), {
    selector: ({ key }) => key,
    minLength: 1,
    maxLength: 8,
  })
  .map((items) => items as MemoryHit[]);

describe('the ranking of a memory search', () => {
  it('the ranking agrees with the definition of BM25 for every memory and query', () => {
    fc.assert(
      fc.property(memories, words, (entries, query) => {
        const scores = naiveScores(entries, query);
        const ranked = rankEntries(entries, query);
        const expected = entries.filter(({ key }) => (scores.get(key) ?? 0) > 0);
        assert.deepEqual(new Set(ranked), new Set(expected));
        for (const [index, { key }] of ranked.entries()) {
          const next = scores.get(ranked[index + 1]?.key ?? '') ?? 0;
          assert.ok((scores.get(key) ?? 0) >= next - 1e-9, `${key} stands before a better entry`);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it('a query counts its first sixteen distinct words', () => {
    const filler = Array.from({ length: MAX_QUERY_WORDS }, (_, index) => `w${index}`).join(' ');
    const entries = [{ key: 'note', value: 'west', tainted: false }];
    assert.deepEqual(rankEntries(entries, `${filler} west`), []);
    assert.deepEqual(rankEntries(entries, `w0 ${filler.slice(0, -4)} west`), entries);
  });

  it('a search reads no more characters than its budget: all keys, and equal shares of the values that are too long', () => {
    const entries = [
      { key: 'one', value: 'short west', tainted: false },
      { key: 'two', value: `${'x '.repeat(40)}west`, tainted: false },
      { key: 'three', value: `west ${'x '.repeat(4_000)}east`, tainted: false },
    ];
    const found = (query: string, budget?: number): string[] =>
      rankEntries(entries, query, budget).map(({ key }) => key);
    assert.deepEqual(found('east'), ['three']);
    assert.deepEqual(found('east', 300), []);
    assert.deepEqual(found('west', 300).toSorted(), ['one', 'three', 'two']);
    assert.deepEqual(found('three', 11), ['three'], 'keys are read however small the budget is');
  });

  it('the full memory of an agent and the longest query are ranked: the work does not grow with the query', () => {
    const value = 'a b c d e f g h '.repeat(4_096);
    const entries = Array.from(
      { length: 1_000 },
      (_, index): MemoryHit => ({ key: `k${index}`, value, tainted: false }),
    );
    const query = Array.from({ length: 340 }, (_, index) => String.fromCodePoint(0x4e00 + index)).join(' ');
    assert.deepEqual(rankEntries(entries, query), []);
    assert.equal(rankEntries(entries, `h ${query}`).length, 1_000);
  });
});
