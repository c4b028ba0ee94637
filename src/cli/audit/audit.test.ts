import assert from 'node:assert/strict';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { openAudit } from '../../audit/recorded-trail.ts';
import { systemClock as clock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import type { JsonObject } from '../../lib/json.ts';
import { isUnprintable } from '../../lib/printable.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import { prepareStateFolder } from '../../standalone/trust/trust.ts';
import { aTerminal } from '../io.testing.ts';
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
    assert.match(out, /1 record, chain intact, signed with your key\n$/);
  });

  it('a subject that exists nowhere is an error that names those with records, and a session without records is none', async () => {
    await prepareStateFolder(state, keys());
    const records = fileRecordStore(state);
    await records.put('sessions', 'default_a_s2', { session: 's2', agent: 'a', namespace: 'default' });
    const chain = await openAudit({ records, clock, key: await keys().findOrCreate() });
    const facts = { tool: 'totals', session: 's1' };
    await chain.append({ action: 'tool.called', actor: 'agent/a', evidence: 'observed', subject: 'sha256:1', facts });
    await chain.flush();
    await assert.rejects(audited({ subject: 'totasl' }), {
      code: 'TEMPER_NOT_FOUND',
      message:
        'the chain has no record of a tool or session "totasl"; it has records of tools: totals and sessions: s1',
    });
    assert.match((await audited({ subject: 's2' })).out, /^No records of "s2"\.\n1 record, chain intact/);
    for (const subject of ['totals', 'sha256:1', 's1'])
      assert.match((await audited({ subject })).out, /tool\.called .*totals/);
  });

  it('the life of a tool has its verdicts and its calls, and none of the records of others', async () => {
    await prepareStateFolder(state, keys());
    const chain = await openAudit({ records: fileRecordStore(state), clock, key: await keys().findOrCreate() });
    const append = (action: string, subject: string, facts: JsonObject) =>
      chain.append({ action, actor: 'agent/a', evidence: 'observed', subject, facts: { tool: 'totals', ...facts } });
    const verdict = { model: 'acme/judge\u001b[31m', approved: true, confidence: 0.9, promptDigest: 'sha256:abc' };
    await append('tool.accepted', 'sha256:1', { tier: 'Session', verdicts: [verdict], policyRevision: 'sha256:def' });
    await append('tool.called', 'sha256:1', {});
    await append('tool.called', 'sha256:2', { tool: 'other' });
    await append('tool.call-failed', 'sha256:1', {});
    await append('tool.demoted', 'sha256:1', { reason: 'wrong' });
    await chain.flush();
    for (const tool of ['totals', 'sha256:1']) {
      const { code, out } = await audited({ view: 'life', tool });
      assert.equal(code, 0);
      assert.match(out, /1 .*tool\.accepted .*Session, acme\/judge\S* approved 0\.90 \(prompt abc\), policy def/);
      assert.match(out, /2-4 .*tool\.called .*2 calls, 1 failed/);
      assert.match(out, /5 .*tool\.demoted .*wrong/);
      assert.ok(!out.includes('sha256:2') && !out.includes('\u001b'));
    }
    await assert.rejects(audited({ view: 'life', tool: 'none' }), { code: 'TEMPER_NOT_FOUND' });
    assert.equal((await audited({ view: 'life', tool: 'totals', output: 'json' })).out.trim().split('\n').length, 3);
  });

  it('a checkpoint from elsewhere is compared, and a file that is none is an error', async () => {
    await aChain(true);
    const file = join(root, 'head.json');
    const checked = () => audited({ view: 'verdict', head: file });
    await copyFile(join(state, 'audit/head.json'), file);
    assert.deepEqual(await checked(), { code: 0, out: '1 record, chain intact, signed with your key\n', errors: '' });
    await writeFile(file, JSON.stringify({ seq: 7, digest: 'sha256:0' }));
    await assert.rejects(checked(), { code: 'TEMPER_AUDIT_CHAIN_INVALID' });
    const signed = { sequence: 7, records: 7, digest: 'sha256:0', time: 't', key: 'k', signature: 's' };
    for (const [text, message] of [
      ['head', /is not a checkpoint/],
      [JSON.stringify(signed), /is a signed head of a cluster; name the cluster/],
    ] as const) {
      await writeFile(file, text);
      await assert.rejects(checked(), { code: 'TEMPER_USAGE', message });
    }
    await assert.rejects(audited({ keys: file }), { code: 'TEMPER_USAGE', message: /--keys is for a cluster/ });
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
