import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { fakeCluster } from '../cluster/api-server.testing.ts';
import { aTerminal } from '../io.testing.ts';
import { createProgram } from '../program.ts';
import { completionScript, SHELLS } from './scripts.ts';

const AGENT = `apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: writer}
spec:
  trustPolicyRef: {name: strict}
  model: {primary: default/default}
  prompt: {system: You write.}
`;

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'temper-complete-'));
  const records = fileRecordStore(join(folder, '.temper'));
  await records.put('agents', 'analyst', { metadata: { name: 'analyst' } });
  await records.put('sessions', 's-1', { openedAt: 'now' });
  await records.put('sessions/s-1/tools', 'csv-rows-abc', { spec: { artifact: { name: 'csv_rows' } } });
  const suspension = { id: 'suspension-1', since: '2026-05-04T00:00:00Z' };
  await records.put('judges', 'one', { model: 'acme/judge', outcomes: [], suspension });
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

  it('completion offers the names that a verb accepts, from the state folder and the manifests', async () => {
    for (const words of [['rate'], ['trust', 'explain'], ['usage'], ['reactivate', '--agent']])
      assert.deepEqual(await complete(...words, ''), ['analyst', ':4'], words.join(' '));
    assert.deepEqual(await complete('sessions', ''), ['close', 'analyst', ':4']);
    for (const words of [['sessions', 'close'], ['rate', 'analyst'], ['trace']])
      assert.deepEqual(await complete(...words, ''), ['s-1', ':4'], words.join(' '));
    assert.deepEqual(await complete('audit', '--subject', ''), ['csv_rows', 's-1', ':4']);
    for (const words of [
      ['audit', 'show'],
      ['tool', 'push'],
      ['policy', 'explain', '--promote'],
    ])
      assert.deepEqual(await complete(...words, ''), ['csv_rows', ':4'], words.join(' '));
    assert.deepEqual(await complete('policy', 'explain', '--tool', 'csv'), ['csv_rows', ':4']);
    assert.deepEqual(await complete('judges', '--resume', ''), ['suspension-1', ':4']);
    await writeFile(join(folder, 'agent.yaml'), AGENT);
    assert.deepEqual(await complete('run', '-f', 'agent.yaml', '--agent', ''), ['writer', 'analyst', ':4']);
  });

  it('completion offers servers of the user, their accepted tools, and fixed values', async () => {
    const config = join(folder, 'config');
    await mkdir(join(config, 'temper'), { recursive: true, mode: 0o700 });
    const server = '  - {name: notes, category: web, url: "https://notes.example.com/mcp"}';
    await writeFile(join(config, 'temper/mcp.yaml'), `servers:\n${server}\n`, { mode: 0o600 });
    const environment = { XDG_CONFIG_HOME: config };
    for (const verb of ['tools', 'accept', 'manifest'])
      assert.deepEqual(await completeIn(environment, 'mcp', verb, ''), ['notes', ':4'], verb);
    assert.deepEqual(await complete('discover', 'x', '--kind', 'to'), ['tool', ':4']);
    assert.deepEqual(await complete('usage', '--by', 'te'), ['team', ':4']);
    assert.deepEqual(await complete('rate', 'analyst', 's-1', '1'), ['1', '10', ':4']);
    assert.deepEqual(await complete('deadletters', ''), ['retry', 'drop', ':4']);
    assert.deepEqual(await complete('tool', 'verify', ''), [':0']);
    assert.deepEqual(await complete('help', 'tra'), ['trace', ':4']);
    assert.deepEqual(await complete('help', 'tool', 'ch'), ['check', ':4']);
    assert.deepEqual(await complete('tool', 'help', 'ch'), ['check', ':4']);
    assert.deepEqual(await complete('import', 'openfang', 'a.toml', ''), [':0']);
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
