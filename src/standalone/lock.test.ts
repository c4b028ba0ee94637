import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { isTemperError } from '../lib/errors.ts';
import { lockState } from './lock.ts';

const folders: string[] = [];
async function aFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-lock-'));
  folders.push(folder);
  return folder;
}
after(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

const HOLDER = `
  const { lockState } = await import(process.argv[1]);
  await lockState(process.argv[2], 'temper run');
  process.stdout.write('held');
  setInterval(() => {}, 1000);
`;

describe('the state lock', () => {
  it('only one process holds the state lock, and it is free after its release', async () => {
    const folder = await aFolder();
    const lock = await lockState(folder, 'temper run');
    await assert.rejects(
      lockState(folder, 'temper run'),
      (error) => isTemperError(error, 'TEMPER_STATE_LOCKED') && error.message.includes(String(process.pid)),
    );
    lock.release();
    const again = await lockState(folder, 'temper run');
    again.release();
  });

  it('the state lock is released when its process is killed', async () => {
    const folder = await aFolder();
    const module = new URL('./lock.ts', import.meta.url).href;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', HOLDER, module, folder], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    await assert.rejects(
      lockState(folder, 'temper run'),
      (error) => isTemperError(error, 'TEMPER_STATE_LOCKED') && error.message.includes(String(child.pid)),
    );
    child.kill('SIGKILL');
    await once(child, 'exit');
    const lock = await lockState(folder, 'temper run');
    lock.release();
  });
});
