import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { stageLibraries } from '../../sandbox-image/libraries.ts';

describe('the libraries of an image', {
  skip: process.platform === 'linux' ? false : 'images are built on Linux',
}, () => {
  let image = '';

  beforeEach(async () => {
    image = await mkdtemp(join(tmpdir(), 'temper-libraries-'));
  });
  afterEach(async () => {
    await rm(image, { recursive: true, force: true });
  });

  const staged = async () =>
    (await readdir(image, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());

  it('what Node needs and base images for C++ programs lack is among the files, as a file that everyone can read', async () => {
    await stageLibraries(process.execPath, image);
    const files = await staged();
    assert.deepEqual(
      files.map(({ name }) => name),
      ['libatomic.so.1'],
    );
    assert.match(files[0]?.parentPath ?? '', /\/usr\/lib\/[a-z0-9_]+-linux-gnu$/);
  });

  it('a program that does not need them brings none', async () => {
    await stageLibraries('/bin/ls', image);
    assert.deepEqual(await staged(), []);
  });
});
