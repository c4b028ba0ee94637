import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { lockState } from '../lock.ts';
import { assertPlainFiles, entryProblem, type FoundEntry, privateFiles } from './private-folder.ts';

const UID = process.geteuid?.() ?? 0;

describe('the files of a state folder', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-private-'));
    await mkdir(join(folder, 'audit'), { mode: 0o700 });
    await writeFile(join(folder, 'audit/a.json'), '{}', { mode: 0o600 });
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('a folder that only its owner may write to is private, and its files are listed', () => {
    assert.deepEqual(privateFiles(folder), ['audit/a.json']);
    assertPlainFiles(folder);
  });

  const OWN: FoundEntry = { path: '/x', kind: 'file', uid: 1_000, mode: 0o644 };
  for (const [name, entry, problem] of [
    ['a file of the user', OWN, undefined],
    ['a file of root', { ...OWN, uid: 0 }, undefined],
    ['a file of another user', { ...OWN, uid: 65_534 }, 'owner'],
    ['a file that its group may write to', { ...OWN, mode: 0o664 }, 'writable'],
    ['a folder that others may write to', { ...OWN, kind: 'folder', mode: 0o1777 }, 'writable'],
    ['a link', { ...OWN, kind: 'link', mode: 0o777 }, 'special'],
    ['a pipe', { ...OWN, kind: 'other' }, 'special'],
  ] as const) {
    it(`${name} ${problem === undefined ? 'belongs to' : 'does not belong to'} a state folder`, () => {
      assert.equal(entryProblem(entry, 1_000), problem);
    });
  }

  it('files of another user name the command that takes the folder over', async () => {
    // Only root can give a file away; another user is seen as a foreign one.
    const me = UID === 0 ? 4_242 : UID + 1;
    if (UID === 0) await chown(join(folder, 'audit/a.json'), 65_534, 65_534);
    const owner = UID === 0 ? 65_534 : UID;
    const message = new RegExp(`belongs to user id ${owner} and not to you \\(${me}\\).*sudo chown -R ${me} /`);
    assert.throws(() => privateFiles(folder, me), { code: 'TEMPER_STATE_UNTRUSTED', message });
  });

  it('a file that others may write to names the command that forbids it, at any depth', async () => {
    await chmod(join(folder, 'audit/a.json'), 0o666);
    const message = /other users may write to .*a\.json \(mode 0666\).*chmod -R go-w \//;
    assert.throws(() => privateFiles(folder), { code: 'TEMPER_STATE_UNTRUSTED', message });
    await chmod(join(folder, 'audit/a.json'), 0o600);
    await chmod(folder, 0o777);
    await assert.rejects(lockState(folder, 'temper run'), { code: 'TEMPER_STATE_UNTRUSTED', message: /mode 0777/ });
  });

  it('a link and a pipe are refused to run and to read, at any depth', async () => {
    await symlink('/etc/passwd', join(folder, 'audit/b.json'));
    assert.throws(() => assertPlainFiles(folder), { code: 'TEMPER_STATE_UNTRUSTED', message: /a symbolic link/ });
    await rm(join(folder, 'audit/b.json'));
    execFileSync('mkfifo', ['-m', '600', join(folder, 'audit/c.json')]);
    assert.throws(() => assertPlainFiles(folder), { code: 'TEMPER_STATE_UNTRUSTED', message: /a special file/ });
    assert.throws(() => privateFiles(folder), { code: 'TEMPER_STATE_UNTRUSTED', message: /a special file/ });
  });

  it('a link in the place of the folder is refused, with the way to name its target', async () => {
    const link = join(folder, 'link');
    await rm(join(folder, 'audit/a.json'));
    await symlink(join(folder, 'audit'), link);
    await assert.rejects(lockState(link, 'temper run'), {
      code: 'TEMPER_STATE_UNTRUSTED',
      message: /name the folder that it leads to/,
    });
  });

  it('a path in a command is one word of a shell', async () => {
    const odd = join(folder, "it's; rm");
    await mkdir(odd, { mode: 0o700 });
    await chmod(odd, 0o777);
    assert.throws(() => privateFiles(odd), { message: /chmod -R go-w '.*it'\\''s; rm'$/ });
  });
});
