import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { killStarted, startedAt } from './process-start.ts';

const skip = process.platform === 'linux' ? false : 'only Linux has the folder /proc';

describe('the start time of a process', { skip }, () => {
  it('a running process has the same start time at each look', async () => {
    const first = await startedAt(process.pid);
    assert.match(first ?? '', /^\d+$/);
    assert.equal(await startedAt(process.pid), first);
  });

  it('a process that has ended has none', async () => {
    const { child, pid } = startProcess();
    await end(child);
    assert.equal(await startedAt(pid), undefined);
  });

  it('a process that ends while its file is open has none', async () => {
    const { child, pid } = startProcess();
    const ended = async (...parameters: Parameters<typeof open>) => {
      const file = await open(...parameters);
      await end(child);
      return file;
    };
    assert.equal(await startedAt(pid, ended as typeof open), undefined);
  });

  it('an error of another kind reaches the caller', async () => {
    await assert.rejects(
      startedAt(process.pid, () => Promise.reject(Object.assign(new Error('too many'), { code: 'EMFILE' }))),
      /too many/,
    );
  });

  it('only a process with the named start time is killed', async () => {
    const { child, pid } = startProcess();
    try {
      await killStarted(pid, '1');
      const started = await startedAt(pid);
      assert.ok(started !== undefined);
      const exit = once(child, 'exit');
      await killStarted(pid, started);
      assert.deepEqual(await exit, [null, 'SIGKILL']);
      await killStarted(pid, started);
    } finally {
      child.kill('SIGKILL');
    }
  });
});

function startProcess(): { child: ChildProcess; pid: number } {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1_000)'], { stdio: 'ignore' });
  assert.ok(child.pid !== undefined);
  return { child, pid: child.pid };
}

async function end(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}
