import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { poll } from '../support/poll.ts';

const skip = process.platform === 'linux' ? false : 'only Linux can end a process with its parent';

describe('startServer', () => {
  it('a started server ends when the process that started it is killed', { skip }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'temper-process-'));
    const program = 'console.log("started"); setInterval(() => {}, 1_000)';
    const server = { name: 'server', path: process.execPath, flags: ['-e', program] };
    const script = `
      import { startServer } from ${JSON.stringify(new URL('process.ts', import.meta.url))};
      const { child } = await startServer(${JSON.stringify(folder)}, ${JSON.stringify(server)});
      console.log(child.pid);
    `;
    const starter = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const [chunk] = (await once(starter.stdout, 'data')) as [Buffer];
      const pid = Number(chunk.toString());
      // The kernel ends it with its parent from the moment on at which setpriv has become the program.
      await poll('output of the server', async () => (await readFile(join(folder, 'server.log'), 'utf8')) !== '');
      assert.ok(isRunning(pid));
      starter.kill('SIGKILL');
      await poll(`the end of process ${pid}`, () => !isRunning(pid));
    } finally {
      starter.kill('SIGKILL');
      await rm(folder, { recursive: true, force: true });
    }
  });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
