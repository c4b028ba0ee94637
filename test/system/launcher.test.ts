import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';

import { stagePrograms } from '../../sandbox-image/programs.ts';
import { buildLauncher } from '../support/launcher.ts';

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, '../..');
const CAN = process.platform === 'linux' && (process.arch === 'x64' || process.arch === 'arm64');

/** Only root can start a program as another user. */
const AS_ROOT = process.getuid?.() === 0 ? false : 'needs root';

/** A program that reports which sockets it can open. */
const PROBE = `
const net = require('node:net'), dgram = require('node:dgram'), { execFileSync } = require('node:child_process');
const code = (emitter, event) => new Promise((done) => emitter.on('error', (e) => done(e.code)).on(event, () => done('open')));
(async () => {
  const report = {
    tcp: await code(net.connect(1, '127.0.0.1'), 'connect'),
    listen: await code(net.createServer().listen(0, '127.0.0.1'), 'listening'),
    udp: await code(dgram.createSocket('udp4').bind(0), 'listening'),
    unix: await code(net.createServer().listen(process.argv[1] + '/socket'), 'listening'),
  };
  if (process.argv[2] !== 'child') report.child = JSON.parse(execFileSync(process.execPath, ['-e', process.env.PROBE, process.argv[1] + '/', 'child']));
  console.log(JSON.stringify(report));
  process.exit(0);
})();
`;

describe('the launcher', { skip: CAN ? false : 'needs Linux on x86_64 or aarch64', timeout: 600_000 }, () => {
  let folder: string;
  let launcher: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-launcher-'));
    launcher = await buildLauncher(folder);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const exitCode = async (...args: string[]): Promise<number> =>
    run(launcher, args).then(
      () => 0,
      (error: { code: number }) => error.code,
    );

  it('the launcher denies network sockets to a program and its children, and allows Unix sockets', async () => {
    const { stdout } = await run(launcher, ['run', process.execPath, '-e', PROBE, folder], { env: { PROBE } });
    const refused = { tcp: 'EPERM', listen: 'EPERM', udp: 'EPERM' };
    const { child, ...own } = JSON.parse(stdout) as Record<string, unknown>;
    assert.deepEqual(own, { ...refused, unix: 'open' });
    assert.deepEqual({ ...(child as object), unix: '' }, { ...refused, unix: '' });
    const without = await run(process.execPath, ['-e', PROBE, folder, 'child'], { env: {} });
    assert.match(without.stdout, /"listen":"open"/, 'without the launcher the sockets open');
  });

  it('the launcher denies system calls that access other processes or the kernel, in every variant', async () => {
    const program = join(folder, 'calls');
    await writeFile(
      `${program}.c`,
      `#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define TRY(name, ...) do { errno = 0; long r = syscall(__VA_ARGS__); printf("%s %d\\n", name, r < 0 ? errno : 0); } while (0)
int main(void) {
  char b[8] = {0};
  struct rlimit core;
  TRY("ptrace", __NR_ptrace, PTRACE_TRACEME, 0, 0, 0);
  TRY("vm_read", __NR_process_vm_readv, getpid(), b, 0, b, 0, 0);
  TRY("vm_write", __NR_process_vm_writev, getpid(), b, 0, b, 0, 0);
  TRY("userfaultfd", __NR_userfaultfd, 0);
  TRY("io_uring", __NR_io_uring_setup, 1, b);
  TRY("bpf", __NR_bpf, 0, b, 0);
  TRY("keyctl", __NR_keyctl, 0, 0, 0, 0, 0);
  TRY("perf", __NR_perf_event_open, b, 0, -1, -1, 0);
  TRY("mount", __NR_mount, "a", "b", "c", 0, 0);
  TRY("unshare", __NR_unshare, CLONE_NEWUSER);
  TRY("clone", __NR_clone, CLONE_NEWUSER, 0, 0, 0, 0);
  TRY("inet", __NR_socket, AF_INET, SOCK_STREAM, 0);
  TRY("inet6", __NR_socket, AF_INET6, SOCK_STREAM, 0);
  TRY("packet", __NR_socket, AF_PACKET, SOCK_RAW, 0);
  TRY("netlink", __NR_socket, AF_NETLINK, SOCK_RAW, 0);
  TRY("vsock", __NR_socket, 40, SOCK_STREAM, 0);
#if defined(__x86_64__)
  TRY("x32", 0x40000000 + __NR_socket, AF_INET, SOCK_STREAM, 0);
#endif
  getrlimit(RLIMIT_CORE, &core);
  printf("core %d\\n", core.rlim_max != 0);
  printf("privileges %d\\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 1);
  return 0;
}`,
    );
    await run('cc', ['-o', program, `${program}.c`]);
    const { stdout } = await run(launcher, ['run', program]);
    const results = new Map(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split(' ') as [string, string]),
    );
    for (const name of ['core', 'privileges']) {
      assert.equal(results.get(name), '0', name);
      results.delete(name);
    }
    assert.ok(results.size >= 16);
    assert.deepEqual(
      [...results].filter(([, errno]) => errno !== '1'),
      [],
      'every one is EPERM',
    );
  });

  it('the sandbox runs jobs under the launcher', async () => {
    const program = `
      import { createSupervisor } from ${JSON.stringify(join(ROOT, 'src/sandbox/supervisor.ts'))};
      import { systemClock } from ${JSON.stringify(join(ROOT, 'src/lib/clock.ts'))};
      import { aJob, anOp, echoHost } from ${JSON.stringify(join(ROOT, 'src/sandbox/sandbox.testing.ts'))};
      const sandbox = await createSupervisor({ clock: systemClock });
      const { output } = await sandbox.run(aJob('function execute(i) { return i.n * 2 }', { input: { n: 21 } }), echoHost, anOp());
      const stuck = await sandbox.run(aJob('function execute() { for (;;); }', { limits: { durationMilliseconds: 100 } }), echoHost, anOp());
      console.log(output, stuck.code);
      await sandbox[Symbol.asyncDispose]();`;
    const { stdout } = await run(launcher, ['run', process.execPath, '--input-type=module', '--eval', program]);
    assert.equal(stdout.trim(), '42 TEMPER_SANDBOX_TIMEOUT');
  });

  /** Programs as an image has them: `node` cannot be read by other users than root. */
  const programs = async (name: string, unreadableNode: boolean): Promise<string> => {
    const bin = join(folder, name);
    await stagePrograms({ node: process.execPath, launcher }, bin, { unreadableNode });
    return bin;
  };
  /** Starts Node of the image as the user of the sandbox, whose child looks at the memory of its parent and reports the result. */
  const memoryOfParent = async (bin: string, ...starter: string[]): Promise<string> => {
    const look = `try { require('node:fs').openSync('/proc/' + process.ppid + '/mem', 'r+'); console.log('open'); } catch (e) { console.log(e.code); }`;
    const node = join(bin, 'node');
    const parent = `const { execFileSync } = require('node:child_process');
      const [program, ...args] = ${JSON.stringify([...starter, node, '-e', look])};
      process.stdout.write(execFileSync(program, args));`;
    const { stdout } = await run(join(bin, 'launcher'), ['run', node, '-e', parent], {
      uid: 10_002,
      gid: 10_000,
      cwd: '/',
    });
    return stdout.trim();
  };

  it('a runner cannot open the memory of its supervisor in the sandbox image', { skip: AS_ROOT }, async () => {
    await chmod(folder, 0o755);
    const [plain, image] = [await programs('plain', false), await programs('image', true)];
    assert.equal(await memoryOfParent(plain), 'open', 'with a readable program the memory is open');
    assert.equal(await memoryOfParent(image), 'EACCES');
  });

  it('the sandbox runs jobs in the programs of the image, with the launcher of runners', {
    skip: AS_ROOT,
  }, async () => {
    await chmod(folder, 0o755);
    const bin = await programs('sandbox', true);
    const program = `
      import { readFileSync } from 'node:fs';
      import { createSupervisor } from ${JSON.stringify(join(ROOT, 'src/sandbox/supervisor.ts'))};
      import { systemClock } from ${JSON.stringify(join(ROOT, 'src/lib/clock.ts'))};
      import { aJob, anOp, echoHost } from ${JSON.stringify(join(ROOT, 'src/sandbox/sandbox.testing.ts'))};
      const sandbox = await createSupervisor({ clock: systemClock, nodePath: ${JSON.stringify(join(bin, 'node'))} });
      const { output } = await sandbox.run(aJob('function execute(i) { return i.n * 2 }', { input: { n: 21 } }), echoHost, anOp());
      const limitsOf = (pid) => [
        readFileSync('/proc/' + pid + '/oom_score_adj', 'utf8').trim(),
        /Max file size +([0-9]+)/.exec(readFileSync('/proc/' + pid + '/limits', 'utf8'))?.[1],
      ];
      const limitsOfChildren = () => {
        const children = readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8').trim().split(' ');
        return [...new Set(children.map((pid) => limitsOf(pid).join(' ')))];
      };
      // The supervisor also starts the next runner, whose launcher sets the limits one after another.
      for (let attempt = 0; attempt < 200 && limitsOfChildren().length > 1; attempt += 1) await new Promise((resolve) => setTimeout(resolve, 50));
      console.log(JSON.stringify([output, limitsOfChildren()]));
      await sandbox[Symbol.asyncDispose]();`;
    const args = ['run', process.execPath, '--input-type=module', '--eval', program];
    const { stdout } = await run(launcher, args);
    assert.deepEqual(JSON.parse(stdout), [42, ['1000 0']]);
  });

  const landlockVersion = async (): Promise<number> => {
    const program = join(folder, 'landlock');
    await writeFile(
      `${program}.c`,
      '#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf("%ld", syscall(444, 0, 0, 1)); return 0; }',
    );
    await run('cc', ['-w', '-o', program, `${program}.c`]);
    return Number((await run(program)).stdout);
  };

  it('the launcher confines a runner with Landlock: no writes, no signals, no memory of other processes', async (t) => {
    if ((await landlockVersion()) < 6) {
      t.skip('the kernel has no Landlock, or an older one');
      return;
    }
    const attempt = `const fs = require('node:fs'), code = (f) => { try { f(); return 'done'; } catch (e) { return e.code; } };
      const pid = process.ppid, file = process.argv[1] + '/written';
      console.log(JSON.stringify([code(() => fs.writeFileSync(file, '')), code(() => fs.mkdirSync(file)), code(() => process.kill(pid, 0)),
        code(() => fs.openSync('/proc/' + pid + '/mem', 'r')), code(() => process.kill(process.pid, 0)), code(() => fs.readdirSync('/'))]));`;
    const { stdout } = await run(launcher, ['runner', process.execPath, '-e', attempt, folder]);
    assert.deepEqual(JSON.parse(stdout), ['EACCES', 'EACCES', 'EPERM', 'EACCES', 'done', 'done']);
    const free = await run(process.execPath, ['-e', attempt, await mkdtemp(join(folder, 'free-'))]);
    assert.deepEqual(
      JSON.parse(free.stdout),
      ['done', 'EEXIST', 'done', 'done', 'done', 'done'],
      'without the launcher',
    );
  });

  it('a runner with writable folders writes, moves and removes files in them, and nothing beside them', async (t) => {
    const [home, second, beside] = await Promise.all(
      ['home-', 'second-', 'beside-'].map((name) => mkdtemp(join(folder, name))),
    );
    assert.ok(home !== undefined && second !== undefined && beside !== undefined);
    const attempt = `const fs = require('node:fs'), [, home, beside, second] = process.argv, code = (f) => { try { f(); return 'done'; } catch (e) { return e.code; } };
      const size = () => Number(/Max file size +([0-9]+)/.exec(fs.readFileSync('/proc/self/limits', 'utf8'))?.[1]);
      console.log(JSON.stringify([code(() => fs.mkdirSync(home + '/a')), code(() => fs.writeFileSync(home + '/a/b', 'text')),
        code(() => fs.renameSync(home + '/a/b', home + '/c')), code(() => fs.truncateSync(home + '/c')), code(() => fs.rmSync(home + '/c')),
        code(() => fs.writeFileSync(second + '/b', '')),
        code(() => fs.symlinkSync('/', home + '/link')), code(() => fs.writeFileSync(beside + '/b', '')), code(() => fs.renameSync(home + '/a', beside + '/a')), size()]));`;
    const args = ['runner', '--writable', home, '--writable', second, process.execPath, '-e', attempt];
    const { stdout } = await run(launcher, [...args, home, beside, second]);
    const found = JSON.parse(stdout) as unknown[];
    assert.equal(found.at(-1), 64 * 1_024 * 1_024);
    assert.equal(await exitCode('runner', '--writable', home), 2);
    assert.equal(await exitCode('runner', '--writable', join(home, 'none'), process.execPath, '-e', ''), 125);
    if ((await landlockVersion()) < 3) {
      t.skip('the kernel has no Landlock, or an older one');
      return;
    }
    assert.deepEqual(found.slice(0, 8), [...Array<string>(6).fill('done'), 'EACCES', 'EACCES']);
    assert.ok(['EACCES', 'EXDEV'].includes(String(found[8])), String(found[8]));
  });

  it('the command ready waits for the file up to the number of seconds in its argument', async () => {
    const file = join(folder, 'ready-later');
    const uid = String(process.getuid?.());
    assert.equal(await exitCode('ready', file, uid, '1'), 1);
    const waiting = exitCode('ready', file, uid, '3600');
    await writeFile(file, '');
    assert.equal(await waiting, 0);
  });

  it('the command ready checks the existence and the owner of a file', async () => {
    const file = join(folder, 'ready');
    const uid = String(process.getuid?.());
    assert.equal(await exitCode('ready', file, uid), 1);
    await writeFile(file, '');
    assert.equal(await exitCode('ready', file, uid), 0);
    assert.equal(await exitCode('ready', file, '4711'), 1);
    assert.equal(await exitCode('ready', folder, uid), 1);
    assert.equal(await exitCode('ready', file, 'me'), 2);
    assert.equal(await exitCode('ready', file, uid, '-1'), 2);
    assert.equal(await exitCode('ready', file, uid, '99999999999999999999'), 2);
    assert.equal(await exitCode('run', join(folder, 'nothing')), 126);
    assert.equal(await exitCode(), 2);
  });
});
