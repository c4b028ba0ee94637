import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DiscoveryEntry } from '../entry.ts';
import { LexicalIndex } from '../lexical/lexical-index.ts';
import { search } from '../lexical/search.ts';
import { Similarities } from './similarities.ts';

const MOST = 10;
const anEntry = (name: string, description: string): DiscoveryEntry => ({
  id: `tool:${name}`,
  kind: 'tool',
  name,
  description,
  category: 'files',
  tags: [],
  requiredTools: [],
});
const target = anEntry('csv_rows', 'Reads the rows of a spreadsheet.');
const others = Array.from({ length: MOST }, (_, at) => anEntry(`other_${at}`, 'Prints rows.'));
const QUERY = { query: 'rows of a spreadsheet' };
const firstOf = (
  hits: readonly { id: string; cosine: number }[],
  compared = [target, ...others],
): string | undefined => {
  const scope = { indexes: [LexicalIndex.of([target, ...others])], permits: () => true };
  const ids = new Set(compared.map(({ id }) => id));
  const similarities = new Similarities({ hits: [hits], most: MOST, compared: ids, idOf: ({ id }) => id });
  return search(QUERY, scope, similarities)[0]?.entry.name;
};

describe('the similarities of the nearest entries', () => {
  const near = others.map(({ id }) => ({ id, cosine: 0.8 }));

  it('an entry that is barely not among the nearest keeps the advantage of its words', () => {
    assert.equal(firstOf(near), target.name);
    assert.equal(firstOf([...near, { id: target.id, cosine: 0.79 }]), target.name);
  });

  it('an entry that was compared, because fewer than the most are near, has no similarity but its own', () => {
    assert.notEqual(firstOf(near.slice(1)), target.name);
  });

  it('an entry without a vector counts as the near one would that has its place by words', () => {
    const few = near.slice(1).map(({ id }, at) => ({ id, cosine: at === 0 ? 0.9 : 0.1 }));
    assert.equal(firstOf(few, others.slice(1)), target.name, 'the best words count as the nearest one');
    const hits = [{ id: target.id, cosine: 0.2 }, ...few];
    assert.equal(firstOf(hits, [target, ...others.slice(1)]), others[1]?.name, 'its own vector counts when it has one');
  });
});
