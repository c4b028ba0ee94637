import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { openAudit } from '../../audit/recorded-trail.ts';
import type { AuditTrail } from '../../audit/port.ts';
import { systemClock as clock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { isJsonObject, type JsonObject } from '../../lib/json.ts';
import { isStateLocked, lockState } from '../lock.ts';
import { adoptState } from './adopt.ts';
import { stateKeys } from './state-key.ts';
import { prepareStateFolder, trustedKey } from './trust.ts';

const UNTRUSTED = 'TEMPER_STATE_UNTRUSTED';
const RECORD = { action: 'tool.called', actor: 'agent/a', evidence: 'observed', subject: 's', facts: {} } as const;

describe('the trust in a state folder', () => {
  let root: string;
  let folder: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-trust-'));
    folder = join(root, 'state');
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const mine = () => stateKeys(join(root, 'mine'));
  const records = () => fileRecordStore(folder);

  /** Opens the folder as a run does. */
  async function opened(keys = mine()): Promise<AuditTrail> {
    const lock = await lockState(folder, 'temper run');
    try {
      const key = await trustedKey({ folder, records: records(), keys });
      return await openAudit({ records: records(), clock, key });
    } finally {
      lock.release();
    }
  }

  async function runOnce(keys = mine(), count = 1): Promise<void> {
    const audit = await opened(keys);
    for (let done = 0; done < count; done += 1) await audit.append(RECORD);
    await audit.flush();
  }

  async function rewriteHead(change: (head: JsonObject) => void): Promise<void> {
    const head = await records().get('audit', 'head');
    assert.ok(isJsonObject(head));
    change(head);
    await records().put('audit', 'head', head);
  }

  it('a folder that a run creates is trusted by the next run, and by no run of another user', async () => {
    await runOnce();
    await runOnce();
    assert.equal((await opened()).head()?.seq, 2);
    await assert.rejects(opened(stateKeys(join(root, 'other'))), {
      code: UNTRUSTED,
      message: /a key signed it, and you have none.*temper audit --adopt/,
    });
    const other = stateKeys(join(root, 'other'));
    await other.findOrCreate();
    await assert.rejects(opened(other), { code: UNTRUSTED, message: /another user or a lost key signed it/ });
  });

  it('a run that is killed at its start leaves a folder that is still fresh', async () => {
    await mkdir(join(folder, 'audit'), { recursive: true, mode: 0o700 });
    await writeFile(join(folder, 'audit/head.json.123.tmp'), '{"se', { mode: 0o600 });
    await writeFile(join(folder, 'lock.json'), '{}', { mode: 0o600 });
    await runOnce();
  });

  for (const [name, path] of [
    ['memory', 'memory/default/analyst/note.json'],
    ['a package to import', 'imports/x.json'],
    ['a waiting decision', 'decisions/x.json'],
    ['a chain', 'audit/records.jsonl'],
  ] as const) {
    it(`a folder with ${name} and without a signature is refused, and a refused run writes no key`, async () => {
      await mkdir(join(folder, path, '..'), { recursive: true, mode: 0o700 });
      await writeFile(join(folder, path), path.endsWith('l') ? '' : '{}', { mode: 0o600 });
      await writeFile(join(folder, 'lock.json'), '{}', { mode: 0o600 });
      await assert.rejects(opened(), { code: UNTRUSTED, message: /it has no signature: an earlier version/ });
      assert.equal(await mine().find(), undefined);
    });
  }

  it('a record that another program appended after the checkpoint is refused, a record of a killed run is not', async () => {
    await runOnce();
    const head = await readFile(join(folder, 'audit/head.json'), 'utf8');
    await runOnce();
    // What a kill between a record and its checkpoint leaves.
    await writeFile(join(folder, 'audit/head.json'), head);
    assert.equal((await opened()).head()?.seq, 2);
    const unsigned = await openAudit({ records: records(), clock });
    await unsigned.append({ ...RECORD, action: 'tool.accepted' });
    await unsigned.flush();
    await writeFile(join(folder, 'audit/head.json'), head);
    await assert.rejects(opened(), {
      code: 'TEMPER_AUDIT_CHAIN_INVALID',
      message: /record 3 is not signed with your key/,
    });
  });

  it('an edited checkpoint, one of another chain and a removed one are refused', async () => {
    await runOnce(mine(), 2);
    const state = join(root, 'state');
    const second = join(root, 'second');
    folder = second;
    await runOnce(mine(), 2);
    const foreign = await readFile(join(second, 'audit/head.json'), 'utf8');
    folder = state;
    const head = await readFile(join(state, 'audit/head.json'), 'utf8');
    await writeFile(join(state, 'audit/head.json'), foreign);
    await assert.rejects(opened(), { code: 'TEMPER_AUDIT_CHAIN_INVALID' });
    await writeFile(join(state, 'audit/head.json'), head);
    await rewriteHead((value) => (value['seq'] = 1));
    await assert.rejects(opened(), { code: UNTRUSTED, message: /was changed after you signed it/ });
    await writeFile(join(state, 'audit/head.json'), head);
    await rewriteHead((value) => (value['signature'] = 7));
    await assert.rejects(opened(), { code: UNTRUSTED });
    await rm(join(state, 'audit/head.json'));
    await assert.rejects(opened(), { code: UNTRUSTED });
  });

  it('a lost key refuses the folder until it is adopted, and the folder is then signed with the new key', async () => {
    await runOnce();
    await rm(join(root, 'mine'), { recursive: true });
    await assert.rejects(opened(), { code: UNTRUSTED, message: /you have none/ });
    const adopted = await adoptState({ folder, keys: mine(), clock, withTools: false });
    assert.equal(adopted.records, 2);
    await runOnce();
    const again = await adoptState({ folder, keys: mine(), clock, withTools: false });
    assert.equal(again.records, 3, 'the adoption of an own folder changes nothing');
  });

  it('an adoption sets aside what decides, and keeps conversations, memory and packages', async () => {
    for (const collection of [
      'decisions',
      'approvals',
      'approvalrequests',
      'promotions',
      'imports',
      'memory/default/a',
    ])
      await records().put(collection, 'planted', { verb: 'Approve' });
    const adopted = await adoptState({ folder, keys: mine(), clock, withTools: false });
    assert.deepEqual([adopted.setAside, adopted.imports], [4, 1]);
    assert.deepEqual(await records().list('decisions'), []);
    assert.equal((await records().list('unproven/decisions')).length, 1);
    assert.equal((await records().list('memory/default/a')).length, 1);
    await opened();
  });

  it('an adoption with tools keeps approvals and promotions, and sets only waiting decisions aside', async () => {
    for (const collection of ['decisions', 'approvals', 'promotions', 'sessions'])
      await records().put(collection, 'planted', {});
    const adopted = await adoptState({ folder, keys: mine(), clock, withTools: true });
    assert.deepEqual([adopted.setAside, adopted.sessions], [1, 1]);
    assert.equal((await records().list('approvals')).length, 1);
  });

  it('a broken chain cannot be adopted', async () => {
    await runOnce(mine(), 2);
    const file = join(folder, 'audit/records.jsonl');
    await writeFile(file, (await readFile(file, 'utf8')).replace('tool.called', 'tool.edited'));
    await rm(join(root, 'mine'), { recursive: true });
    const adopting = adoptState({ folder, keys: mine(), clock, withTools: true });
    await assert.rejects(adopting, { code: 'TEMPER_AUDIT_CHAIN_INVALID' });
    assert.equal(isStateLocked(folder), false);
  });

  it('a command other than a run prepares a new folder, refuses a foreign one, and writes beside a run', async () => {
    await prepareStateFolder(folder, mine());
    await prepareStateFolder(folder, mine());
    const lock = await lockState(folder, 'temper run');
    await prepareStateFolder(folder, mine());
    lock.release();
    const other = stateKeys(join(root, 'other'));
    await assert.rejects(prepareStateFolder(folder, other), { code: UNTRUSTED });
    await runOnce();
  });

  it('two runs that create one folder at the same time sign it with one key', async () => {
    const both = await Promise.allSettled([runOnce(), runOnce()]);
    assert.ok(both.some(({ status }) => status === 'fulfilled'));
    for (const result of both)
      if (result.status === 'rejected') assert.equal((result.reason as { code?: string }).code, 'TEMPER_STATE_LOCKED');
    await runOnce();
  });

  it('a copy of the folder stays trusted', async () => {
    await runOnce();
    const copy = join(root, 'copy');
    await cp(folder, copy, { recursive: true });
    folder = copy;
    await runOnce();
  });
});

describe('a lock file that another program made', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-lock-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('a link in the place of the lock leads a run to no other file', async () => {
    const victim = join(folder, '../victim-of-a-link');
    await writeFile(victim, 'precious');
    try {
      for (const name of ['lock.json', 'lock.db']) {
        await symlink(victim, join(folder, name));
        await assert.rejects(lockState(folder, 'temper run'), { code: UNTRUSTED });
        assert.equal(await readFile(victim, 'utf8'), 'precious');
        await rm(join(folder, name));
      }
    } finally {
      await rm(victim);
    }
  });

  it('a database or a journal in the place of the lock is refused before SQLite reads it', async () => {
    await writeFile(join(folder, 'lock.db'), 'SQLite format 3\0'.padEnd(4_096, '\0'), { mode: 0o600 });
    await assert.rejects(lockState(folder, 'temper run'), {
      code: 'TEMPER_STATE_CORRUPT',
      message: /lock\.db is not the lock/,
    });
    assert.throws(() => isStateLocked(folder), { code: 'TEMPER_STATE_CORRUPT' });
    await writeFile(join(folder, 'lock.db'), '', { mode: 0o600 });
    await writeFile(join(folder, 'lock.db-journal'), 'x', { mode: 0o600 });
    await assert.rejects(lockState(folder, 'temper run'), {
      code: 'TEMPER_STATE_CORRUPT',
      message: /lock\.db-journal is not the lock/,
    });
  });
});
