import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { ProgramHome } from './program-home.ts';

it('the home of a confined program has a size in entries and bytes, and is removed', async () => {
  const home = await ProgramHome.create();
  {
    await using open = home;
    await mkdir(join(open.path, 'a'));
    await writeFile(join(open.path, 'a/b'), 'x'.repeat(1_000));
    await symlink('/usr', join(open.path, 'link'));
    const fits = [
      { entries: 4, bytes: 1_100 },
      { entries: 3, bytes: 1_100 },
      { entries: 4, bytes: 999 },
    ].map((limits) => open.fits(limits));
    assert.deepEqual(await Promise.all(fits), [true, false, false]);
  }
  assert.equal(existsSync(home.path), false);
});
