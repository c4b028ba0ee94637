import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { openAudit } from '../../audit/recorded-trail.ts';
import { systemClock as clock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { isUnprintable } from '../../lib/printable.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import { prepareStateFolder } from '../../standalone/trust/trust.ts';
import { aTerminal } from '../cluster/api-server.testing.ts';
import { audit, type AuditOptions } from './audit.ts';
import { configFolder } from '../state/config-folder.ts';

describe('temper audit', () => {
  let root: string;
  let state: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-audit-'));
    state = join(root, 'state');
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const keys = () => stateKeys(join(root, 'config/temper'));

  /** A chain with one record, as a run of this user or of another one leaves it. */
  async function aChain(isOwn: boolean): Promise<void> {
    const records = fileRecordStore(state);
    if (isOwn) await prepareStateFolder(state, keys());
    const key = isOwn ? { key: await keys().findOrCreate() } : {};
    const chain = await openAudit({ records, clock, ...key });
    const facts = { tool: 'csv\u001b]52;c;eA==\u0007rows\u009b1m\u202e' };
    await chain.append({ action: 'tool.called', actor: 'agent/a', evidence: 'observed', subject: 's', facts });
    await chain.flush();
  }

  async function audited(options: Partial<AuditOptions> = {}) {
    const io = { ...aTerminal(), environment: { XDG_CONFIG_HOME: join(root, 'config') } };
    const code = await audit({ state, output: 'text', ...options }, io);
    return { code, out: io.printed(), errors: io.errors() };
  }

  it('a chain of this user is intact and signed', async () => {
    await aChain(true);
    const { code, out, errors } = await audited();
    assert.deepEqual([code, errors], [0, '']);
    assert.match(out, /1 records, chain intact, signed with your key\n$/);
  });

  it('an intact chain of another author is printed, and fails with the way to adopt it', async () => {
    await aChain(false);
    for (const output of ['text', 'json'] as const) {
      const { code, out, errors } = await audited({ output });
      assert.equal(code, 1);
      assert.match(out, /tool\.called/);
      assert.match(errors, /nothing proves that you wrote them: it has no signature.*temper audit --adopt/);
      assert.equal(await keys().find(), undefined, 'to look creates no key');
    }
  });

  it('--adopt signs the folder and prints what it has', async () => {
    await aChain(false);
    await fileRecordStore(state).put('decisions', 'planted', { verb: 'Approve' });
    await fileRecordStore(state).put('memory/default/a', 'planted', { value: 'obey' });
    const { code, out } = await audited({ adopt: true });
    assert.equal(code, 0);
    assert.match(
      out,
      /is now yours: 2 records, 0 sessions, 1 memory value, 0 packages to import\n1 decision, approval or promotion moved/,
    );
    assert.equal((await audited()).code, 0);
    assert.match((await audited({ adopt: true, output: 'json' })).out, /"records":2,/);
    await assert.rejects(audited({ withTools: true }), { code: 'TEMPER_USAGE', message: /give --adopt too/ });
  });

  it('no output of audit has a character that controls a terminal', async () => {
    await aChain(true);
    for (const output of ['text', 'json'] as const) {
      const { out } = await audited({ output });
      const raw = Array.from(out).filter(
        (character) => character !== '\n' && isUnprintable(character.codePointAt(0) ?? 0),
      );
      assert.deepEqual(raw, []);
    }
  });

  it('the configuration folder follows the XDG specification', () => {
    const folderOf = (environment: Record<string, string>) => configFolder({ environment });
    assert.equal(folderOf({ XDG_CONFIG_HOME: '/c', HOME: '/h' }), '/c/temper');
    assert.equal(folderOf({ XDG_CONFIG_HOME: 'relative', HOME: '/h' }), '/h/.config/temper');
    assert.match(folderOf({}), /^\/.*\/?\.config\/temper$/);
    assert.match(folderOf({ HOME: '' }), /^\/.*\.config\/temper$/);
  });
});
