import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect as connectNats } from '@nats-io/transport-node';
import { type NatsServer, startNats } from '../cluster/nats-server.ts';

describe('a nats-server of the tests', () => {
  let server: NatsServer;

  before(async () => {
    server = await startNats({ jetstream: true });
  });

  after(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  it('keeps port and streams through a crash', async () => {
    await using writer = await client(server);
    await (await jetstreamManager(writer.connection)).streams.add({ name: 'kept', subjects: ['kept'] });
    await jetstream(writer.connection).publish('kept', 'a');
    await server.kill();
    await assert.rejects(listening(server.port));
    await server.restart();
    await using reader = await client(server);
    const { state } = await (await jetstreamManager(reader.connection)).streams.info('kept');
    assert.equal(state.messages, 1);
  });

  it('listens beside another', async () => {
    await using other = await startNats();
    assert.notEqual(other.port, server.port);
    await listening(other.port);
  });

  it('says why it does not start', async () => {
    await assert.rejects(startNats({ config: 'no_such_setting: true' }), /no_such_setting/);
  });

  it('takes another configuration while it runs', async () => {
    const users = (password: string) => `authorization { users: [{ user: a, password: ${password} }] }`;
    await using guarded = await startNats({ config: users('before') });
    const enters = (pass: string) =>
      connectNats({ servers: guarded.url, user: 'a', pass, reconnect: false }).then(
        (connection) => connection.close().then(() => true),
        () => false,
      );
    assert.equal(await enters('before'), true);
    await guarded.reload(users('after'));
    const deadline = performance.now() + 30_000;
    while (!(await enters('after')) && performance.now() < deadline) await sleep(20);
    assert.equal(await enters('after'), true);
    assert.equal(await enters('before'), false);
  });

  it('leaves nothing behind', async () => {
    const { port, storeDir } = await (async () => {
      await using gone = await startNats({ jetstream: true });
      return { port: gone.port, storeDir: gone.storeDir };
    })();
    await assert.rejects(listening(port));
    await assert.rejects(stat(storeDir), { code: 'ENOENT' });
  });
});

async function client(server: NatsServer) {
  const connection = await connectNats({ servers: server.url, reconnect: false });
  return { connection, [Symbol.asyncDispose]: () => connection.close() };
}

async function listening(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  try {
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  } finally {
    socket.destroy();
  }
}
