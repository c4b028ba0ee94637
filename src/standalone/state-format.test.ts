import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../lib/errors.ts';
import { memoryRecordStore } from '../lib/record-store.ts';
import { ensureStateFormat } from './state-format.ts';

describe('the format of a state folder', () => {
  it('a new folder and a folder without sessions get the mark, and open again', async () => {
    for (const withTools of [false, true]) {
      const records = memoryRecordStore();
      if (withTools) await records.put('tools', 'double', {});
      await ensureStateFormat(records, '.temper');
      assert.deepEqual(await records.get('state', 'format'), { version: 2 });
      await ensureStateFormat(records, '.temper');
    }
  });

  it('a folder with sessions that name no agent is refused, and stays as it is', async () => {
    const records = memoryRecordStore();
    await records.put('sessions', 's-1', { openedAt: '2026-01-01T00:00:00Z', usedAt: '2026-01-01T00:00:00Z' });
    await assert.rejects(
      ensureStateFormat(records, '.temper'),
      (error) =>
        isTemperError(error, 'TEMPER_STATE_FORMAT') && /"s-1"; move \.temper\/sessions away/.test(error.message),
    );
    assert.equal(await records.get('state', 'format'), undefined);
  });

  it('a folder of another version is refused', async () => {
    for (const mark of [{ version: 3 }, {}]) {
      const records = memoryRecordStore();
      await records.put('state', 'format', mark);
      await assert.rejects(ensureStateFormat(records, '.temper'), (error) =>
        isTemperError(error, 'TEMPER_STATE_FORMAT'),
      );
    }
  });
});
