import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';

const ROOT = resolve(import.meta.dirname, '../..');
const SOURCE = 'src/cli/main.ts';
const BUNDLE = 'dist/cli/cli.mjs';
const PROGRAMS = { [SOURCE]: 'sources', [BUNDLE]: 'bundle' };
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
    const files = { ...PROGRAMS, 'package.json': '', 'package-lock.json': '' };
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(checkout, name)), { recursive: true });
      const code = `process.stdout.write(\`${text} \${process.argv.slice(2).join(' ')}\`);`;
      await writeFile(join(checkout, name), name.startsWith('package') ? '{"type":"module"}' : code);
    }
    for (const name of [SOURCE, 'src/cli', 'src', 'package.json', 'package-lock.json']) await age(name, 2);
    await age(BUNDLE, 1);
  });
  after(() => rm(checkout, { recursive: true }));

  it('a bundle that is newer than all sources is started with the arguments', () => {
    assert.equal(started('get', 'agents'), 'bundle get agents');
  });

  it('the sources serve, because the bundle has no servers', () => {
    assert.equal(started('serve', 'gateway'), 'sources serve gateway');
  });

  for (const name of [SOURCE, 'src/cli', 'package-lock.json']) {
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
