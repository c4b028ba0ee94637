import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { type NamedTest, testExists } from '../support/named-test.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const PAGE = readFileSync(join(ROOT, 'docs/development/review.md'), 'utf8');
const STATES = ['mended', 'partly', 'stands', 'later'];
/** A file and the tests in it: `path`: "name"; "name". */
const REFERENCE = /`((?:src|test)\/[\w./-]+\.test\.ts)`: ("(?:[^"\\]|\\.)*"(?:; "(?:[^"\\]|\\.)*")*)/g;

function references(): NamedTest[] {
  return [...PAGE.matchAll(REFERENCE)].flatMap(([, file = '', names = '']) =>
    [...names.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, name = '']) => ({ file, name: name.replaceAll('\\"', '"') })),
  );
}

/** The cells of the tables whose column is `state`. */
function rows(): string[][] {
  const tables = PAGE.split(/\n\n/).filter((block) => /^\|.*\| state \|/.test(block));
  return tables.flatMap((table) =>
    table
      .trim()
      .split('\n')
      .slice(2)
      .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim())),
  );
}

describe('the page of the review', () => {
  it('every test that the page names exists', () => {
    const all = references();
    assert.ok(all.length > 100, `the search found only ${all.length} references`);
    assert.deepEqual(
      all.filter((reference) => !testExists(reference)).map(({ file, name }) => `${file}: ${name}`),
      [],
    );
  });

  it('every row of the page has a state and a test or a reason', () => {
    const wrong = rows().filter((cells) => {
      const state = cells.findIndex((cell) => STATES.includes(cell));
      return state < 0 || (cells[state + 1] ?? '') === '';
    });
    assert.ok(rows().length > 150);
    assert.deepEqual(wrong, []);
  });
});
