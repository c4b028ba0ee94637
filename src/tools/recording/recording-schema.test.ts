import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json, JsonObject } from '../../lib/json.ts';
import { createSchemaCompiler } from '../json-schema/compiler.ts';
import { ReportedRecording } from './recording-schema.ts';

const CALL = { name: 'fetch', input: {}, answer: { ok: true, value: 1 }, evidence: 'reported' };
const SANDBOX = { startTime: 1, seed: '0'.repeat(32), answers: [{ call: 1, time: 2 }] };

describe('the schema of a recording that a pod reports', () => {
  const check = createSchemaCompiler().check(JSON.parse(JSON.stringify(ReportedRecording)) as JsonObject);
  const recorded = (recording: Json): Json => ({ ok: true, recording });

  it('the schema accepts each form of a recording', () => {
    const failed = { ...CALL, answer: { ok: false, code: 'TEMPER_FILE_FAILED', message: 'gone' } };
    const { answer: _, ...unanswered } = CALL;
    for (const recording of [
      recorded({ calls: [] }),
      recorded({ calls: [CALL, failed, unanswered], sandbox: SANDBOX }),
      { ok: false, reason: 'ContainsSecret' },
    ]) {
      assert.deepEqual(check(recording), []);
    }
  });

  it('the schema refuses hostile recordings', () => {
    for (const recording of [
      recorded({ calls: Array<Json>(65).fill(CALL) }),
      recorded({ calls: [{ ...CALL, evidence: 'proven' }] }),
      recorded({ calls: [{ ...CALL, name: '' }] }),
      recorded({ calls: [{ ...CALL, answer: { ok: true } }] }),
      recorded({ calls: [{ ...CALL, answer: { ok: false, code: 'no code', message: '' } }] }),
      recorded({ calls: [{ ...CALL, more: 1 }] }),
      recorded({ calls: [], sandbox: { ...SANDBOX, seed: '../../seed' } }),
      recorded({ calls: [], sandbox: { ...SANDBOX, startTime: -1 } }),
      recorded({ calls: [], sandbox: { ...SANDBOX, answers: [{ call: 0, time: 1 }] } }),
      recorded({}),
      { ok: false, reason: 'because' },
      null,
    ]) {
      assert.notDeepEqual(check(recording), [], JSON.stringify(recording));
    }
  });
});
