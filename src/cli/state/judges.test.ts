import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { openAudit } from '../../audit/recorded-trail.ts';
import { systemClock as clock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { lockState } from '../../standalone/lock.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import { prepareStateFolder } from '../../standalone/trust/trust.ts';
import { createJudgeStandings, recordedStandings } from '../../tempering/canary/standings.ts';
import { aTerminal } from '../io.testing.ts';
import { judges, type JudgesOptions } from './judges.ts';

describe('temper judges', () => {
  let root: string;
  let state: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-judges-'));
    state = join(root, 'state');
    await prepareStateFolder(state, keys());
    const standings = createJudgeStandings(recordedStandings(fileRecordStore(state)));
    await standings.record('acme/good', { mutation: 'leak', caught: true, time: 't' }, 'suspension-0');
    await standings.record('acme/\u001b[31measy', { mutation: 'leak', caught: false, time: 't' }, 'suspension-1');
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const keys = () => stateKeys(join(root, 'config/temper'));

  async function run(options: Partial<JudgesOptions> = {}) {
    const io = { ...aTerminal(), environment: { XDG_CONFIG_HOME: join(root, 'config') } };
    const code = await judges({ state, output: 'text', ...options }, io);
    return { code, out: io.printed() };
  }

  it('the table shows who is suspended, with printable names and the id that lifts it', async () => {
    const { out } = await run();
    assert.match(out, /acme\/good +in service +1 +0/);
    assert.match(out, /acme\/\S*easy +suspended +0 +1 +suspension-1/);
    assert.ok(!out.includes('\u001b'));
    const lines = (await run({ output: 'json' })).out.trim().split('\n');
    assert.equal(lines.length, 2);
  });
  it('a user lifts a suspension by its id, and the chain records it', async () => {
    const { out } = await run({ resume: 'suspension-1' });
    assert.doesNotMatch(out, /suspended/);
    const records = fileRecordStore(state);
    const all = await (await openAudit({ records, clock, key: await keys().findOrCreate() })).records();
    assert.deepEqual(
      all.map(({ action, facts }) => [action, facts['suspension']]),
      [['judge.resumed', 'suspension-1']],
    );
  });
  it('an unknown suspension and a folder in use are errors, and lift nothing', async () => {
    await assert.rejects(run({ resume: 'suspension-2' }), { code: 'TEMPER_NOT_FOUND' });
    const lock = await lockState(state, 'temper run');
    await assert.rejects(run({ resume: 'suspension-1' }), { code: 'TEMPER_STATE_LOCKED' });
    lock.release();
    assert.match((await run()).out, /suspended/);
  });
});
