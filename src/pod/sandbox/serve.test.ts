import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, mkdtempDisposable } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { AGENT_PROGRAM_NUMBERS } from '../../api/cluster.ts';
import { RoleProcess } from '../pod.testing.ts';
import { FramePeer } from '../../../test/support/frame-peer.ts';
import { prepareSocketFolder, socketPaths } from '../socket/socket-folder.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const PROGRAM = JSON.stringify({ name: 'fixture', folder: ROOT, program: 'test/fixtures/acp-agent/agent.ts' });
const LAUNCHED = { LAUNCHER_REST_CODE: '90' };

/** The role in a process of its own, and its connections to the agent container. */
async function aRole(environment: Record<string, string>, ...options: string[]) {
  await using opening = new AsyncDisposableStack();
  const folder = opening.use(await mkdtempDisposable(join(tmpdir(), 'temper-sandbox-role-'))).path;
  const uid = process.getuid?.() ?? 0;
  for (const number of AGENT_PROGRAM_NUMBERS) await mkdir(join(folder, String(number)));
  await prepareSocketFolder(folder, uid);
  const server = createServer();
  server.listen(socketPaths(folder).socket);
  await once(server, 'listening');
  const sockets: Socket[] = [];
  server.on('connection', (socket) => sockets.push(socket));
  opening.defer(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const paths = ['--run', folder, '--workspace', folder, '--program-homes', folder, '--agent-uid', String(uid)];
  const role = new RoleProcess('sandbox', [...paths, ...options], environment);
  opening.defer(async () => void (await role.end('SIGKILL')));
  const failed = role.failure.then((error) => {
    throw error ?? new Error('the role has ended');
  });
  failed.catch(() => undefined);
  const connection = async (): Promise<FramePeer> => {
    const [socket] = (await Promise.race([once(server, 'connection'), failed])) as [Socket];
    return new FramePeer(socket);
  };
  const open = opening.move();
  return { role, connection, [Symbol.asyncDispose]: () => open.disposeAsync() };
}

describe('the sandbox role that may rest', { timeout: 600_000 }, () => {
  it('it ends with the exit code of its launcher when the agent container lets it rest', async () => {
    await using started = await aRole(LAUNCHED);
    const agent = await started.connection();
    assert.equal((await agent.got('hello'))['canRest'], true);
    agent.send({ type: 'welcome', version: 1 });
    agent.send({ type: 'rest' });
    await agent.closed;
    assert.equal(await started.role.exited, 90);
  });

  for (const [what, environment, options] of [
    ['without a launcher that starts it again', {}, []],
    ['with an agent program', LAUNCHED, ['--program', PROGRAM]],
  ] as const) {
    it(`it cannot rest ${what}, and connects again when it is asked to`, async () => {
      await using started = await aRole(environment, ...options);
      const agent = await started.connection();
      assert.equal((await agent.got('hello'))['canRest'], false);
      const again = started.connection();
      agent.send({ type: 'rest' });
      await (await again).got('hello');
      assert.equal(started.role.child.exitCode, null);
    });
  }
});
