import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { echoCall, SESSION_LIMITS, sessionsContract, valueOf } from '../../../../test/contracts/code-sessions.ts';
import { callOptions } from '../../../../test/support/call-options.ts';
import { poll } from '../../../../test/support/poll.ts';
import { systemClock } from '../../../lib/clock.ts';
import type { SessionAnswer } from '../../../sandbox/session-port.ts';
import { connectedSandbox } from '../../../../test/support/connected-sandbox.ts';
import { framed } from '../../../../test/support/frame-peer.ts';
import type { RoleProcess } from '../../pod.testing.ts';
import { prepareSocketFolder, socketPaths } from '../../socket/socket-folder.ts';
import { SandboxConnection } from '../sandbox-connection.ts';

let folder: string;

async function aLink(name: string) {
  const run = join(folder, name);
  const workspace = join(folder, `${name}-workspace`);
  await Promise.all([mkdir(run), mkdir(workspace)]);
  const uid = process.getuid?.() ?? 0;
  await prepareSocketFolder(run, uid);
  const path = socketPaths(run).socket;
  const link = await SandboxConnection.listen(path, { clock: systemClock, onChange: () => undefined });
  const start = () => connectedSandbox(link, ['--run', run, '--workspace', workspace, '--agent-uid', String(uid)]);
  return { link, path, start };
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'temper-sessions-'));
});
after(() => rm(folder, { recursive: true, force: true }));

describe('sessions in the sandbox container', { timeout: 600_000 }, () => {
  let link: SandboxConnection;
  let sandbox: RoleProcess;
  before(async () => {
    const opened = await aLink('contract');
    link = opened.link;
    sandbox = await opened.start();
  });
  after(async () => {
    await sandbox.end('SIGKILL');
    await link[Symbol.asyncDispose]();
  });
  sessionsContract('the sandbox container', () => link);
});

describe('a session over the socket of a pod', { timeout: 600_000 }, () => {
  it('a session ends with the sandbox container, and the next container starts another one', async () => {
    const { link, start } = await aLink('restart');
    await using _ = link;
    const options = { limits: SESSION_LIMITS, memory: {} };
    const first = await start();
    const session = await link.openSession(options, callOptions());
    const stuck = session.run({ code: 'for (;;);' }, echoCall, callOptions());
    await first.end('SIGKILL');
    const outcome = await stuck;
    assert.equal(outcome.ok ? 'ok' : outcome.code, 'TEMPER_SANDBOX_CRASHED');
    assert.equal(session.isOpen, false);
    const second = await start();
    try {
      const next = await link.openSession(options, callOptions());
      assert.equal(valueOf(await next.run({ code: 'return 1;' }, echoCall, callOptions())), 1);
    } finally {
      await second.end('SIGKILL');
    }
  });

  it('the agent refuses calls out of order, too many calls, and outcomes beyond their limits', async () => {
    const { link, path } = await aLink('hostile');
    await using _ = link;
    const usage = { guestMilliseconds: 1, heapBytes: 1, calls: 1 };
    const report = { log: '', isLogCut: false, unawaited: 0, usage, memory: { values: {}, omitted: [] } };
    const invoke = (call: number, input: unknown = {}) => ({
      type: 'invoke',
      id: 2,
      request: { call, name: 'a', input },
    });
    const attacks: [object[], string][] = [
      [[invoke(2)], 'TEMPER_SANDBOX_CRASHED'],
      [Array.from({ length: 4 }, (_, index) => invoke(index + 1, 'x'.repeat(100_000))), 'TEMPER_SANDBOX_CALL_BUDGET'],
      [
        [{ type: 'executed', id: 2, outcome: { ...report, ok: true, value: 'x'.repeat(400_000) } }],
        'TEMPER_SANDBOX_OUTPUT_TOO_LARGE',
      ],
      [
        [{ type: 'executed', id: 2, outcome: { ...report, ok: false, code: 'NO_CODE', message: '' } }],
        'TEMPER_SANDBOX_CRASHED',
      ],
    ];
    let session = 0;
    for (const [frames, code] of attacks) {
      const socket: Socket = connect(path);
      socket.on('error', () => undefined);
      socket.write(framed({ type: 'hello', version: 1 }));
      const opening = link.openSession({ limits: SESSION_LIMITS, memory: {} }, callOptions());
      await new Promise((resolve) => socket.once('data', resolve));
      session += 1;
      socket.write(framed({ type: 'result', id: session, answer: { ok: true, value: null } }));
      const opened = await opening;
      const answer = async (): Promise<SessionAnswer> => ({ time: 1, ok: true, value: null });
      const running = opened.run({ code: 'return 1;' }, answer, callOptions());
      session += 1;
      for (const frame of frames) socket.write(framed({ ...frame, id: session }));
      const outcome = await running;
      assert.equal(outcome.ok ? 'ok' : outcome.code, code);
      assert.equal(opened.isOpen, false);
      socket.destroy();
      await poll('the end of the connection', () => !link.connected);
    }
  });
});
