import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { Digest } from '../../lib/canonical.ts';
import { usedTogether } from './used-together.ts';

const digest = (name: string): Digest => `sha256:${name.padStart(64, '0')}`;
const tasks = (count: number, names: string, endedWell = true) =>
  Array.from({ length: count }, () => ({ endedWell, tools: names.split('').map(digest) }));
const pairs = (...all: ReturnType<typeof tasks>[]) =>
  usedTogether(all.flat()).map(({ tools, percent }) => [tools.map((tool) => tool.at(-1)).join(''), percent]);

describe('the tools that an agent uses together', () => {
  it('a pair has the percentage of the tasks of either that used both, and the most frequent pair is first', () => {
    assert.deepEqual(pairs(tasks(4, 'ab'), tasks(2, 'a'), tasks(3, 'bc')), [
      ['ab', 44],
      ['bc', 43],
    ]);
    assert.deepEqual(pairs(tasks(3, 'ab'), tasks(9, 'cd')), [
      ['ab', 100],
      ['cd', 100],
    ]);
    assert.deepEqual(pairs(tasks(3, 'ab'), tasks(97, 'a')), [['ab', 3]]);
  });

  it('two common tasks, tasks that ended badly, and tasks with more than ten tools count for nothing', () => {
    assert.deepEqual(pairs(tasks(2, 'ab'), tasks(9, 'ab', false), tasks(9, 'abcdefghijk')), []);
    assert.deepEqual(pairs(tasks(3, 'aab')), [['ab', 100]], 'a tool counts once in a task');
  });

  it('the order of tasks and of their tools does not matter, and there are at most sixteen pairs', () => {
    const generated = fc.array(
      fc.record({
        endedWell: fc.boolean(),
        tools: fc.array(fc.constantFrom(...'abcdefghijkl'.split('').map(digest)), { maxLength: 14 }),
      }),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(generated, (all) => {
        const found = usedTogether(all);
        assert.deepEqual(
          usedTogether(all.toReversed().map((task) => ({ ...task, tools: task.tools.toReversed() }))),
          found,
        );
        assert.ok(found.length <= 16 && found.every(({ percent }) => percent >= 1 && percent <= 100));
      }),
    );
    const many = Array.from({ length: 20 }, (_, index) => [digest(`a${index}`), digest(`b${index}`)]);
    assert.equal(usedTogether(many.flatMap((tools) => [1, 2, 3].map(() => ({ endedWell: true, tools })))).length, 16);
  });
});
