import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeClock } from '../../../test/support/clocks.ts';
import { groupUsage } from '../../ledger/usage/group-usage.ts';
import type { UsageGroup } from '../../ledger/usage/usage-groups.ts';
import { memoryRecordStore, type RecordStore } from '../../lib/record-store.ts';
import type { ResolvedModel } from '../../models/pipeline.ts';
import { LocalUsage } from './local-usage.ts';
import { usageSince } from './usage-days.ts';

const LARGE = { id: 'a/large' } as ResolvedModel;
const SMALL = { id: 'a/small', unpriced: true } as ResolvedModel;
const KEY = 's-1/0/1';
const LEAD = { name: 'lead', namespace: 'team-a', team: 'lead' };
const CHILD = { name: 'lead-one', namespace: 'team-a', team: 'lead' };

async function sums(records: RecordStore, by: UsageGroup, since = '2026-01-01') {
  const rows = groupUsage(await usageSince(records, 'team-a', since), by);
  return rows.map(({ name, calls, inputTokens, costMicros }) => [name, calls, inputTokens, costMicros]);
}

describe('the usage of a state folder', () => {
  it('calls of several processes and days are added up by agent, team, model and day', async () => {
    const records = memoryRecordStore();
    const clock = new FakeClock('2026-05-03T23:59:59Z');
    {
      await using usage = new LocalUsage({ records, clock });
      usage.of(LEAD)(LARGE, { inputTokens: 10, outputTokens: 1, costMicros: 50 }, KEY);
      clock.skip(2_000);
      usage.of(CHILD)(SMALL, { inputTokens: 5, costMicros: 7 }, KEY);
    }
    {
      await using usage = new LocalUsage({ records, clock });
      usage.of(CHILD)(SMALL, { inputTokens: 5, costMicros: 7 }, KEY);
      await usage.flush();
      usage.of(CHILD)(SMALL, { inputTokens: 5, costMicros: 7 }, KEY);
      usage.of({ name: 'other', namespace: 'team-b', team: 'other' })(LARGE, { costMicros: 1_000 }, KEY);
    }
    assert.deepEqual(await sums(records, 'Agent'), [
      ['lead', 1, 10, 50],
      ['lead-one', 3, 15, 21],
    ]);
    assert.deepEqual(await sums(records, 'Team'), [['lead', 4, 25, 71]]);
    assert.deepEqual(await sums(records, 'Day'), [
      ['2026-05-03', 1, 10, 50],
      ['2026-05-04', 3, 15, 21],
    ]);
    assert.deepEqual(await sums(records, 'Model', '2026-05-04'), [['a/small', 3, 15, 21]]);
  });

  it('calls of one root message are added up over agents and processes, and calls without one are in the other groups only', async () => {
    const records = memoryRecordStore();
    const clock = new FakeClock('2026-05-03T12:00:00Z');
    const rootOf = (key: string) => (key === KEY ? 'msg-1' : undefined);
    for (const agent of [LEAD, CHILD]) {
      await using usage = new LocalUsage({ records, clock });
      usage.of(agent, rootOf)(LARGE, { inputTokens: 10, costMicros: 50 }, KEY);
      usage.of(agent, rootOf)(LARGE, { inputTokens: 1, costMicros: 5 }, 'promotion');
    }
    const roots = groupUsage(await usageSince(records, 'team-a', '2026-01-01', 'roots'), 'Root');
    assert.deepEqual(
      roots.map(({ name, calls, costMicros }) => [name, calls, costMicros]),
      [['msg-1', 2, 100]],
    );
    assert.deepEqual(await sums(records, 'Team'), [['lead', 4, 22, 110]]);
  });

  it('a process that runs stores its usage every few seconds, and keeps 180 days', async () => {
    const records = memoryRecordStore();
    const clock = new FakeClock('2026-01-01T00:00:00Z');
    for (let day = 0; day < 182; day += 1) {
      await using usage = new LocalUsage({ records, clock });
      usage.of(LEAD)(LARGE, { costMicros: 1 }, KEY);
      clock.skip(24 * 3_600_000);
    }
    const days = (await sums(records, 'Day')).map(([name]) => name);
    assert.equal(days.length, 180);
    assert.equal(days[0], '2026-01-03');
    await using usage = new LocalUsage({ records, clock });
    usage.of(LEAD)(LARGE, { costMicros: 1 }, KEY);
    await clock.advance(5_000);
    assert.equal((await sums(records, 'Day')).at(-1)?.[0], '2026-07-02');
  });

  it('a folder that cannot be written is an error at the end of the process', async () => {
    const records = { ...memoryRecordStore(), put: () => Promise.reject(new Error('the disk is full')) };
    const usage = new LocalUsage({ records, clock: new FakeClock() });
    usage.of(LEAD)(LARGE, { costMicros: 1 }, KEY);
    await assert.rejects(async () => usage[Symbol.asyncDispose](), /the disk is full/);
  });

  it('documents of another form are left out', async () => {
    const records = memoryRecordStore();
    await records.put('usage/team-a', '2026-05-03', { teams: [1, { team: 'x', entries: 'none' }] });
    await records.put('usage/team-a', 'notes', { teams: [] });
    assert.deepEqual(await usageSince(records, 'team-a', '2026-01-01'), []);
  });
});
