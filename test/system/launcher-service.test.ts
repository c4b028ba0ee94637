import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { systemClock } from '../../src/lib/clock.ts';
import { SandboxConnection } from '../../src/pod/agent/sandbox-connection.ts';
import { prepareSocketFolder, socketPaths } from '../../src/pod/socket/socket-folder.ts';
import { aJob, anOp, echoHost } from '../../src/sandbox/sandbox.testing.ts';
import { buildLauncher } from '../support/launcher.ts';
import { poll, pollValue } from '../support/poll.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const CAN = process.platform === 'linux' && (process.arch === 'x64' || process.arch === 'arm64');
const AS_ROOT = process.getuid?.() === 0 ? false : 'needs root';
const OWN_USER = String(process.getuid?.());
const RESTING = '\0\0\0\x12{"type":"resting"}';

/** Writes its process ID, its parent's, and whether it can open a network socket; then it ends, or it waits for a signal. */
const program = (end: string, onTerm = 'process.exit(7)'): string => `
const report = require('node:net').createServer().on('error', (error) => print(error.code)).listen(0, '127.0.0.1', () => print('open'));
function print(socket) {
  console.log(JSON.stringify({ pid: process.pid, parent: process.ppid, socket, code: process.env.LAUNCHER_REST_CODE }));
  ${end}
}
process.on('SIGTERM', () => ${onTerm});
setInterval(() => undefined, 1_000);`;
const REST = 'process.exit(Number(process.env.LAUNCHER_REST_CODE))';
const RESTS = program(`${REST};`);
const STAYS = program('');

interface Start {
  pid: number;
  parent: number;
  socket: string;
  code: string;
}

describe('the launcher of a program that rests', {
  skip: CAN ? false : 'needs Linux on x86_64 or aarch64',
  timeout: 600_000,
}, () => {
  let folder: string;
  let launcher: string;
  let agent: Server;
  const sockets: Socket[] = [];
  const received: string[] = [];
  const launched: ChildProcess[] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-service-'));
    await chmod(folder, 0o755);
    launcher = await buildLauncher(folder);
    agent = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined).on('data', (chunk) => received.push(chunk.toString()));
    });
    agent.listen(join(folder, 'agent.sock'));
    await once(agent, 'listening');
    await chmod(join(folder, 'agent.sock'), 0o666);
  });
  afterEach(() => {
    for (const child of launched.splice(0)) child.kill('SIGKILL');
    for (const socket of sockets.splice(0)) socket.destroy();
    received.splice(0);
  });
  after(async () => {
    agent.close();
    await rm(folder, { recursive: true, force: true });
  });

  function serve(script: string, socket = 'agent.sock', user = OWN_USER) {
    const child = spawn(launcher, ['service', join(folder, socket), user, process.execPath, '-e', script]);
    launched.push(child);
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    const starts = (): Start[] =>
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Start);
    const started = (times: number): Promise<Start[]> =>
      pollValue(
        `${times} starts`,
        async () => starts(),
        (found) => found.length >= times,
      );
    return { child, starts, started };
  }

  const isRunning = (pid: number): boolean => existsSync(`/proc/${pid}`);

  it('a program that rests is started again, with the same restrictions, when its peer closes the connection or sends something', async () => {
    const { child, starts, started } = serve(RESTS);
    await poll('the first rest', () => received.length === 1);
    sockets[0]?.destroy();
    await poll('the second rest', () => received.length === 2);
    sockets[1]?.write('x');
    await poll('the third rest', () => received.length === 3);
    const found = await started(3);
    assert.deepEqual(received, [RESTING, RESTING, RESTING]);
    assert.deepEqual(
      found.map(({ parent, socket, code }) => [parent, socket, code]),
      found.map(() => [child.pid, 'EPERM', '90']),
    );
    assert.equal(new Set(found.map(({ pid }) => pid)).size, 3);
    assert.ok(
      found.every(({ pid }) => !isRunning(pid)),
      'no process is left while it rests',
    );
    assert.equal(starts().length, 3);
  });

  it('the launcher ends with 0 when it is asked to end while its program rests', async () => {
    const { child } = serve(RESTS);
    await poll('the rest', () => received.length === 1);
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    assert.deepEqual(await ended, [0, null]);
  });

  it('the program gets a signal that asks it to end, and the launcher ends with its exit code', async () => {
    const { child, started } = serve(STAYS);
    await started(1);
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    assert.deepEqual(await ended, [7, null]);
  });

  it('the launcher ends with 0 when its program decides to rest while it is asked to end', async () => {
    const { child, started } = serve(program('', REST));
    await started(1);
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    assert.deepEqual(await ended, [0, null]);
    assert.deepEqual(received, []);
  });

  it('the launcher ends with the signal that killed its program', async () => {
    const { child, started } = serve(STAYS);
    const [start] = await started(1);
    const ended = once(child, 'exit');
    process.kill(start?.pid ?? 0, 'SIGKILL');
    assert.deepEqual(await ended, [137, null]);
  });

  it('the program ends with its launcher', async () => {
    const { child, started } = serve(STAYS);
    const [start] = await started(1);
    child.kill('SIGKILL');
    await poll('the end of the program', () => !isRunning(start?.pid ?? 0));
  });

  it('a program whose peer is away or belongs to another user is started again at once', {
    skip: AS_ROOT,
  }, async () => {
    for (const [socket, user] of [
      ['no.sock', OWN_USER],
      ['agent.sock', '4711'],
    ] as const) {
      const { child, started } = serve(RESTS, socket, user);
      await started(2);
      child.kill('SIGKILL');
    }
    assert.deepEqual(received, []);
  });

  it('the launcher refuses a user that is no number and a program that it cannot start', async () => {
    const exit = async (...args: string[]): Promise<unknown> => {
      const [code] = (await once(spawn(launcher, ['service', ...args]), 'exit')) as [number];
      return code;
    };
    assert.equal(await exit('socket', 'me', process.execPath), 2);
    assert.equal(await exit('socket', '0'), 2);
    assert.equal(await exit('socket', '0', join(folder, 'nothing')), 126);
  });

  it('the sandbox container rests when it is idle, and runs the next job after its rest', async () => {
    const run = join(folder, 'run');
    await mkdir(run);
    await mkdir(join(folder, 'workspace'));
    await prepareSocketFolder(run, process.getuid?.() ?? 0);
    const { socket: path } = socketPaths(run);
    const changes: boolean[] = [];
    await using link = await SandboxConnection.listen(path, {
      clock: systemClock,
      restAfterMs: 50,
      mayRest: () => true,
      onChange: (connected) => void changes.push(connected),
    });
    const role = ['--run', run, '--workspace', join(folder, 'workspace'), '--agent-uid', OWN_USER];
    const node = [
      process.execPath,
      '--disable-warning=ExperimentalWarning',
      'src/cli/main.ts',
      'serve',
      'sandbox',
      ...role,
    ];
    const child = spawn(launcher, ['service', path, OWN_USER, ...node], {
      cwd: ROOT,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    launched.push(child);
    const children = async (): Promise<string> =>
      (await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')).trim();
    for (let times = 0; times < 2; times += 1) {
      await poll('the rest of the sandbox', () => link.isResting);
      assert.equal(await children(), '', 'the launcher is the only process');
      const job = aJob('function execute(i) { return i.n * 2 }', { input: { n: 21 } });
      const outcome = await link.run(job, echoHost, anOp());
      assert.equal(outcome.ok && outcome.output, 42, JSON.stringify(outcome));
    }
    assert.ok(!changes.includes(false), 'the pod stays ready');
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    assert.deepEqual(await ended, [0, null]);
  });
});
