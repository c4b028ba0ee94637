import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { loadManifests } from '../../api/manifests.ts';
import { builtInDescriptors } from '../../engine/built-in.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { createDecider } from '../../policy/decider.ts';
import { PATTERN_RULES } from '../../policy/patterns/pattern-rules.ts';
import { WEB_SEARCH } from '../../toolbox/web/search/web-search.ts';
import { toolRequest } from '../../tools/authorize.ts';
import { aTerminal } from '../io.testing.ts';
import { importOpenFang, type ImportOptions } from './import-openfang.ts';

let folder = '';

async function run(paths: string[], outDir: string, changes: Partial<ImportOptions> = {}) {
  const io = { ...aTerminal(), cwd: folder };
  const exit = await importOpenFang({ paths, outDir, policy: 'openfang', output: 'json', ...changes }, io);
  return { exit, out: io.printed() };
}

async function textsBelow(name: string): Promise<Record<string, string>> {
  const names = (await readdir(join(folder, name), { recursive: true })).filter((path) => /\.\w+$/.test(path)).sort();
  return Object.fromEntries(
    await Promise.all(names.map(async (path) => [path, await readFile(join(folder, name, path), 'utf8')])),
  );
}

async function manifestsBelow(name: string) {
  return loadManifests([join(folder, name)], { patterns: PATTERN_RULES });
}

describe('temper import openfang', () => {
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-import-'));
    await mkdir(join(folder, 'agents/researcher'), { recursive: true });
    await mkdir(join(folder, 'agents/.hidden'), { recursive: true });
    await writeFile(
      join(folder, 'agents/researcher/agent.toml'),
      'name = "researcher"\n[capabilities]\ntools = ["file_read"]\nnetwork = ["*.example.com"]\n',
    );
    await writeFile(join(folder, 'agents/nameless.toml'), 'version = "1.0.0"\n');
    await writeFile(join(folder, 'agents/.hidden/other.toml'), 'name = "other"\n');
    await writeFile(join(folder, 'module.toml'), 'name = "module"\nmodule = "wasm:a|`b`\\u0007.wasm"\n');
    await writeFile(join(folder, 'again.json'), '{"name": "researcher"}');
    await writeFile(join(folder, 'latin.toml'), Buffer.from([0x61, 0x3d, 0xff]));
  });
  after(async () => {
    await rm(folder, { recursive: true });
  });

  it('the import writes valid manifests, one policy, a kustomization and two reports per file', async () => {
    const { exit } = await run(['agents'], 'out');
    assert.equal(exit, 0);
    assert.deepEqual(Object.keys(await textsBelow('out')), [
      'agents/nameless.yaml',
      'agents/researcher.yaml',
      'kustomization.yaml',
      'policy.yaml',
      'reports/nameless.json',
      'reports/nameless.md',
      'reports/researcher.json',
      'reports/researcher.md',
    ]);
    const { objects, problems } = await manifestsBelow('out');
    assert.deepEqual(problems, []);
    assert.equal(objects.length, 3);
  });

  /** The policy of the import of one agent, and what it decides about the agent. */
  async function decisionsOf(name: string, capabilities: string) {
    await writeFile(join(folder, `${name}.toml`), `name = "${name}"\n[capabilities]\n${capabilities}\n`);
    assert.equal((await run([`${name}.toml`], name)).exit, 0);
    const { objects } = await manifestsBelow(name);
    const found = objects.map(({ object }) => object);
    const agent = found.find((object) => object.kind === 'Agent') ?? assert.fail('no agent');
    const policy = found.find((object) => object.kind === 'TrustPolicy') ?? assert.fail('no policy');
    const { spec } = policy;
    const decider = createDecider({
      agent: { name, namespace: 'default', spec: agent.spec },
      policy: { name: policy.metadata.name, spec },
      level: spec.level?.initial ?? '',
      tainted: false,
      workspace: '/workspace',
    });
    const tools = [...builtInDescriptors(), WEB_SEARCH];
    const effectOf = (tool: string, input?: Json): string => {
      const descriptor = tools.find((one) => one.name === tool) ?? assert.fail(tool);
      return decider.decide(toolRequest(descriptor, input)).effect;
    };
    const mayReach = (host: string): boolean => decider.decide({ kind: 'Network', host, port: 443 }).effect === 'Allow';
    return { level: spec.level, effectOf, mayReach };
  }

  it('the policy of an import opens what its agents need and no more: the web, and programs without the rest of their level', async () => {
    const reader = await decisionsOf('reader', 'tools = ["file_read"]');
    assert.deepEqual(reader.level, { initial: 'sandboxed', ceiling: 'sandboxed' });
    assert.equal(reader.effectOf('file_read', { path: 'a.txt' }), 'Allow');
    const searcher = await decisionsOf('searcher', 'tools = ["web_search"]');
    assert.deepEqual(searcher.level, { initial: 'restricted', ceiling: 'restricted' });
    assert.equal(
      searcher.effectOf('web_search', { query: 'x' }),
      'Escalate',
      'an approver decides below autonomy Full',
    );
    assert.equal(searcher.mayReach('example.com'), false);
    const builder = await decisionsOf(
      'builder',
      'tools = ["shell_exec", "git_push"]\nshell = ["rg *"]\nnetwork = ["example.com"]',
    );
    assert.deepEqual(builder.level, { initial: 'standard', ceiling: 'standard' });
    const shell = (command: string): string => builder.effectOf('shell_exec', { command, args: ['x'] });
    assert.deepEqual([shell('rg'), shell('curl')], ['Allow', 'Deny']);
    assert.deepEqual([builder.mayReach('example.com'), builder.mayReach('example.net')], [true, false]);
    assert.equal(builder.effectOf('git_push'), 'Deny', 'Git is that of level restricted');
  });

  it('a repeated import changes nothing, and another content of a file stops it before it writes', async () => {
    await run(['agents'], 'twice');
    const first = await textsBelow('twice');
    assert.equal((await run(['agents'], 'twice')).exit, 0);
    assert.deepEqual(await textsBelow('twice'), first);
    await assert.rejects(run(['agents', 'again.json'], 'twice', { policy: 'other' }), (error) =>
      isTemperError(error, 'TEMPER_USAGE'),
    );
    assert.deepEqual(await textsBelow('twice'), first);
  });

  it('a file that is refused has a report with the reason, and does not stop the others', async () => {
    const { exit, out } = await run(['module.toml', 'latin.toml', 'agents', 'again.json'], 'some');
    assert.equal(exit, 1);
    const reports = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { problems?: string[] });
    const reasons = reports.flatMap(({ problems = [] }) => problems).join('\n');
    assert.match(reasons, /WASM module/);
    assert.match(reasons, /not UTF-8/);
    assert.match(reasons, /agent of the name researcher too/);
    const texts = await textsBelow('some');
    assert.deepEqual(
      Object.keys(texts).filter((name) => name.startsWith('agents/')),
      ['agents/nameless.yaml', 'agents/researcher.yaml'],
    );
    assert.ok(texts['reports/module.md']?.includes('\u0007') === false);
    assert.match(texts['reports/researcher-2.md'] ?? '', /Attention/);
  });

  it('a path that does not exist and a folder without manifests are mistakes of the command line', async () => {
    await assert.rejects(run(['missing'], 'x'), (error) => isTemperError(error, 'TEMPER_MANIFEST_UNREADABLE'));
    await assert.rejects(run(['agents/.hidden/x', 'out'], 'x'), (error) =>
      isTemperError(error, 'TEMPER_MANIFEST_UNREADABLE'),
    );
    await assert.rejects(run(['out'], 'x'), (error) => isTemperError(error, 'TEMPER_USAGE'));
    await assert.rejects(run(['agents'], 'x', { policy: 'A b' }), (error) => isTemperError(error, 'TEMPER_USAGE'));
  });

  it('the text output is a table of keys, results, fields and notes', async () => {
    const { out } = await run(['agents/researcher/agent.toml'], 'text', { output: 'text' });
    assert.match(out, /^KEY +RESULT +FIELD +NOTE$/m);
    assert.match(out, /^capabilities\.tools\[0\] +Imported +spec\.grants\.tools\[0\]$/m);
    assert.match(out, /^1 of 1 files imported to text with TrustPolicy "openfang"$/m);
  });
});
