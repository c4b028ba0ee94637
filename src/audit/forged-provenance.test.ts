import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { digestOf } from '../lib/canonical.ts';
import { systemClock as clock } from '../lib/clock.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import { memoryRecordStore, type RecordStore } from '../lib/record-store.ts';
import type { Checkpoint } from './port.ts';
import { openAudit } from './recorded-trail.ts';
import { createAuditKey, signatureOf } from './signature.ts';

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '');

/** The stored form of a chain: its records, and its checkpoint. */
interface Stored {
  log: JsonObject[];
  head: JsonObject;
}
/** What a writer without the key makes of a chain. `old` is the same chain some records before. */
type Forgery = (stored: Stored, old: Stored) => { log: Json[]; head?: Json };

const KEY = createAuditKey(Buffer.from('the key of this user'));
const OTHER_KEY = createAuditKey(Buffer.from('the key of another user'));
const RECORDS = 12;
/** The checkpoint covers the records up to this one; each later record has only its own signature. */
const CHECKPOINT = 9;
const ACTIONS = ['tool.accepted', 'tool.called', 'tool.promoted', 'approval.decided', 'tool.demoted', 'tool.refused'];

async function aChain(key = KEY, tools = ['csv_rows', 'totals']): Promise<Stored[]> {
  const records = memoryRecordStore();
  const read = async (): Promise<Stored> => ({
    log: (await records.read('audit/records')) as JsonObject[],
    head: (await records.get('audit', 'head')) as JsonObject,
  });
  const chain = await openAudit({ records, clock, key, adopts: true });
  const states: Stored[] = [];
  for (let index = 0; index < RECORDS; index += 1) {
    const tool = tools[index % tools.length] ?? '';
    const facts = { tool, policyRevision: digestOf(index), verdicts: [{ model: 'acme/judge', approved: true }] };
    const action = ACTIONS[index % ACTIONS.length] ?? '';
    await chain.append({ action, actor: 'agent/analyst', evidence: 'observed', subject: digestOf(tool), facts });
    await chain.flush();
    states.push(await read());
  }
  return states;
}

/** The chain as after a crash: its last records follow the checkpoint. */
async function aCrashedChain(): Promise<{ stored: Stored; old: Stored }> {
  const states = await aChain();
  const [last, old, checkpoint] = [states.at(-1), states[4], states[CHECKPOINT - 1]];
  assert.ok(last && old && checkpoint);
  return { stored: { log: last.log, head: checkpoint.head }, old };
}

async function open({ log, head }: { log: Json[]; head?: Json }, known?: Checkpoint): Promise<RecordStore> {
  const records = memoryRecordStore();
  for (const line of log) await records.append('audit/records', line);
  if (head !== undefined) await records.put('audit', 'head', head);
  await openAudit({ records, clock, key: KEY, ...(known === undefined ? {} : { known }) });
  return records;
}

/** Chains all records again from this one on, as a writer does who has no key; the signatures stay. */
function rechained(log: readonly JsonObject[], from: number): JsonObject[] {
  const result = log.slice(0, from);
  for (const { digest: _, signature, ...content } of log.slice(from)) {
    const previous = result.at(-1)?.['digest'] ?? content['previous'];
    const next = { ...content, seq: result.length + 1, previous } as JsonObject;
    result.push({ ...next, digest: digestOf(next), ...(signature === undefined ? {} : { signature }) });
  }
  return result;
}

const withRecord = (log: readonly JsonObject[], index: number, changes: JsonObject): JsonObject[] =>
  log.with(index, { ...log[index], ...changes });

const EDITS: Record<string, JsonObject> = {
  action: { action: 'tool.accepted.' },
  actor: { actor: 'user/admin' },
  evidence: { evidence: 'reported' },
  subject: { subject: digestOf('another tool') },
  time: { time: '2020-01-01T00:00:00.000Z' },
  facts: { facts: { tool: 'csv_rows', verdicts: [] } },
  previous: { previous: digestOf(0) },
  digest: { digest: digestOf(0) },
  number: { seq: 99 },
};

const cases: [what: string, forge: Forgery][] = [];
for (const [place, index] of Object.entries({ first: 0, middle: 5, checkpoint: CHECKPOINT - 1, last: RECORDS - 1 })) {
  for (const [member, changes] of Object.entries(EDITS))
    cases.push([
      `an edited ${member} of the ${place} record`,
      ({ log, head }) => ({ log: withRecord(log, index, changes), head }),
    ]);
  cases.push([
    `an edited ${place} record after which the chain is computed again`,
    ({ log, head }) => ({ log: rechained(withRecord(log, index, { actor: 'user/admin' }), index), head }),
  ]);
}
for (const count of [4, 6, RECORDS])
  cases.push([`the last ${count} records removed`, ({ log, head }) => ({ log: log.slice(0, RECORDS - count), head })]);
for (const index of [0, 4, 10])
  cases.push([`record ${index + 1} removed`, ({ log, head }) => ({ log: log.toSpliced(index, 1), head })]);
for (const index of [0, 4])
  cases.push([
    `record ${index + 1} removed and the chain computed again`,
    ({ log, head }) => ({ log: rechained(log.toSpliced(index, 1), index), head }),
  ]);
const signatureEdits: Record<string, JsonObject> = {
  'a missing signature': { signature: null },
  'a signature of another key': { signature: { ...signatureOf('record', { seq: 12, digest: 'd' }, OTHER_KEY) } },
  'a signature of a checkpoint': { signature: { ...signatureOf('checkpoint', { seq: 12, digest: 'd' }, KEY) } },
  'an invented signature': { signature: { key: KEY.id, hmac: '0'.repeat(64) } },
};
for (const [what, changes] of Object.entries(signatureEdits))
  cases.push([`${what} at the last record`, ({ log, head }) => ({ log: withRecord(log, RECORDS - 1, changes), head })]);
cases.push(
  ['two records in the other order', ({ log, head }) => ({ log: [log[1], log[0], ...log.slice(2)] as Json[], head })],
  ['all records in the other order', ({ log, head }) => ({ log: log.toReversed(), head })],
  ['the last record first', ({ log, head }) => ({ log: [log.at(-1), ...log.slice(0, -1)] as Json[], head })],
  ['a record twice', ({ log, head }) => ({ log: [...log, log.at(-1) as Json], head })],
  ['an old record at the end', ({ log, head }) => ({ log: [...log, log[2] as Json], head })],
  [
    'the subjects of two tools exchanged',
    ({ log, head }) => ({
      log: withRecord(withRecord(log, 0, { subject: log[1]?.['subject'] ?? '' }), 1, {
        subject: log[0]?.['subject'] ?? '',
      }),
      head,
    }),
  ],
  [
    'the records of two tools exchanged and the chain computed again',
    ({ log, head }) => ({ log: rechained([log[1], log[0], ...log.slice(2)] as JsonObject[], 0), head }),
  ],
  [
    'a record added without the key',
    ({ log, head }) => ({ log: rechained([...log, { ...log[0], signature: null } as JsonObject], RECORDS), head }),
  ],
  [
    'a record added with another key',
    ({ log, head }) => {
      const added = rechained([...log, log[0] as JsonObject], RECORDS);
      const { digest } = added.at(-1) as { digest: string };
      const signature = { ...signatureOf('record', { seq: RECORDS + 1, digest }, OTHER_KEY) };
      return { log: withRecord(added, RECORDS, { signature }), head };
    },
  ],
  ['no checkpoint', ({ log }) => ({ log })],
  ['an empty chain without a checkpoint', () => ({ log: [] })],
  ['a checkpoint that is no object', ({ log }) => ({ log, head: 'head' })],
  ['a checkpoint of a later number', ({ log, head }) => ({ log, head: { ...head, seq: RECORDS } })],
  ['a checkpoint beyond the chain', ({ log, head }) => ({ log, head: { ...head, seq: RECORDS + 1 } })],
  ['a checkpoint of an earlier number', ({ log, head }) => ({ log, head: { ...head, seq: 3 } })],
  ['a checkpoint of another digest', ({ log, head }) => ({ log, head: { ...head, digest: digestOf(0) } })],
  [
    'a checkpoint without a signature',
    ({ log, head: { seq, digest } }) => ({ log, head: { seq, digest } as JsonObject }),
  ],
  [
    'a checkpoint signed with another key',
    ({ log, head }) => ({
      log,
      head: { ...head, signature: { ...signatureOf('checkpoint', head as unknown as Checkpoint, OTHER_KEY) } },
    }),
  ],
  ['the records of an old copy under the new checkpoint', ({ head }, old) => ({ log: old.log, head })],
  ['a record that is null', ({ log, head }) => ({ log: [...log, null], head })],
  ['a record that is a number', ({ log, head }) => ({ log: log.with(3, 3 as unknown as JsonObject), head })],
  ['a record that is a list', ({ log, head }) => ({ log: [[...log] as unknown as Json], head })],
  [
    'an additional member of a record',
    ({ log, head }) => ({ log: withRecord(log, 3, { approvedBy: 'user/admin' }), head }),
  ],
);

describe('forged provenance', () => {
  it('the table has at least sixty forgeries, and the chain before them is valid', async () => {
    assert.ok(cases.length >= 60, String(cases.length));
    await open((await aCrashedChain()).stored);
  });
  for (const [what, forge] of cases) {
    it(`openAudit detects ${what}`, async () => {
      const { stored, old } = await aCrashedChain();
      await assert.rejects(open(forge(stored, old)), { code: 'TEMPER_AUDIT_CHAIN_INVALID' });
    });
  }
  it('a checkpoint from elsewhere detects an old copy of the whole folder, a lost end and another chain of this user', async () => {
    const { stored, old } = await aCrashedChain();
    const known = { seq: RECORDS, digest: textOf(stored.log.at(-1)?.['digest']) };
    const other = (await aChain(KEY, ['other'])).at(-1);
    const lostEnd = { log: stored.log.slice(0, CHECKPOINT), head: stored.head };
    for (const forged of [old, lostEnd, other]) {
      assert.ok(forged);
      await open(forged);
      await assert.rejects(open(forged, known), { code: 'TEMPER_AUDIT_CHAIN_INVALID' });
    }
    await open(stored, known);
  });
});
