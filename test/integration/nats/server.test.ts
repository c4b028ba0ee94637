import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect as connectNats } from '@nats-io/transport-node';
import { type NatsServer, startNats } from '../../cluster/nats-server.ts';
import { poll } from '../../support/poll.ts';

describe('startNats', () => {
  let server: NatsServer;

  before(async () => {
    server = await startNats({ jetstream: true });
  });

  after(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  it('a restarted server keeps its port and its streams', async () => {
    await using writer = await client(server);
    await (await jetstreamManager(writer.connection)).streams.add({ name: 'kept', subjects: ['kept'] });
    await jetstream(writer.connection).publish('kept', 'a');
    await server.kill();
    await assert.rejects(connectTo(server.port));
    await server.restart();
    await using reader = await client(server);
    const { state } = await (await jetstreamManager(reader.connection)).streams.info('kept');
    assert.equal(state.messages, 1);
  });

  it('two servers run at once', async () => {
    await using other = await startNats();
    assert.notEqual(other.port, server.port);
    await connectTo(other.port);
  });

  it('a failed start throws the log of the server', async () => {
    await assert.rejects(startNats({ config: 'no_such_setting: true' }), /no_such_setting/);
  });

  it('reload replaces the configuration of a running server', async () => {
    const users = (password: string) => `authorization { users: [{ user: a, password: ${password} }] }`;
    await using guarded = await startNats({ config: users('before') });
    const canConnect = (pass: string) =>
      connectNats({ servers: guarded.url, user: 'a', pass, reconnect: false }).then(
        (connection) => connection.close().then(() => true),
        () => false,
      );
    assert.equal(await canConnect('before'), true);
    await guarded.reload(users('after'));
    await poll('a connection with the new password', () => canConnect('after'));
    assert.equal(await canConnect('before'), false);
  });

  it('disposing stops the server and removes its store', async () => {
    const { port, storeDir } = await (async () => {
      await using temporary = await startNats({ jetstream: true });
      return { port: temporary.port, storeDir: temporary.storeDir };
    })();
    await assert.rejects(connectTo(port));
    await assert.rejects(stat(storeDir), { code: 'ENOENT' });
  });
});

async function client(server: NatsServer) {
  const connection = await connectNats({ servers: server.url, reconnect: false });
  return { connection, [Symbol.asyncDispose]: () => connection.close() };
}

async function connectTo(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  try {
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  } finally {
    socket.destroy();
  }
}
