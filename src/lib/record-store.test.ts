import assert from 'node:assert/strict';
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { isTemperError } from './errors.ts';
import { fileRecordStore } from './file-record-store.ts';
import { memoryRecordStore, type RecordStore } from './record-store.ts';

const folders: string[] = [];
async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-records-'));
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

for (const [adapter, make] of Object.entries(adapters)) {
  describe(`record store contract: ${adapter}`, () => {
    it('get returns a copy of the stored document', async () => {
      const store = await make();
      const value = { a: [1, null] };
      await store.put('tools', 'one', value);
      value.a.push(2);
      assert.deepEqual(await store.get('tools', 'one'), { a: [1, null] });
      assert.equal(await store.get('tools', 'two'), undefined);
    });
    it('list sorts documents by name and omits deleted ones', async () => {
      const store = await make();
      await store.put('tools', 'b', 2);
      await store.put('tools', 'a', 1);
      await store.put('tools/deeper', 'c', 3);
      assert.deepEqual(await store.list('tools'), [
        { name: 'a', value: 1 },
        { name: 'b', value: 2 },
      ]);
      await store.delete('tools', 'a');
      await store.delete('tools', 'never-there');
      assert.deepEqual(await store.list('tools'), [{ name: 'b', value: 2 }]);
      assert.deepEqual(await store.list('nothing'), []);
    });
    it('a log keeps the order of concurrent appends', async () => {
      const store = await make();
      await Promise.all(Array.from({ length: 20 }, (_, index) => store.append('logs/audit', { index })));
      assert.deepEqual(
        await store.read('logs/audit'),
        Array.from({ length: 20 }, (_, index) => ({ index })),
      );
    });
    it('written lines keep their order among synced lines and are readable immediately', async () => {
      const store = await make();
      await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          store.append('logs/calls', index, index % 3 === 0 ? 'synced' : 'written'),
        ),
      );
      assert.deepEqual(
        await store.read('logs/calls'),
        Array.from({ length: 20 }, (_, index) => index),
      );
      await store.sync('logs/calls');
      await store.sync('logs/never-written');
      await store.append('logs/calls', 20, 'written');
      await store.deleteCollection('logs');
      assert.deepEqual(await store.read('logs/calls'), []);
    });
    it('drop removes a collection and everything below it, and nothing else', async () => {
      const store = await make();
      await store.put('sessions/s-1', 'x', 1);
      await store.append('sessions/s-1/history', 1);
      await store.put('sessions/s-10', 'x', 1);
      await store.deleteCollection('sessions/s-1');
      assert.equal(await store.get('sessions/s-1', 'x'), undefined);
      assert.deepEqual(await store.read('sessions/s-1/history'), []);
      assert.equal(await store.get('sessions/s-10', 'x'), 1);
    });
    it('the store rejects a name that would escape its folder', async () => {
      const store = await make();
      for (const name of ['..', '../x', 'a/b/../c', '', '.hidden', 'a\0b']) {
        await assert.rejects(async () => store.put('tools', name, 1), RangeError, name);
      }
    });
  });
}

describe('file records', () => {
  it('an incomplete last line is ignored by readers and cut off before the next append', async () => {
    const folder = await temporaryFolder();
    const store = fileRecordStore(folder);
    await store.append('audit', { n: 1 });
    await appendFile(join(folder, 'audit.jsonl'), '{"n":2');
    assert.deepEqual(await store.read('audit'), [{ n: 1 }]);
    const restarted = fileRecordStore(folder);
    await restarted.append('audit', { n: 3 });
    assert.deepEqual(await restarted.read('audit'), [{ n: 1 }, { n: 3 }]);
    assert.equal(await readFile(join(folder, 'audit.jsonl'), 'utf8'), '{"n":1}\n{"n":3}\n');
  });
  it('the error of an unreadable file names the file', async () => {
    const folder = await temporaryFolder();
    const store = fileRecordStore(folder);
    await store.put('tools', 'one', 1);
    await writeFile(join(folder, 'tools', 'one.json'), '{');
    await assert.rejects(
      store.get('tools', 'one'),
      (error) => isTemperError(error, 'TEMPER_STATE_CORRUPT') && error.message.includes('one.json'),
    );
  });
});
