import assert from 'node:assert/strict';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import * as fc from 'fast-check';
import { systemClock } from '../lib/clock.ts';
import { isTemperError } from '../lib/errors.ts';
import { fileRecordStore } from '../lib/file-record-store.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import { memoryRecordStore, type RecordStore } from '../lib/record-store.ts';
import { verifyChain } from './chain.ts';
import type { AuditRecord, AuditTrail, Checkpoint } from './port.ts';
import { openAudit } from './recorded-trail.ts';

const folders: string[] = [];
async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-audit-'));
  folders.push(folder);
  return folder;
}
after(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

const adapters: Record<string, () => Promise<RecordStore>> = {
  memory: async () => memoryRecordStore(),
  file: async () => fileRecordStore(await temporaryFolder()),
};

function aRecord(subject: string): AuditRecord {
  return { action: 'tool.called', actor: 'agent/a', evidence: 'observed', subject, facts: { n: 1 } };
}

async function appendRecords(records: RecordStore, count: number): Promise<AuditTrail> {
  const audit = await openAudit({ records, clock: systemClock });
  for (let index = 0; index < count; index += 1) await audit.append(aRecord(`s-${index}`));
  await audit.flush();
  return audit;
}

function open(records: RecordStore, known?: Checkpoint): Promise<AuditTrail> {
  return openAudit({ records, clock: systemClock, ...(known === undefined ? {} : { known }) });
}

async function rewrite(records: RecordStore, lines: Json[]): Promise<void> {
  await records.deleteCollection('audit/records');
  for (const line of lines) await records.append('audit/records', line);
}

const isInvalidChain = (error: unknown): boolean => isTemperError(error, 'TEMPER_AUDIT_CHAIN_INVALID');

for (const [adapter, make] of Object.entries(adapters)) {
  describe(`audit contract: ${adapter}`, () => {
    it('the trail keeps records in order, numbered and chained, with concurrent callers and across a restart', async () => {
      const records = await make();
      const audit = await open(records);
      await Promise.all(Array.from({ length: 20 }, (_, index) => audit.append(aRecord(`s-${index}`))));
      await audit.flush();
      const again = await open(records);
      await again.append(aRecord('last'));
      const all = await again.records();
      assert.deepEqual(
        all.map(({ subject }) => subject),
        [...Array.from({ length: 20 }, (_, index) => `s-${index}`), 'last'],
      );
      assert.equal(verifyChain(all as unknown as Json[], again.head()), undefined);
    });
    it('the trail syncs records before it writes their checkpoint', async () => {
      const records = await make();
      const steps: string[] = [];
      const watched: RecordStore = {
        ...records,
        append: (log, value, durability) => {
          steps.push(durability ?? 'synced');
          return records.append(log, value, durability);
        },
        sync: (log) => {
          steps.push('sync');
          return records.sync(log);
        },
        put: (collection, name, value) => {
          steps.push('checkpoint');
          return records.put(collection, name, value);
        },
      };
      const audit = await open(watched);
      await audit.append(aRecord('called'), 'written');
      await audit.flush();
      assert.deepEqual(steps, ['written', 'sync', 'checkpoint']);
      await audit.append(aRecord('accepted'));
      await audit.flush();
      assert.deepEqual(steps.slice(3), ['synced', 'sync', 'checkpoint']);
    });
    it('append stores a copy of the record, unaffected by later changes of the caller', async () => {
      const audit = await open(await make());
      const record = aRecord('s');
      const done = audit.append(record);
      record.facts.n = 2;
      await done;
      assert.equal((await audit.records())[0]?.facts.n, 1);
    });
    it('the trail continues after a crash between a record and its checkpoint', async () => {
      const records = await make();
      await appendRecords(records, 3);
      const head = await records.get('audit', 'head');
      const audit = await open(records);
      await audit.append(aRecord('after'));
      await audit.flush();
      await records.put('audit', 'head', head as JsonObject);
      const again = await open(records);
      assert.equal(again.head()?.seq, 4);
      await again.append(aRecord('more'));
      assert.equal((await again.records()).length, 5);
    });
    it('openAudit detects that any number of last records was removed', async () => {
      for (const kept of [0, 1, 3, 4]) {
        const records = await make();
        await appendRecords(records, 5);
        await rewrite(records, (await records.read('audit/records')).slice(0, kept));
        await assert.rejects(open(records), isInvalidChain, `${kept} kept`);
      }
    });
    it('openAudit detects an old copy of log and checkpoint by a checkpoint stored elsewhere', async () => {
      const records = await make();
      const audit = await appendRecords(records, 5);
      const known = audit.head();
      const lines = await records.read('audit/records');
      const old = lines[2] as { seq: number; digest: string };
      await rewrite(records, lines.slice(0, 3));
      await records.put('audit', 'head', { seq: old.seq, digest: old.digest });
      await open(records);
      await assert.rejects(open(records, known), isInvalidChain);
    });
    it('openAudit reports the number of a removed, moved, duplicated or foreign record', async () => {
      const changes: ((lines: Json[]) => Json[])[] = [
        (lines) => lines.toSpliced(2, 1),
        (lines) => [lines[0] ?? null, lines[2] ?? null, lines[1] ?? null, ...lines.slice(3)],
        (lines) => [...lines, lines[4] ?? null],
        (lines) => lines.toSpliced(1, 0, { hello: 1 }),
      ];
      for (const change of changes) {
        const records = await make();
        await appendRecords(records, 5);
        await rewrite(records, change(await records.read('audit/records')));
        await assert.rejects(open(records), (error) => isInvalidChain(error) && /audit record \d/.test(String(error)));
      }
    });
    it('the trail fails after a second writer and accepts no further records', async () => {
      const records = await make();
      const first = await appendRecords(records, 2);
      const second = await open(records);
      await second.append(aRecord('theirs'));
      await second.flush();
      await first.append(aRecord('mine')).catch(() => undefined);
      await assert.rejects(first.flush(), isInvalidChain);
      await assert.rejects(first.append(aRecord('mine again')), isInvalidChain);
      await assert.rejects(open(records), isInvalidChain);
    });
    it('openAudit detects the fork of two concurrent writers', async () => {
      const records = await make();
      await appendRecords(records, 2);
      const [one, two] = [await open(records), await open(records)];
      await Promise.allSettled([one.append(aRecord('a')), two.append(aRecord('b'))]);
      await Promise.allSettled([one.flush(), two.flush()]);
      const lines = await records.read('audit/records');
      if (lines.length === 3) return;
      await assert.rejects(open(records), isInvalidChain);
    });
  });
}

describe('audit chain on disk', () => {
  it('openAudit detects a change of any single byte', async () => {
    const folder = await temporaryFolder();
    await appendRecords(fileRecordStore(folder), 4);
    const file = join(folder, 'audit', 'records.jsonl');
    const whole = await readFile(file);
    await copyFile(file, `${file}.copy`);
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
        const bytes = Buffer.from(whole);
        bytes[at] = (bytes[at] ?? 0) ^ change;
        await writeFile(file, bytes);
        await assert.rejects(
          open(fileRecordStore(folder)),
          (error) => isTemperError(error, 'TEMPER_AUDIT_CHAIN_INVALID') || isTemperError(error, 'TEMPER_STATE_CORRUPT'),
        );
      }),
      { numRuns: 300 },
    );
    await copyFile(`${file}.copy`, file);
    await open(fileRecordStore(folder));
  });
});
