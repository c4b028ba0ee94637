import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';

import { stagePrograms } from '../../sandbox-image/programs.ts';
import { buildLauncher } from '../support/launcher.ts';
import {
  buildRunnerProbe,
  IN_RUNNER_WITHOUT_LANDLOCK,
  IN_SANDBOX,
  inRunner,
  parseProbe,
  probeArguments,
  type ProbeResults,
} from '../support/runner-probe/runner-probe.ts';

const run = promisify(execFile);
const USER = { uid: 10_002, gid: 10_000 };
const CAN = process.platform === 'linux' && process.getuid?.() === 0;

describe('a native process in the place of a runner', {
  skip: CAN ? false : 'needs Linux and root',
  timeout: 600_000,
}, () => {
  let folder: string;
  let bin: string;
  let probe: string;
  let supervisor: ChildProcess;
  let agent: Server;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-runner-'));
    await chmod(folder, 0o755);
    bin = join(folder, 'bin');
    const programs = { node: process.execPath, launcher: await buildLauncher(folder) };
    await stagePrograms(programs, bin, { unreadableNode: true });
    probe = join(bin, 'runner-probe');
    await copyFile(await buildRunnerProbe(folder), probe);
    await mkdir(join(folder, 'workspace'));
    for (const name of ['existing', 'removable']) await writeFile(join(folder, 'workspace', name), name);
    for (const name of ['', 'existing', 'removable']) await chown(join(folder, 'workspace', name), USER.uid, USER.gid);
    agent = createServer((socket) => socket.on('error', () => undefined)).listen(join(folder, 'sandbox.sock'));
    await once(agent, 'listening');
    await chmod(join(folder, 'sandbox.sock'), 0o666);
    const program = 'process.stdin.resume(); console.log("running")';
    supervisor = spawn(join(bin, 'launcher'), ['run', join(bin, 'node'), '-e', program], { ...USER, cwd: '/' });
    assert.ok(supervisor.stdout !== null);
    await once(supervisor.stdout, 'data');
  });
  after(async () => {
    supervisor?.kill('SIGKILL');
    agent?.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** The results of the probe, which `starter` starts as the user of the sandbox. */
  const attempt = async (...starter: string[]): Promise<ProbeResults> => {
    const targets = {
      supervisor: supervisor.pid ?? 0,
      folder: join(folder, 'workspace'),
      node: join(bin, 'node'),
      socket: join(folder, 'sandbox.sock'),
      gateway: '127.0.0.1:9',
    };
    // A process group of its own: signals to the group must not reach the processes of the tests.
    const { stdout } = await run('setsid', ['--wait', ...starter, probe, ...probeArguments(targets)], {
      ...USER,
      cwd: '/',
    });
    return parseProbe(stdout);
  };
  const supervised = () => [join(bin, 'launcher'), 'run'];
  const asRunner = () => [join(bin, 'temper-launcher'), 'runner'];

  it('a process of the sandbox writes files and opens Unix sockets, and reads no memory and no network', async () => {
    assert.deepEqual((await attempt(...supervised())).attempts, IN_SANDBOX);
  });

  it('a runner opens no socket, signals and limits only itself, reads no memory, and with Landlock it writes nothing', async () => {
    const { landlock, attempts } = await attempt(...supervised(), ...asRunner());
    assert.deepEqual(attempts, inRunner(landlock));
  });

  it('on a kernel without Landlock a runner opens no socket, signals and limits only itself and reads no memory', async () => {
    const { landlock, attempts } = await attempt(...supervised(), probe, 'without-landlock', ...asRunner());
    assert.equal(landlock, 0);
    assert.deepEqual(attempts, IN_RUNNER_WITHOUT_LANDLOCK);
  });
});
