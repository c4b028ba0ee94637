import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { stateKeys } from './state-key.ts';

const UNUSABLE = 'TEMPER_STATE_KEY_UNUSABLE';
const MODULE = new URL('./state-key.ts', import.meta.url).href;
const CREATE = `
  const { stateKeys } = await import(process.argv[1]);
  process.stdout.write((await stateKeys(process.argv[2]).findOrCreate()).id);
`;

describe('the key of the state folders', () => {
  let root: string;
  let folder: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-key-'));
    folder = join(root, 'config/temper');
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  it('the key is created at its first use, and only its owner may read it', async () => {
    const keys = stateKeys(folder);
    assert.equal(await keys.find(), undefined);
    const created = await keys.findOrCreate();
    assert.equal((await keys.find())?.id, created.id);
    assert.equal((await stateKeys(folder).findOrCreate()).sign('x'), created.sign('x'));
    assert.equal((await stat(join(folder, 'state.key'))).mode & 0o777, 0o600);
    assert.equal((await stat(folder)).mode & 0o777, 0o700);
    assert.deepEqual(await readdir(folder), ['state.key']);
  });

  it('processes that create the key at the same time get the same key', async () => {
    const ids = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const child = spawn(process.execPath, ['--input-type=module', '--eval', CREATE, MODULE, folder], {
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        const [id] = await Promise.all([text(child.stdout), once(child, 'close')]);
        return id;
      }),
    );
    assert.match(ids[0] ?? '', /^[0-9a-f]{16}$/);
    assert.equal(new Set(ids).size, 1);
    assert.deepEqual(await readdir(folder), ['state.key']);
  });

  it('a damaged key is refused and never replaced', async () => {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (const damaged of ['', 'temper-state-key:12', 'x'.repeat(5_000)]) {
      await writeFile(join(folder, 'state.key'), damaged, { mode: 0o600 });
      await assert.rejects(stateKeys(folder).findOrCreate(), { code: UNUSABLE, message: /state\.key is not a key; / });
      assert.equal(await readFile(join(folder, 'state.key'), 'utf8'), damaged);
    }
  });

  it('a key that others may read, or a folder that others may write to, is refused with the next step', async () => {
    await stateKeys(folder).findOrCreate();
    await chmod(join(folder, 'state.key'), 0o644);
    await assert.rejects(stateKeys(folder).find(), { code: UNUSABLE, message: /other users may open .*chmod 600/ });
    await chmod(join(folder, 'state.key'), 0o600);
    await chmod(folder, 0o777);
    await assert.rejects(stateKeys(folder).find(), { code: UNUSABLE, message: /may write to .*chmod go-w/ });
    await chmod(folder, 0o700);
    const uid = process.geteuid?.() ?? 0;
    if (uid !== 0)
      await assert.rejects(stateKeys(folder, uid + 1).find(), { code: UNUSABLE, message: /belongs to user/ });
  });

  it('a configuration folder that cannot be written names the variable that moves it', async () => {
    await writeFile(join(root, 'file'), '');
    for (const impossible of [join(root, 'file/temper'), '/proc/temper-no-such']) {
      const expected = { code: UNUSABLE, message: /set XDG_CONFIG_HOME to a folder|cannot be read/ };
      await assert.rejects(stateKeys(impossible).findOrCreate(), expected, impossible);
    }
  });

  it('a disk that is full while the key is written leaves nothing behind', async (t) => {
    if (process.platform !== 'linux') return t.skip('needs a limit of the file size that Node ignores as a signal');
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const command = 'ulimit -f 0; exec "$0" --input-type=module --eval "$1" "$2" "$3"';
    const child = spawn('bash', ['-c', command, process.execPath, CREATE, MODULE, folder], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const [errors] = await Promise.all([text(child.stderr), once(child, 'close')]);
    assert.match(errors, /TEMPER_STATE_KEY_UNUSABLE|cannot be stored in/);
    assert.deepEqual(await readdir(folder), []);
    await stateKeys(folder).findOrCreate();
  });
});
