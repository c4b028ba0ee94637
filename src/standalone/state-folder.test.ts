import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { isStateLocked, lockState } from './lock.ts';
import { assertStateFolder, createStateFolder } from './state-folder.ts';

describe('the state folder', async () => {
  const root = await mkdtemp(join(tmpdir(), 'temper-state-'));
  after(() => rm(root, { recursive: true }));

  it('the folder and its parents are created, readable only by their owner', async () => {
    const folder = join(root, 'a/b');
    await createStateFolder(folder);
    assert.equal((await stat(folder)).mode & 0o777, 0o700);
    await createStateFolder(folder);
  });

  it('a file, a path below a file and a path below /proc are refused', async () => {
    const file = join(root, 'file');
    await writeFile(file, '');
    for (const folder of [file, join(file, 'x'), '/proc/temper-no-such']) {
      await assert.rejects(createStateFolder(folder), { code: 'TEMPER_STATE_UNUSABLE' }, folder);
    }
    await assert.rejects(assertStateFolder(file), { code: 'TEMPER_STATE_UNUSABLE' });
  });

  it('a missing folder and a folder of other files are not state folders, an empty one is', async () => {
    const other = join(root, 'other');
    await mkdir(other);
    await assertStateFolder(other);
    await writeFile(join(other, 'notes.txt'), '');
    for (const folder of [join(root, 'missing'), other]) {
      await assert.rejects(assertStateFolder(folder), { code: 'TEMPER_STATE_NOT_FOUND' }, folder);
    }
  });

  it('a lock is visible while it is held, and a test of the lock does not disturb it', async () => {
    const folder = join(root, 'locked');
    assert.equal(isStateLocked(folder), false);
    const lock = await lockState(folder, 'temper run');
    await assertStateFolder(folder);
    assert.equal(isStateLocked(folder), true);
    assert.equal(isStateLocked(folder), true);
    lock.release();
    assert.equal(isStateLocked(folder), false);
  });
});
