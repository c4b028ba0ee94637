import assert from 'node:assert/strict';
import { mkdtemp, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { assert as check, jsonValue, property } from 'fast-check';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { HostCalls } from '../../sandbox/port.ts';
import { aJob, anOp } from '../../sandbox/sandbox.testing.ts';
import { connectedSandbox } from '../../../test/support/connected-sandbox.ts';
import { RoleProcess } from '../pod.testing.ts';
import { framed } from '../../../test/support/frame-peer.ts';
import { parseAgentFrame, parseSandboxFrame } from '../socket/protocol.ts';
import { prepareSocketFolder, socketPaths } from '../socket/socket-folder.ts';
import { SandboxConnection } from './sandbox-connection.ts';

const noHost: HostCalls = { call: () => Promise.reject(new Error('unexpected host call')) };

async function closed(socket: Socket): Promise<void> {
  socket.on('error', () => undefined);
  socket.resume();
  if (!socket.destroyed) await new Promise<void>((resolve) => socket.once('close', () => resolve()));
}

describe('the socket between the containers of a pod', { timeout: 600_000 }, () => {
  let folder: string;
  let run: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-link-'));
    run = join(folder, 'run');
    await mkdir(join(folder, 'workspace'));
    await mkdir(run);
    await writeFile(join(folder, 'secret.txt'), 'outside');
    await writeFile(join(folder, 'workspace/in.txt'), 'inside');
    await symlink(join(folder, 'secret.txt'), join(folder, 'workspace/link.txt'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  async function aLink() {
    const uid = process.getuid?.() ?? 0;
    await prepareSocketFolder(run, uid);
    const changes: boolean[] = [];
    const path = socketPaths(run).socket;
    const link = await SandboxConnection.listen(path, {
      clock: systemClock,
      onChange: (connected) => changes.push(connected),
    });
    const sandbox = () =>
      connectedSandbox(link, ['--run', run, '--workspace', join(folder, 'workspace'), '--agent-uid', String(uid)]);
    return { link, path, changes, sandbox };
  }

  it('the agent runs jobs and file tools in the sandbox, authorizes their host calls, and reconnects after the sandbox dies', async () => {
    const { link, sandbox } = await aLink();
    await using _ = link;
    let process = await sandbox();
    try {
      const sum = await link.run(
        aJob('function execute(i) { return i.a + i.b }', { input: { a: 1, b: 2 } }),
        noHost,
        anOp(),
      );
      assert.deepEqual(sum.ok && sum.output, 3);
      const asked: Json[] = [];
      const host: HostCalls = {
        call: async (_api, input) => {
          asked.push(input);
          return 'content';
        },
      };
      const reading = aJob('async function execute() { return await fs.readFile("x.txt") }', { apis: ['fs.readFile'] });
      const read = await link.run(reading, host, anOp());
      assert.deepEqual(read.ok && read.output, 'content', JSON.stringify(read));
      assert.equal(asked.length, 1);
      assert.equal(((await link.callTool('file_read', { path: 'in.txt' }, anOp())) as { text: string }).text, 'inside');
      const stuck = link.run(
        aJob('function execute() { for (;;); }', { limits: { durationMilliseconds: 60_000 } }),
        noHost,
        anOp(),
      );
      await process.end('SIGKILL');
      const lost = await stuck;
      assert.equal(!lost.ok && lost.code, 'TEMPER_SANDBOX_CRASHED');
      process = await sandbox();
      const again = await link.run(aJob('function execute() { return 7 }'), noHost, anOp());
      assert.deepEqual(again.ok && again.output, 7);
    } finally {
      await process.end('SIGKILL');
    }
  });

  it('the agent sees the real location of a file before it is read, and files outside the workspace are denied', async () => {
    const { link, sandbox } = await aLink();
    await using _ = link;
    const process = await sandbox();
    try {
      const found: string[] = [];
      const text = await link.readFile(
        'in.txt',
        (file) => {
          found.push(file.relative ?? '');
          return undefined;
        },
        anOp(),
      );
      assert.deepEqual([text, found], ['inside', ['in.txt']]);
      await assert.rejects(
        link.readFile('in.txt', () => 'refused by the test', anOp()),
        (error) => isTemperError(error, 'TEMPER_FILE_DENIED'),
      );
      for (const path of ['link.txt', '../secret.txt', '/etc/passwd']) {
        await assert.rejects(
          link.readFile(path, () => undefined, anOp()),
          (error) => isTemperError(error, 'TEMPER_FILE_DENIED'),
        );
      }
    } finally {
      await process.end('SIGKILL');
    }
  });

  it('the agent closes a connection after an invalid frame, and accepts the next connection', async () => {
    const { link, path, changes, sandbox } = await aLink();
    await using _ = link;
    const hello = framed({ type: 'hello', version: 1 });
    const wrong: Buffer[] = [
      framed('garbage'),
      framed('['.repeat(200_000)),
      framed({ type: 'outcome', id: 1 }),
      framed({ type: 'hello', version: 99 }),
      Buffer.from([0xff, 0xff, 0xff, 0xff]),
      Buffer.concat([hello, hello]),
      Buffer.concat([hello, framed({ type: 'result', id: 4_000, answer: { ok: true, value: 1 } })]),
      Buffer.concat([hello, framed({ type: 'run', id: 1 })]),
    ];
    for (const bytes of wrong) {
      const socket = connect(path);
      socket.write(bytes);
      await closed(socket);
    }
    assert.equal(link.connected, false);
    assert.ok(changes.length > 0 && changes.at(-1) === false);
    const process = await sandbox();
    try {
      const outcome = await link.run(aJob('function execute() { return 1 }'), noHost, anOp());
      assert.ok(outcome.ok);
      const second = connect(path);
      await closed(second);
      assert.ok(link.connected, 'the first connection stays open');
    } finally {
      await process.end('SIGKILL');
    }
  });

  it('the agent rejects a host call the job may not make, host calls of too many bytes or values, and too large a result', async () => {
    const { link, path } = await aLink();
    await using _ = link;
    const call = (id: number, number: number) => ({ type: 'call', id, call: number, api: 'fs.readFile', input: {} });
    const usage = { milliseconds: 1, heapBytes: 1, hostCalls: 0 };
    const large = (number: number) => ({ ...call(4, number), input: 'x'.repeat(100_000) });
    const full = `{"type":"call","id":5,"call":1,"api":"fs.readFile","input":[${'[],'.repeat(600_000)}[]]}`;
    const attacks: [(object | string)[], string][] = [
      [[call(1, 1)], 'TEMPER_SANDBOX_CRASHED'],
      [[{ type: 'found', id: 2, found: { absolute: '/x' } }], 'TEMPER_SANDBOX_CRASHED'],
      [
        [{ type: 'outcome', id: 3, outcome: { ok: true, output: 'x'.repeat(400_000), usage } }],
        'TEMPER_SANDBOX_OUTPUT_TOO_LARGE',
      ],
      [[1, 2, 3, 4].map(large), 'TEMPER_SANDBOX_CALL_BUDGET'],
      [[full], 'TEMPER_SANDBOX_CRASHED'],
    ];
    const answered: HostCalls = { call: async () => 'content' };
    for (const [frames, code] of attacks) {
      const socket = connect(path);
      socket.on('error', () => undefined);
      socket.write(framed({ type: 'hello', version: 1 }));
      const apis = code === 'TEMPER_SANDBOX_CALL_BUDGET' ? (['fs.readFile'] as const) : [];
      const running = link.run(aJob('function execute() {}', { apis: [...apis] }), answered, anOp());
      await new Promise((resolve) => socket.once('data', resolve));
      for (const frame of frames) socket.write(framed(frame));
      const outcome = await running;
      assert.equal(!outcome.ok && outcome.code, code);
      socket.destroy();
      await closed(socket);
      while (link.connected) await new Promise((resolve) => setImmediate(resolve));
    }
  });

  it('the sandbox closes a connection after an invalid frame, and connects again', async () => {
    const uid = process.getuid?.() ?? 0;
    await prepareSocketFolder(run, uid);
    const wrong = [
      framed('garbage'),
      framed('{"type":"run","id":1,"job":{}}'),
      framed({ type: 'welcome', version: 2 }),
      Buffer.from([0x7f, 0xff, 0xff, 0xff, 1]),
    ];
    let connections = 0;
    const all = Promise.withResolvers<void>();
    const server = createServer((socket) => {
      connections += 1;
      socket.on('error', () => undefined);
      const bytes = wrong[connections - 1];
      if (bytes === undefined) all.resolve();
      else socket.write(bytes);
    });
    await new Promise<void>((resolve) => server.listen(socketPaths(run).socket, resolve));
    const sandbox = new RoleProcess('sandbox', ['--run', run, '--workspace', folder, '--agent-uid', String(uid)]);
    try {
      await all.promise;
      assert.equal(sandbox.child.exitCode, null);
    } finally {
      await sandbox.end('SIGKILL');
      server.close();
    }
  });

  it('arbitrary JSON never makes the frame parsers throw', () => {
    check(
      property(jsonValue(), (value) => {
        for (const frame of [parseAgentFrame(value as Json), parseSandboxFrame(value as Json)]) {
          if (frame !== undefined) assert.equal(typeof frame.type, 'string');
        }
      }),
    );
  });
});
