import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { on } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { bundle, vettingProgram, writeDispatcher } from '../../sandbox-image/bundle.ts';
import { anArtifact } from '../../src/tempering/tempering.testing.ts';

const ROLES = ['agent', 'gateway', 'operator', 'sandbox'] as const;

describe('the bundles of the images', { timeout: 120_000 }, () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-bundles-'));
    for (const name of [...ROLES, 'cli'] as const) await bundle(name, folder);
    await writeDispatcher(folder, ROLES);
  });

  after(() => rm(folder, { recursive: true, force: true }));

  const start = (args: readonly string[], options: readonly string[] = []) =>
    spawnSync(process.execPath, [...options, join(folder, 'temper.mjs'), ...args], {
      encoding: 'utf8',
      timeout: 30_000,
    });

  it('each bundle is one file with its source map', async () => {
    const expected = [...ROLES, 'cli'].flatMap((name) => [`${name}.mjs`, `${name}.mjs.map`]);
    assert.deepEqual((await readdir(folder)).toSorted(), [...expected, 'temper.mjs'].toSorted());
  });

  for (const role of ['gateway', 'operator'] as const) {
    it(`the ${role} bundle starts its role, which reports a wrong configuration by its code`, () => {
      // A file with other fields.
      const config = join(import.meta.dirname, '../../package.json');
      const { status, stdout } = start(['serve', role, '--config', config]);
      assert.equal(status, 1, stdout);
      const line = JSON.parse(stdout) as { role: string; code: string };
      assert.deepEqual([line.role, line.code], [role, 'TEMPER_CONFIGURATION_INVALID']);
    });
  }

  it('the gateway bundle holds the program of its threads, which vets a tool', async () => {
    const program = await vettingProgram();
    const text = await readFile(join(folder, 'gateway.mjs'), 'utf8');
    assert.match(text, /new\s+Worker\d*\(\w+,\s*\{\s*\.\.\.\w+,\s*eval:\s*!0\s*\}\)/);
    assert.ok(!text.includes('vetting/worker.ts'), 'the bundle refers to a file that no image has');
    const worker = new Worker(program, { eval: true });
    const messages = on(worker, 'message') as AsyncIterableIterator<[unknown]>;
    assert.deepEqual((await messages.next()).value, ['ready']);
    worker.postMessage(JSON.stringify(anArtifact('fetch')));
    const [vetting] = (await messages.next()).value as [{ shape: { message: string }[] }];
    assert.match(vetting.shape[0]?.message ?? '', /reserved/);
    await worker.terminate();
  });

  for (const role of ['agent', 'sandbox'] as const) {
    it(`the ${role} bundle holds the options of its role`, () => {
      const { status, stdout, stderr } = start(['serve', role, '--help']);
      assert.equal(status, 0, stderr);
      assert.match(stdout, /--workspace <folder>/);
    });
  }

  it('the bundles of a pod hold no schema library: they use the types of the API, not its schemas', async () => {
    for (const role of ['agent', 'sandbox'] as const) {
      const { sources } = JSON.parse(await readFile(join(folder, `${role}.mjs.map`), 'utf8')) as { sources: string[] };
      assert.ok(sources.length > 10, role);
      const schemas = sources.filter((source) => /node_modules\/typebox\/|gateway-api\/.*-schemas?\.ts$/.test(source));
      assert.deepEqual(schemas, [], role);
    }
  });

  it('the command line bundle reads and checks manifests', () => {
    const { status, stdout } = start(['validate', '-f', 'manifests/samples']);
    assert.equal(status, 0, stdout);
  });

  it('a stack trace names the source file and line', () => {
    const failing = "process.stdout.write = () => { throw new Error('the pipe is broken') };";
    const { stderr } = start(['version'], ['--import', `data:text/javascript,${encodeURIComponent(failing)}`]);
    assert.match(stderr, /TEMPER_INTERNAL: the pipe is broken/);
    assert.match(stderr, /at .*\(src\/cli\/program\.ts:\d+:\d+\)/);
    assert.doesNotMatch(stderr, /cli\.mjs:\d+:\d+/);
  });
});
