import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { plannedProcesses, SLOW_FILES, type TestFile } from './plan.ts';

const files = (count: number): TestFile[] =>
  Array.from({ length: count }, (_, index) => ({ path: `src/${String(index).padStart(3, '0')}.test.ts`, source: '' }));

describe('the plan of a test run', () => {
  it('slow files start first, the slowest before the others', () => {
    const [slowest = '', second = ''] = SLOW_FILES;
    assert.deepEqual(plannedProcesses(['a.test.ts', second, slowest], []), [[slowest], [second], ['a.test.ts']]);
  });

  it('grouped files share a process with their neighbours, and each file runs once', () => {
    const grouped = files(61);
    const groups = plannedProcesses([], grouped.toReversed());
    assert.deepEqual(
      groups.flat(),
      grouped.map(({ path }) => path),
    );
    assert.ok(groups.length < 5, `${groups.length} processes`);
  });

  it('a file that sets flags of its process or measures its memory runs alone', () => {
    const grouped = [{ path: 'measures.test.ts', source: 'process.memoryUsage()' }, ...files(3)];
    assert.deepEqual(
      plannedProcesses([], grouped).map((group) => group.length),
      [1, 3],
    );
  });
});
