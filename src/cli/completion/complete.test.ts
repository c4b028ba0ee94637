import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { fakeCluster } from '../cluster/api-server.testing.ts';
import { aTerminal } from '../io.testing.ts';
import { createProgram } from '../program.ts';
import { completionScript, SHELLS } from './scripts.ts';

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'temper-complete-'));
  const records = fileRecordStore(join(folder, '.temper'));
  await records.put('agents', 'analyst', { metadata: { name: 'analyst' } });
  await records.put('sessions', 's-1', { openedAt: 'now' });
  await records.put('sessions/s-1/tools', 'csv-rows-abc', { spec: { artifact: { name: 'csv_rows' } } });
  await records.put('approvalrequests', 'call-1', { metadata: { name: 'call-1' } });
});
after(() => rm(folder, { recursive: true, force: true }));

async function complete(...words: string[]): Promise<string[]> {
  return completeIn({}, ...words);
}

async function completeIn(environment: Record<string, string>, ...words: string[]): Promise<string[]> {
  const io = { ...aTerminal(), cwd: folder, environment };
  await createProgram(io, () => {}).parseAsync(['__complete', '--', ...words], { from: 'user' });
  return io.printed().trimEnd().split('\n');
}

describe('completion', () => {
  it('completion offers verbs, subcommands and options', async () => {
    assert.deepEqual(await complete('su'), ['suspend', ':4']);
    assert.deepEqual(await complete('app'), ['approve', ':4']);
    assert.deepEqual(await completeIn({ TEMPER_PROGRAM: 'kubectl-temper' }, 'app'), ['approve', ':4']);
    assert.deepEqual(await completeIn({ TEMPER_PROGRAM: 'kubectl-temper' }, 'disc'), [':4'], 'the plug-in refuses it');
    assert.deepEqual(await complete('__'), [':4'], 'a hidden command');
    assert.deepEqual(await complete('top', ''), ['agents', 'tools', ':4']);
    assert.deepEqual(await complete('send', '--fol'), ['--follow', ':4']);
  });

  it('completion leaves files and folders to the shell', async () => {
    for (const words of [
      ['validate', '-f', ''],
      ['validate', '-f', 'a.yaml', ''],
      ['run', '--model-script', 'x'],
      ['run', '--model-script=x'],
      ['tool', 'check', ''],
      ['tool', 'check', 'a.yaml', ''],
      ['policy', 'explain', '--filename', ''],
    ])
      assert.deepEqual(await complete(...words), [':0'], words.join(' '));
    for (const words of [
      ['get', '--state', ''],
      ['run', '--workspace', ''],
      ['init', ''],
      ['skill', 'check', ''],
      ['skill', 'push', ''],
      ['skill', 'pull', 'oci://localhost/a:v1', '--folder', ''],
      ['run', '--skills', ''],
    ])
      assert.deepEqual(await complete(...words), [':16'], words.join(' '));
  });

  it('completion offers the values of options', async () => {
    assert.deepEqual(await complete('get', 'agents', '-o', 'y'), ['yaml', ':4']);
    assert.deepEqual(await complete('get', 'agents', '--output=n'), ['--output=name', ':4']);
    assert.deepEqual(await complete('completion', '--shell', 'f'), ['fish', ':4']);
    assert.deepEqual(await complete('policy', 'explain', '--category', 'term'), ['terminal', ':4']);
    assert.deepEqual(await complete('policy', 'explain', '--tool', 'file_r'), ['file_read', ':4']);
    assert.deepEqual(await complete('policy', 'explain', '--action', 'code:r'), ['code:read', 'code:refactor', ':4']);
  });

  it('completion offers kinds and names of the state folder', async () => {
    assert.deepEqual(await complete('get', 'se'), ['sessions', ':4']);
    assert.deepEqual(await complete('get', 'rej'), ['rejected', ':4']);
    assert.deepEqual(await complete('get', 'al'), ['all', ':4']);
    assert.deepEqual(await complete('describe', 'agent', ''), ['analyst', ':4']);
    assert.deepEqual(await complete('get', 'tools', ''), ['csv_rows', ':4']);
    assert.deepEqual(await complete('demote', ''), ['csv_rows', ':4']);
    assert.deepEqual(await complete('approve', ''), ['call-1', ':4']);
    assert.deepEqual(await complete('run', '--session', ''), ['s-1', ':4']);
    assert.deepEqual(await complete('get', 'agents', '--state', '/nonexistent', ''), [':4']);
  });

  it('completion offers kinds and names of a cluster, and no name that a shell would interpret', async () => {
    const items = ['analyst', 'reviewer', 'x$(id)', 'a b'].map((name) => ({ metadata: { name, namespace: 'team-a' } }));
    await using cluster = await fakeCluster(() => ({
      status: 200,
      body: { kind: 'AgentList', metadata: { resourceVersion: '1' }, items },
    }));
    const plugin = (...words: string[]) => completeIn({ TEMPER_PROGRAM: 'kubectl-temper' }, ...words);
    const named = ['--kubeconfig', cluster.kubeconfig, '-n', 'team-a'];
    assert.deepEqual(await plugin('get', 'se'), [':4']);
    assert.deepEqual(await plugin('send', ...named, ''), ['analyst', 'reviewer', ':4']);
    assert.deepEqual(await complete('get', 'agents', ...named, 'rev'), ['reviewer', ':4']);
    assert.deepEqual(await plugin('send', 'analyst', ...named, ''), [':4']);
    assert.deepEqual(await plugin('send', '--kubeconfig', '/nonexistent', ''), [':4']);
  });
});

describe('the completion scripts', () => {
  it('each script asks temper for candidates and lets the shell complete files', () => {
    const files = { bash: 'compopt -o default', zsh: '_files', fish: '__fish_complete_path' };
    for (const shell of SHELLS) {
      const io = aTerminal();
      assert.equal(completionScript(shell, io), 0);
      assert.match(io.printed(), /temper __complete -- /);
      assert.ok(io.printed().includes(files[shell]), shell);
    }
  });
});
