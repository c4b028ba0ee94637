import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { fileRecordStore } from '../lib/file-record-store.ts';
import { ulids } from '../lib/ids.ts';
import type { RecordStore } from '../lib/record-store.ts';
import { applyDecisions, submitDecision, type UserDecision, userName } from './decision-files.ts';

const deps = { clock: systemClock, ids: ulids };
const UID = process.geteuid?.() ?? 0;

let state: string;
let records: RecordStore;
beforeEach(async () => {
  state = await mkdtemp(join(tmpdir(), 'temper-decisions-'));
  records = fileRecordStore(state);
});
afterEach(() => rm(state, { recursive: true, force: true }));

/** Applies all decisions; returns them, and the codes of the invalid ones. */
async function applyAll(uid = UID): Promise<{ applied: UserDecision[]; invalid: string[] }> {
  const [applied, invalid]: [UserDecision[], string[]] = [[], []];
  const apply = async (decision: UserDecision): Promise<void> => void applied.push(decision);
  await applyDecisions(state, apply, ({ code }) => invalid.push(code), uid);
  return { applied, invalid };
}

describe('decisions from other processes', () => {
  it('submitted decisions are applied once and then removed', async () => {
    await submitDecision(records, { verb: 'Demote', target: 'csv_rows', reason: 'wrong' }, deps);
    await submitDecision(records, { verb: 'Approve', target: 'x', reason: 'fine' }, deps);
    const { applied } = await applyAll();
    assert.deepEqual(applied.map(({ verb }) => verb).sort(), ['Approve', 'Demote']);
    assert.deepEqual((await applyAll()).applied, []);
    assert.deepEqual(await readdir(join(state, 'decisions')), []);
  });

  it('the decider is the owner of the file, whatever its text says', async () => {
    const planted = {
      id: 'd',
      verb: 'Approve',
      target: 'x',
      reason: 'ok',
      by: 'user/security-team',
      time: '2026-01-01T00:00:00Z',
    };
    await records.put('decisions', 'd', planted);
    const { applied } = await applyAll();
    assert.deepEqual(
      applied.map(({ by }) => by),
      [`user/${userInfo().username}`],
    );
  });

  it('a file of another user is set aside, and a file of root counts as a decision of root', async () => {
    await submitDecision(records, { verb: 'Approve', target: 'x', reason: 'fine' }, deps);
    const { applied, invalid } = await applyAll(UID + 1);
    // A test process of root leaves a file of root.
    assert.deepEqual(
      applied.map(({ by }) => by),
      UID === 0 ? ['user/root'] : [],
    );
    assert.deepEqual(invalid, UID === 0 ? [] : ['TEMPER_STATE_CORRUPT']);
    assert.equal(userName(4_242_424), 'user/uid-4242424');
  });

  it('files that are no decision are set aside once, unread, and do not block a decision', async () => {
    await records.put('decisions', 'decision-0', { verb: 'Explode' });
    const folder = join(state, 'decisions');
    await writeFile(join(folder, 'decision-1.json'), '{"verb": "Approve"');
    await writeFile(join(folder, 'decision-2.json'), `{"verb": "Approve", "padding": "${'x'.repeat(70_000)}"}`);
    execFileSync('mkfifo', [join(folder, 'decision-3.json')]);
    await symlink('/etc/hostname', join(folder, 'decision-4.json'));
    for (const [name, target] of Object.entries({ 'decision-5': '../../x', 'decision-6': 'a/b', 'decision-7': '' }))
      await records.put('decisions', name, { verb: 'Approve', target, reason: '', time: '2026-01-01T00:00:00Z' });
    await records.put('decisions', 'decision-8', { verb: 'Deny', target: 'x', reason: '', time: 'soon' });
    await submitDecision(records, { verb: 'Approve', target: 'x', reason: 'fine' }, deps);
    const { applied, invalid } = await applyAll();
    assert.deepEqual(
      applied.map(({ verb }) => verb),
      ['Approve'],
    );
    assert.equal(invalid.length, 9);
    assert.equal((await readdir(join(state, 'decisions-invalid'))).length, 9);
    assert.deepEqual(await applyAll(), { applied: [], invalid: [] });
  });

  it('a decision stays stored when its application fails', async () => {
    await submitDecision(records, { verb: 'Demote', target: 'csv_rows', reason: 'wrong' }, deps);
    await assert.rejects(applyDecisions(state, () => Promise.reject(new Error('disk full'))));
    assert.equal((await records.list('decisions')).length, 1);
  });
});
