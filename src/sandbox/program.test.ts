import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { Script } from 'node:vm';
import { linkRunnerProgram } from './program.ts';

const RUNNER = join(import.meta.dirname, 'runner');

describe('the program of a runner', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-program-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  const link = () => linkRunnerProgram(RUNNER, folder);
  /** Without a folder there is no cache. */
  const linkUncached = () => linkRunnerProgram(RUNNER, join(folder, 'absent'));
  const keptFile = async (): Promise<string> => {
    const [name = '', ...others] = await readdir(folder);
    assert.deepEqual(others, []);
    return join(folder, name);
  };

  it('the program is a script without types, imports and exports', async () => {
    const text = await linkUncached();
    assert.doesNotMatch(text, /^(?:import|export) /m);
    assert.equal(typeof new Script(text).runInThisContext(), 'function');
    assert.deepEqual(await readdir(folder), []);
  });

  it('a second process takes the program from the cache', async () => {
    const text = await link();
    assert.equal(text, await linkUncached());
    const file = await keptFile();
    const content = await readFile(file, 'utf8');
    assert.ok(content.endsWith(text));
    assert.equal(await link(), text);
    assert.equal(await readFile(file, 'utf8'), content);
  });

  it('a damaged file of the cache is replaced', async () => {
    const text = await link();
    const file = await keptFile();
    const content = await readFile(file, 'utf8');
    for (const damaged of ['', content.slice(0, -1), content.replace('use strict', 'use sloppy')]) {
      await writeFile(file, damaged);
      assert.equal(await link(), text);
      assert.equal(await readFile(file, 'utf8'), content);
    }
  });

  it('a cache that cannot be written changes nothing', async () => {
    const file = join(folder, 'no-folder');
    await writeFile(file, '');
    assert.equal(await linkRunnerProgram(RUNNER, file), await linkUncached());
    assert.deepEqual(await readdir(folder), ['no-folder']);
  });
});
