import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PeerEnd } from '../../a2a/task.ts';
import type { Json } from '../../lib/json.ts';
import { applyPeerEntry, parsePeerRecords, type PeerRecords, storedPeerRecords } from './peer-entries.ts';

const ANSWER: PeerEnd = { kind: 'reply', text: 'Done.', finishReason: 'complete' };
const AT = '2026-01-01T00:00:00.000Z';

function opened(records: PeerRecords, message: string, caller = 'one'): void {
  const task = { message, caller, context: 'c', time: AT, text: 'x', digest: 'd' };
  applyPeerEntry(records, { op: 'peer-opened', agent: 'a', task });
}
const ended = (records: PeerRecords, id: string, end: PeerEnd = ANSWER): void =>
  applyPeerEntry(records, { op: 'peer-ended', agent: 'a', id, end, at: AT });
const outcomeOf = (records: PeerRecords, id: string) => records.get(id)?.task.ended?.outcome;

describe('the tasks of callers in a state folder', () => {
  it('the first end of a task holds, and says how it ended', () => {
    const records: PeerRecords = new Map();
    const ends: readonly (readonly [PeerEnd, string])[] = [
      [ANSWER, 'Completed'],
      [{ ...ANSWER, finishReason: 'refusal' }, 'Rejected'],
      [{ kind: 'failed', code: 'TEMPER_TIMEOUT', text: 'late' }, 'Failed'],
      [{ kind: 'failed', code: 'TEMPER_CANCELLED', text: 'canceled' }, 'Canceled'],
    ];
    for (const [end, outcome] of ends) {
      opened(records, outcome);
      ended(records, outcome, end);
      ended(records, outcome);
      assert.equal(outcomeOf(records, outcome), outcome);
    }
    ended(records, 'unknown');
    assert.equal(records.size, ends.length);
  });

  it('a caller keeps its newest ended tasks, the newest of them with answers, its open ones, and those of other callers', () => {
    const records: PeerRecords = new Map();
    opened(records, 'other', 'two');
    ended(records, 'other');
    opened(records, 'open');
    for (let number = 0; number < 150; number += 1) {
      opened(records, `m-${number}`);
      ended(records, `m-${number}`);
    }
    opened(records, 'last');
    const kept = [...records.keys()].filter((id) => id.startsWith('m-'));
    assert.deepEqual([kept.length, kept[0], kept.at(-1)], [100, 'm-50', 'm-149']);
    const answered = kept.filter((id) => records.get(id)?.end !== undefined);
    assert.deepEqual([answered.length, answered[0]], [20, 'm-130']);
    assert.ok(records.has('open') && records.get('other')?.end !== undefined);
  });

  it('a snapshot has all of it, and what cannot be read of one is left out', () => {
    const records: PeerRecords = new Map();
    opened(records, 'open');
    opened(records, 'ended');
    ended(records, 'ended');
    const stored = JSON.parse(JSON.stringify(storedPeerRecords(records))) as Json[];
    assert.deepEqual(parsePeerRecords(stored), records);
    const damaged: Json[] = [null, {}, { task: { message: 1 } }, { task: { message: 'x', ended: { outcome: 'y' } } }];
    assert.deepEqual([...parsePeerRecords([...damaged, ...stored]).keys()], ['open', 'ended']);
    assert.equal(parsePeerRecords(undefined).size, 0);
  });
});
