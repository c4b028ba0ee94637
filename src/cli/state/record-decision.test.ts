import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { lockState } from '../../standalone/lock.ts';
import type { CliIo } from '../io.ts';
import { recordDecision } from './record-decision.ts';

async function* noLines(): AsyncGenerator<string> {}

let state: string;
let records: RecordStore;
beforeEach(async () => {
  state = await mkdtemp(join(tmpdir(), 'temper-decisions-'));
  records = fileRecordStore(state);
  // What a run leaves behind.
  (await lockState(state, 'temper run')).release();
});
afterEach(() => rm(state, { recursive: true, force: true }));

async function addRequest(name: string, type: string, decision = ''): Promise<void> {
  await records.put('approvalrequests', name, { spec: { type }, status: { decision } });
}

async function approve(target: string): Promise<string> {
  let out = '';
  const io: CliIo = {
    out: (text) => {
      out += text;
    },
    error: () => {},
    stdin: () => Promise.resolve(''),
    lines: noLines,
    cwd: state,
    environment: {},
    colour: false,
    terminal: false,
    signal: new AbortController().signal,
  };
  await recordDecision({ verb: 'Approve', target, reason: 'fine', state, output: 'text' }, io);
  return out;
}

describe('the decision about a request', () => {
  it('a second decision is refused, before and after the first was applied', async () => {
    await addRequest('promote-x', 'Promotion');
    await approve('promote-x');
    const again = { code: 'TEMPER_USAGE', message: /already decided: Approve, which the process applies next/ };
    await assert.rejects(approve('promote-x'), again);
    await addRequest('promote-y', 'Promotion', 'Denied');
    await assert.rejects(approve('promote-y'), { code: 'TEMPER_USAGE', message: /already decided: Denied/ });
    assert.equal((await records.list('decisions')).length, 1);
  });

  it('the output states whether a running process or the next run applies the decision', async () => {
    await addRequest('promote-x', 'Promotion');
    assert.match(await approve('promote-x'), /it applies when the next temper run starts/);
    await addRequest('call-x', 'ToolCall');
    const lock = await lockState(state, 'temper run');
    assert.match(await approve('call-x'), /the running process applies it now/);
    lock.release();
  });

  it('a decision about a parked call is recorded, and the output says where the call goes on', async () => {
    await records.put('approvalrequests', 'call-x', { spec: { type: 'ToolCall', session: 's-1' }, status: {} });
    assert.match(await approve('call-x'), /when one continues its session \(temper run … --session s-1\)/);
  });

  it('a decision about a call that no run waits for is refused', async () => {
    await addRequest('call-x', 'ToolCall');
    await assert.rejects(approve('call-x'), (error) => isTemperError(error, 'TEMPER_APPROVAL_TIMEOUT'));
    assert.deepEqual(await records.list('decisions'), []);
  });
});
