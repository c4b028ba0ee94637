import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../../src/lib/clock.ts';
import { isTemperError } from '../../src/lib/errors.ts';
import type { ProgramRequest, ProgramResult } from '../../src/sandbox/terminal/port.ts';
import { createProgramRunner } from '../../src/sandbox/terminal/program-runner.ts';
import { buildLauncher } from '../support/launcher.ts';
import { NEVER_ABORTED } from '../support/stubs.ts';

const CAN = process.platform === 'linux' && (process.arch === 'x64' || process.arch === 'arm64');
/** Prints the name of each attempt that succeeded. */
const ATTEMPTS = `
import ctypes, os, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
victim, outside = int(sys.argv[1]), sys.argv[2]
def attempt(name, work):
    try:
        if work() not in (-1, None): print(name)
    except OSError: pass
def call(number, *args): return libc.syscall(number, *args)
attempt('descriptors', lambda: [fd for fd in range(3, 256) if os.path.exists('/proc/self/fd/%d' % fd)] or None)
attempt('kill', lambda: os.kill(victim, 0) or 1)
attempt('parent', lambda: os.kill(os.getppid(), 0) or 1)
attempt('group', lambda: os.killpg(os.getpgid(victim), 0) or 1)
attempt('limits', lambda: libc.prlimit(victim, 7, ctypes.byref((ctypes.c_ulong * 2)(1, 1)), None))
attempt('priority', lambda: libc.setpriority(0, victim, 19))
attempt('affinity', lambda: os.sched_setaffinity(victim, [0]) or 1)
attempt('trace', lambda: libc.ptrace(16, victim, None, None))
attempt('environment', lambda: open('/proc/%d/environ' % victim).read())
attempt('own environment', lambda: open('/proc/self/environ').read())
attempt('memory', lambda: open('/proc/%d/mem' % victim))
attempt('read outside', lambda: open(outside + '/secret').read())
attempt('read by link', lambda: open('link/secret').read())
attempt('write outside', lambda: open(outside + '/new', 'w'))
attempt('write parent', lambda: open('../new', 'w'))
attempt('truncate', lambda: os.truncate(outside + '/secret', 0) or 1)
attempt('chmod', lambda: os.chmod(outside + '/secret', 0o777) or 1)
attempt('times', lambda: os.utime(outside + '/secret', (0, 0)) or 1)
attempt('remove', lambda: os.unlink(outside + '/secret') or 1)
attempt('hard link', lambda: os.link(outside + '/secret', 'hard') or 1)
attempt('symbolic link', lambda: os.symlink('/etc', 'made') or 1)
attempt('move link', lambda: os.rename('link', 'data') or 1)
attempt('fifo', lambda: os.mkfifo('fifo') or 1)
attempt('memory file system', lambda: open('/dev/shm/x', 'w'))
attempt('passwords', lambda: open('/etc/passwd').read())
attempt('terminal', lambda: open('/dev/tty'))
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK, 17):
    attempt('socket %d' % family, lambda: socket.socket(family, socket.SOCK_STREAM if family < 11 else socket.SOCK_RAW))
attempt('datagram pair', lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
attempt('shared memory', lambda: libc.shmget(1, 4096, 0o1600))
attempt('file in memory', lambda: os.memfd_create('x'))
attempt('message queue', lambda: libc.msgget(1, 0o1600))
attempt('namespace', lambda: libc.unshare(0x10000000))
attempt('watch', lambda: libc.inotify_add_watch(libc.inotify_init(), outside.encode(), 2))
attempt('execute data', lambda: (open('script', 'w').write('#!/bin/sh\\necho ran'), os.system('./script; sh ./script') == 0 or None)[1])
open('inside', 'w').write('works')
socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
print('end')
`;

describe('programs of agents', { skip: CAN ? false : 'needs Linux on x86_64 or aarch64', timeout: 300_000 }, () => {
  let base: string;
  let workspace: string;
  let outside: string;
  let launcher: string;
  let victim: ChildProcess;
  before(async () => {
    base = await realpath(await mkdtemp(join(tmpdir(), 'temper-programs-')));
    launcher = await buildLauncher(base);
    [workspace, outside] = [join(base, 'workspace'), join(base, 'outside')];
    await mkdir(join(workspace, 'data'), { recursive: true });
    await mkdir(outside);
    await writeFile(join(outside, 'secret'), 'secret');
    await symlink(outside, join(workspace, 'link'));
    victim = spawn('sleep', ['600'], { env: { SECRET: 'secret' }, stdio: 'ignore' });
  });
  after(async () => {
    victim.kill('SIGKILL');
    await rm(base, { recursive: true, force: true });
  });

  const run = (program: string, args: string[], change: Partial<ProgramRequest> = {}): Promise<ProgramResult> => {
    const runner = createProgramRunner({ clock: systemClock, launcher, memoryMebibytes: 256 });
    const op = { signal: NEVER_ABORTED, deadline: Number.POSITIVE_INFINITY, key: 'key' };
    const request = {
      program,
      args,
      workspace,
      folder: workspace,
      programs: 'any',
      environment: {},
      milliseconds: 60_000,
    } as const;
    return runner.run({ ...request, ...change }, op);
  };
  const shell = (text: string, change: Partial<ProgramRequest> = {}) => run('sh', ['-c', text], change);
  /** The command lines of all processes that contain the text. */
  const processesWith = async (text: string): Promise<string[]> => {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
    return lines.filter((line) => line.includes(text));
  };

  it('a program gets its words as they are, its input, its folder and a small environment', async () => {
    const words = ['--help', '$(id)', 'a b', '*', '"', ';rm -rf .', '\\'];
    const echoed = await run('printf', ['%s\\n', ...words]);
    assert.deepEqual([echoed.exitCode, echoed.stdout.text], [0, `${words.join('\n')}\n`]);
    assert.equal((await run('cat', ['-'], { input: 'given' })).stdout.text, 'given');
    assert.equal(
      (await run('pwd', [], { folder: join(workspace, 'data') })).stdout.text,
      `${join(workspace, 'data')}\n`,
    );
    const { stdout } = await run('env', [], { environment: { GIVEN: 'yes' } });
    const names = stdout.text.split('\n').flatMap((line) => (line === '' ? [] : [line.split('=')[0]]));
    assert.deepEqual(
      new Set(names),
      new Set([
        'GIT_ATTR_NOSYSTEM',
        'GIT_CEILING_DIRECTORIES',
        'GIT_CONFIG_NOSYSTEM',
        'GIVEN',
        'HOME',
        'LANG',
        'LOGNAME',
        'OPENSSL_CONF',
        'PATH',
        'TERM',
        'TMPDIR',
        'USER',
      ]),
    );
  });

  it('the exit code and the signal are those of the program, and control characters are escaped', async () => {
    const failed = await shell('printf "\\033[2J"; echo why >&2; exit 7');
    assert.deepEqual([failed.exitCode, failed.stdout.text, failed.stderr.text], [7, '\\u{1b}[2J', 'why\n']);
    assert.equal((await shell('kill -SEGV $$')).signal, 'SIGSEGV');
  });

  it('a program reaches nothing outside of its workspace', async (test) => {
    const probe = await run('python3', ['-c', ATTEMPTS, String(victim.pid), outside], { programs: ['python3'] }).catch(
      (error: unknown) =>
        isTemperError(error, 'TEMPER_PROGRAM_NOT_FOUND') ? undefined : Promise.reject(error as Error),
    );
    if (probe === undefined) {
      assert.equal(process.env['CI'], undefined, 'python3 is not installed, and continuous integration skips nothing');
      return test.skip('needs python3');
    }
    assert.deepEqual([probe.stdout.text, probe.stderr.text.includes('Traceback')], ['end\n', false], probe.stderr.text);
    assert.equal(await readFile(join(outside, 'secret'), 'utf8'), 'secret');
    assert.equal(await readFile(join(workspace, 'inside'), 'utf8'), 'works');
  });

  it('a program starts only the programs that are granted', async () => {
    const denied = await run('find', ['.', '-maxdepth', '0', '-exec', 'id', ';'], { programs: ['find'] });
    assert.deepEqual([denied.stdout.text, /denied/.test(denied.stderr.text)], ['', true]);
    const loader = ['/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-aarch64.so.1'];
    for (const file of loader) {
      const loaded = await run('find', ['.', '-maxdepth', '0', '-exec', file, '/usr/bin/id', ';'], {
        programs: ['find'],
      });
      assert.equal(loaded.stdout.text, '');
    }
    const granted = await run('find', ['.', '-maxdepth', '0', '-exec', 'echo', 'ran', ';'], {
      programs: ['find', 'echo'],
    });
    assert.equal(granted.stdout.text, 'ran\n');
  });

  it('programs come from the folders of the system only', async () => {
    await writeFile(join(workspace, 'evil'), '#!/bin/sh\necho ran', { mode: 0o755 });
    for (const name of [
      'evil',
      './evil',
      '../workspace/evil',
      join(workspace, 'evil'),
      '/bin/sh',
      '..',
      '-x',
      'sh\0',
      '',
    ]) {
      await assert.rejects(run(name, []), (error) => isTemperError(error, 'TEMPER_PROGRAM_NOT_FOUND'), name);
    }
    assert.equal((await shell('./evil')).exitCode, 126, 'not even for another program');
  });

  it('a process that leaves its group and its parent is killed with the rest', async () => {
    const result = await shell('(setsid sh -c "(sleep 7531 &) ; sleep 7531" >/dev/null 2>&1 &) ; sleep 0.3; echo done');
    assert.deepEqual(
      [result.exitCode, result.stdout.text, result.left >= 2],
      [0, 'done\n', true],
      JSON.stringify(result),
    );
    assert.deepEqual(await processesWith('7531'), []);
  });

  it('a program that ignores its deadline is killed with all it started', async () => {
    const text = 'trap "" TERM; (setsid sleep 7532 &) ; echo started; while :; do sleep 7532; done';
    const result = await shell(text, { milliseconds: 500 });
    assert.deepEqual([result.signal, result.ended, result.stdout.text], ['SIGKILL', 'Timeout', 'started\n']);
    assert.deepEqual(await processesWith('7532'), []);
    const polite = await shell('trap "echo bye; exit 3" TERM; sleep 7533 & wait', { milliseconds: 500 });
    assert.deepEqual([polite.exitCode, polite.ended, polite.stdout.text], [3, 'Timeout', 'bye\n']);
  });

  it('processes that start each other without end stay below a limit, and end', async () => {
    const result = await shell('f() { f & f & sleep 7534; }; f 2>/dev/null; sleep 7534', { milliseconds: 1_500 });
    assert.equal(result.ended, 'Timeout');
    assert.deepEqual(await processesWith('7534'), []);
    const count = await shell('i=0; while [ $i -lt 400 ]; do sleep 7535 & i=$((i + 1)); done; echo none left');
    assert.ok(!count.stdout.text.includes('none left') && count.left > 100 && count.left <= 256, JSON.stringify(count));
    assert.deepEqual(await processesWith('7535'), []);
  });

  it('children that end while their parent starts others do not keep it from that', async () => {
    const text = 'i=0; while [ $i -lt 400 ]; do /bin/true & i=$((i + 1)); done; wait; echo all started';
    const { exitCode, stdout, stderr } = await shell(text);
    assert.deepEqual([exitCode, stdout.text, stderr.text], [0, 'all started\n', '']);
  });

  it('a program that takes too much memory or writes without end is killed', async () => {
    const memory = await shell('head -c 400000000 /dev/zero | tail -c 400000000 | sleep 60');
    assert.deepEqual([memory.signal, memory.ended], ['SIGKILL', 'Memory']);
    const output = await shell('yes 0123456789abcdef; echo never');
    assert.deepEqual([output.ended, output.stdout.omitted > 60_000_000], ['Output', true]);
    assert.ok(output.stdout.text.length < 80_000 && output.stdout.text.includes('bytes left out'));
    const file = await shell('head -c 300000000 /dev/zero > big; ls -l big | cut -d" " -f5; rm -f big');
    assert.equal(file.stdout.text, '268435456\n');
  });

  it('nothing of a program is left in the folder of temporary files', async () => {
    const { stdout } = await shell('echo x > "$TMPDIR/x"; mkdir -p "$HOME/a/b"; pwd > "$HOME/a/b/c"; echo "$HOME"');
    await assert.rejects(readdir(stdout.text.trim()), { code: 'ENOENT' });
  });

  it('programs end when the process that started them is gone, or cancels the call', async () => {
    const abort = new AbortController();
    const runner = createProgramRunner({ clock: systemClock, launcher });
    const request = {
      program: 'sh',
      args: ['-c', '(setsid sleep 7536 &) ; sleep 7536'],
      workspace,
      folder: workspace,
    } as const;
    const work = runner.run(
      { ...request, programs: 'any', environment: {}, milliseconds: 60_000 },
      { signal: abort.signal, deadline: Number.POSITIVE_INFINITY, key: 'key' },
    );
    setTimeout(() => abort.abort(), 300);
    await assert.rejects(work, (error) => isTemperError(error, 'TEMPER_CANCELLED'));
    assert.deepEqual(await processesWith('7536'), []);
  });

  it('a program runs as the user of a sandbox container and behind its first filter', {
    skip: process.getuid?.() === 0 ? false : 'needs root',
  }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'temper-container-'));
    await chmod(folder, 0o777);
    await chmod(base, 0o755);
    const wrapper = join(folder, 'wrapper');
    const start = `setpriv --reuid 10002 --regid 10000 --clear-groups ${launcher} run ${launcher}`;
    await writeFile(wrapper, `#!/bin/sh\nexec ${start} "$@"\n`, { mode: 0o755 });
    const runner = createProgramRunner({ clock: systemClock, launcher: wrapper });
    const op = { signal: NEVER_ABORTED, deadline: Number.POSITIVE_INFINITY, key: 'key' };
    const request = { workspace: folder, folder, programs: 'any', environment: {}, milliseconds: 60_000 } as const;
    const args = ['-c', 'id -u; echo text > file; chmod 600 file; cat file; (sleep 7537 &); echo end'];
    const result = await runner.run({ ...request, program: 'sh', args }, op);
    await rm(folder, { recursive: true });
    assert.deepEqual([result.stdout.text, result.left], ['10002\ntext\nend\n', 1], JSON.stringify(result));
    assert.deepEqual(await processesWith('7537'), []);
  });

  it('no program runs without a launcher, in a workspace with protected files, or behind a launcher that fails', async () => {
    const op = { signal: NEVER_ABORTED, deadline: Number.POSITIVE_INFINITY, key: 'key' };
    const request = {
      program: 'true',
      args: [],
      workspace,
      folder: workspace,
      environment: {},
      milliseconds: 1_000,
    } as const;
    await using server = createServer();
    server.listen(join(base, 'socket'));
    await once(server, 'listening');
    const refused = [
      { launcher: undefined },
      { launcher, protectedPaths: [join(workspace, 'data')] },
      { launcher, protectedPaths: [base] },
      { launcher: join(base, 'socket') },
      { launcher: '/bin/true' },
    ];
    for (const options of refused) {
      const runner = createProgramRunner({ clock: systemClock, ...options });
      await assert.rejects(runner.run({ ...request, programs: 'any' }, op), (error) =>
        isTemperError(error, 'TEMPER_PROGRAM_UNAVAILABLE'),
      );
    }
  });
});
