import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { groupUsage } from './group-usage.ts';
import { type DatedUsage, parseUsage, type UsageEntry, usageJson, UsageTable } from './usage-entry.ts';

const amounts = (costMicros: number) => ({ calls: 1, inputTokens: 10, outputTokens: 2, costMicros });

function entry(agent: string, model: string, costMicros: number, more: Partial<UsageEntry> = {}): UsageEntry {
  return { agent, model, ...amounts(costMicros), ...more };
}

const USAGE: readonly DatedUsage[] = [
  { day: '2026-05-04', team: 'lead', ...entry('lead', 'a/large', 50, { root: 'm-1' }) },
  { day: '2026-05-04', team: 'lead', ...entry('lead-one', 'a/small', 5, { root: 'm-1', unpriced: true }) },
  { day: '2026-05-03', team: 'lead', ...entry('lead-one', 'a/small', 7, { root: 'm-2', unpriced: true }) },
  { day: '2026-05-04', team: 'solo', ...entry('solo', 'a/small', 3) },
];

describe('a table of usage', () => {
  it('calls of one agent to one model are one entry, and a full table takes no further one', () => {
    const table = new UsageTable(2);
    assert.ok(table.add(entry('a', 'p/x', 5)));
    assert.ok(table.add(entry('a', 'p/x', 7)));
    assert.ok(table.add(entry('a', 'p/x', 1, { root: 'm-1' })));
    assert.equal(table.add(entry('a', 'p/y', 1)), false);
    assert.ok(table.add(entry('a', 'p/x', 1, { root: 'm-1' })));
    assert.deepEqual(table.list(), [
      { agent: 'a', model: 'p/x', calls: 2, inputTokens: 20, outputTokens: 4, costMicros: 12 },
      { agent: 'a', model: 'p/x', root: 'm-1', calls: 2, inputTokens: 20, outputTokens: 4, costMicros: 2 },
    ]);
  });

  it('stored entries are read again, and what is no entry is left out', () => {
    const stored = [entry('a', 'p/x', 5, { root: 'm-1', unpriced: true }), entry('b', 'p/y', 0)];
    const broken = [1, { agent: 'a' }, { ...entry('a', 'p/x', -1) }, { ...entry('a', 'p/x', 1), calls: 'many' }];
    assert.deepEqual(parseUsage([...usageJson(stored), ...(broken as never[])]), stored);
    assert.deepEqual(parseUsage(undefined), []);
  });
});

describe('usage in groups', () => {
  const names = (by: Parameters<typeof groupUsage>[1]) =>
    groupUsage(USAGE, by).map(({ name, costMicros }) => [name, costMicros]);

  it('groups other than days come by cost, and days in order', () => {
    assert.deepEqual(names('Agent'), [
      ['lead', 50],
      ['lead-one', 12],
      ['solo', 3],
    ]);
    assert.deepEqual(names('Team'), [
      ['lead', 62],
      ['solo', 3],
    ]);
    assert.deepEqual(names('Model'), [
      ['a/large', 50],
      ['a/small', 15],
    ]);
    assert.deepEqual(names('Day'), [
      ['2026-05-03', 7],
      ['2026-05-04', 58],
    ]);
  });

  it('calls without a root message are in no group of root messages', () => {
    assert.deepEqual(names('Root'), [
      ['m-1', 55],
      ['m-2', 7],
    ]);
  });

  it('a group names its models without a price', () => {
    assert.deepEqual(
      groupUsage(USAGE, 'Agent').map(({ unpriced }) => unpriced),
      [[], ['a/small'], []],
    );
  });
});
