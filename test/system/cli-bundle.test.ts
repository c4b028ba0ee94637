import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readdir, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';

const ROOT = resolve(import.meta.dirname, '../..');
const SOURCE = 'src/cli/main.ts';
const BUNDLE = 'dist/cli/cli.mjs';
/** Prints its own name and its arguments. */
const program = (name: string): string => `process.stdout.write(['${name}', ...process.argv.slice(2)].join(' '));`;
const FILES = {
  [SOURCE]: program('sources'),
  [BUNDLE]: program('bundle'),
  'sandbox-image/bundle.ts': '',
  'package.json': '{"type":"module"}',
  'package-lock.json': '{}',
};
const OLDER = [
  SOURCE,
  'src/cli',
  'src',
  'sandbox-image/bundle.ts',
  'sandbox-image',
  'package.json',
  'package-lock.json',
];
const HOUR_MS = 3_600_000;

describe('the program that bin/temper starts', () => {
  let checkout: string;

  /** Sets the age of a file or folder of the checkout, in hours. */
  const age = (name: string, hours: number): Promise<void> => {
    const time = new Date(Date.now() - hours * HOUR_MS);
    return utimes(join(checkout, name), time, time);
  };
  const started = (...args: string[]): string => {
    const { stdout, stderr } = spawnSync(join(checkout, 'bin/temper'), args, { encoding: 'utf8' });
    return `${stdout}${stderr}`.trim();
  };

  before(async () => {
    checkout = await mkdtemp(join(tmpdir(), 'temper-checkout-'));
    await mkdir(join(checkout, 'bin'));
    for (const name of ['temper', 'node']) await copyFile(join(ROOT, 'bin', name), join(checkout, 'bin', name));
    await symlink(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
    for (const [name, text] of Object.entries(FILES)) {
      await mkdir(dirname(join(checkout, name)), { recursive: true });
      await writeFile(join(checkout, name), text);
    }
    for (const name of OLDER) await age(name, 2);
    await age(BUNDLE, 1);
  });
  after(() => rm(checkout, { recursive: true }));

  it('a bundle that is newer than all sources is started with the arguments', () => {
    assert.equal(started('get', 'agents'), 'bundle get agents');
  });

  it('the sources serve, because the bundle has no servers', () => {
    assert.equal(started('serve', 'gateway'), 'sources serve gateway');
  });

  for (const name of [SOURCE, 'src/cli', 'sandbox-image/bundle.ts', 'package-lock.json']) {
    it(`the sources are started while ${name} is newer than the bundle`, async () => {
      await age(name, 0.5);
      assert.equal(started('get'), 'sources get');
      await age(name, 2);
      assert.equal(started('get'), 'bundle get');
    });
  }

  it('the sources are started when there is no bundle', async () => {
    await rm(join(checkout, BUNDLE));
    assert.equal(started('get'), 'sources get');
  });
});

describe('the bundle that make cli writes', () => {
  it('it replaces the one before as a whole, and is as old as the start of its making', async () => {
    const parent = await mkdtemp(join(tmpdir(), 'temper-bundle-'));
    const folder = join(parent, 'cli');
    await mkdir(folder);
    await writeFile(join(folder, 'of-before.mjs'), '');
    const start = Date.now();
    const args = [join(ROOT, 'sandbox-image/bundle-cli.ts'), folder];
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    const written = await readdir(folder);
    assert.ok(written.includes('cli.mjs') && !written.includes('of-before.mjs'), written.join(' '));
    assert.deepEqual(await readdir(parent), ['cli']);
    const [program, chunks] = await Promise.all(['cli.mjs', 'cli'].map((name) => stat(join(folder, name))));
    assert.ok(program !== undefined && chunks !== undefined);
    assert.ok(program.mtimeMs >= start - 1_000 && program.mtimeMs < chunks.mtimeMs, String(program.mtimeMs - start));
    await rm(parent, { recursive: true });
  });
});
