import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createUser } from '@nats-io/nkeys';
import { connect } from '@nats-io/transport-node';
import { systemClock } from '../../../src/lib/clock.ts';
import { isTemperError, type TemperError } from '../../../src/lib/errors.ts';
import {
  type JetStreamConnection,
  type ConnectionState,
  connectNats,
} from '../../../src/nats/connection/connection.ts';
import { createNatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { desiredStreams, reconcileTopology } from '../../../src/nats/jetstream/topology.ts';
import { newMessage, newUid, STORE_BYTES, startNatsFixture } from '../../support/nats/nats-fixture.ts';
import { useNats } from '../../support/nats/nats-suite.ts';
import { poll } from '../../support/poll.ts';

const TIMEOUT_MS = 20_000;
/** For what happens within milliseconds on a machine that is not busy. */
const PATIENT_MS = 60_000;
const nats = useNats({ users: { crm: { publish: ['crm.>'], subscribe: ['crm.>'] } } });

const assertDenied = async (connection: JetStreamConnection, subject: string): Promise<void> => {
  await assert.rejects(
    connection.nats.request(subject, '{}', { timeout: PATIENT_MS }),
    (error: Error) => /permissions violation/i.test(error.message),
    subject,
  );
};

describe('the generated nats-server configuration', () => {
  it('the server rejects a client with an unknown key or without TLS', async () => {
    const tls = { caFile: nats.bus.caFile };
    const servers = nats.bus.url;
    await assert.rejects(connect({ servers, tls, reconnect: false }));
    await assert.rejects(connect({ servers, tls, user: 'gateway', pass: 'x', reconnect: false }));
    await assert.rejects(connect({ servers: servers.replace('tls:', 'nats:'), reconnect: false, timeout: 2_000 }));
    const unknownSeedFile = join(tmpdir(), `temper-unknown-${process.pid}.nk`);
    await writeFile(unknownSeedFile, Buffer.from(createUser().getSeed()));
    const reported: TemperError[] = [];
    const stopping = new AbortController();
    const options = {
      name: 'x',
      user: 'gateway',
      seedFile: unknownSeedFile,
      caFile: nats.bus.caFile,
      clock: systemClock,
      signal: AbortSignal.any([stopping.signal, AbortSignal.timeout(PATIENT_MS)]),
    };
    const onRetry = (error: TemperError) => {
      if (reported.push(error) === 2) stopping.abort();
    };
    const attempt = connectNats({ ...options, servers, onRetry });
    await assert.rejects(attempt, (error) => isTemperError(error, 'TEMPER_CANCELLED'));
    await rm(unknownSeedFile);
    assert.ok(
      reported.length > 1 && reported.every(({ code }) => code === 'TEMPER_BUS_UNAUTHORIZED'),
      String(reported[0]),
    );
  });
  it('the server denies the gateway the subjects of the operator', async () => {
    for (const subject of [
      '$JS.API.STREAM.CREATE.temper-inbox',
      '$JS.API.STREAM.CREATE.mine',
      '$JS.API.STREAM.UPDATE.temper-inbox',
      '$JS.API.STREAM.DELETE.temper-inbox',
      '$JS.API.STREAM.PURGE.temper-inbox',
      '$JS.API.STREAM.PURGE.temper-audit',
      '$JS.API.STREAM.MSG.DELETE.temper-audit',
      '$JS.API.STREAM.MSG.GET.temper-promotions',
      '$JS.API.STREAM.SNAPSHOT.temper-inbox',
      '$JS.API.STREAM.RESTORE.temper-inbox',
      '$JS.API.STREAM.NAMES',
      '$JS.API.CONSUMER.CREATE.temper-promotions.mine',
      '$JS.API.CONSUMER.CREATE.temper-inbox.mine',
      '$JS.API.CONSUMER.CREATE.temper-events.mine',
      '$JS.API.CONSUMER.MSG.NEXT.temper-wakeups.wakeups',
      '$JS.API.CONSUMER.DURABLE.CREATE.temper-inbox.mine',
      '$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.temper-inbox.x',
      '$SYS.REQ.SERVER.PING',
      'crm.x',
    ]) {
      await assertDenied(nats.gateway, subject);
    }
  });
  it('the server denies the operator destructive subjects and those of gateways', async () => {
    for (const subject of [
      '$JS.API.STREAM.DELETE.temper-inbox',
      '$JS.API.STREAM.PURGE.temper-audit',
      '$JS.API.STREAM.RESTORE.temper-audit',
      '$JS.API.CONSUMER.MSG.NEXT.temper-inbox.x',
      '$JS.API.CONSUMER.CREATE.temper-inbox.x',
      'temper.promotions.x',
      '$KV.temper-memory.x.y',
      '$SYS.REQ.ACCOUNT.PING.CONNZ',
    ]) {
      await assertDenied(nats.operator, subject);
    }
  });
  it('a user cannot subscribe to the responses of another user', async () => {
    const crm = await nats.bus.connect('crm');
    for (const subject of ['_INBOX_gateway.>', '_INBOX.>', '>', 'temper.>', '$JS.EVENT.>', '$SYS.>']) {
      const denied = new Promise((resolve) => {
        crm.nats.subscribe(subject, { callback: (error) => resolve(error) });
      });
      assert.match(String(await denied), /permissions violation/i, subject);
    }
    await assertDenied(crm, '$JS.API.STREAM.INFO.temper-inbox');
    await assertDenied(crm, 'temper.inbox.x');
  });
  it('the server limits the message size and listens for monitoring on loopback only', async () => {
    assert.equal(nats.gateway.nats.info?.max_payload, 256 * 1_024);
    const answer = (await (await fetch(`${nats.bus.monitoring}/varz`)).json()) as Record<string, unknown>;
    assert.equal(answer['http_host'], '127.0.0.1');
    assert.equal(answer['max_control_line'], 4_096);
    assert.equal(answer['max_pending'], 16 * 1_024 * 1_024);
    assert.equal(answer['write_deadline'], 2_000_000_000);
    const { config } = (await (await fetch(`${nats.bus.monitoring}/jsz`)).json()) as {
      config: Record<string, unknown>;
    };
    assert.equal(config['sync_always'], true);
  });
});

describe('streams and buckets', () => {
  it('every stream has limits, and all fit into the store', () => {
    const all = desiredStreams({ storeBytes: STORE_BYTES });
    assert.ok(all.reduce((sum, { max_bytes }) => sum + max_bytes, 0) <= STORE_BYTES);
    for (const stream of all) {
      assert.ok(stream.max_bytes > 0 && stream.max_msg_size === 256 * 1_024, stream.name);
      // Data of sessions and agents is deleted with them; messages of the shared stream have their own time to live.
      const kept = ['KV_temper-sessions', 'KV_temper-memory', 'temper-tools', 'temper-state'];
      assert.ok(stream.max_age > 0 || kept.includes(stream.name), stream.name);
      assert.equal(stream.duplicate_window, 1_800_000_000_000, stream.name);
    }
  });
  it('reconcileTopology reverts changed streams and leaves the others alone', async () => {
    assert.deepEqual(await reconcileTopology(nats.operator, { storeBytes: STORE_BYTES }), {
      created: [],
      updated: [],
      drift: [],
    });
    await nats.operator.manager.streams.update('temper-inbox', { max_msgs_per_subject: 5, max_age: 1_800_000_000_000 });
    const repaired = await reconcileTopology(nats.operator, { storeBytes: STORE_BYTES });
    assert.deepEqual(repaired, { created: [], updated: ['temper-inbox'], drift: [] });
    const { config } = await nats.operator.manager.streams.info('temper-inbox');
    assert.equal(config.max_msgs_per_subject, 1_000);
  });
  it('reconcileTopology applies a new store size', async () => {
    const smaller = await reconcileTopology(nats.operator, { storeBytes: STORE_BYTES / 2 });
    assert.equal(smaller.updated.length, desiredStreams().length);
    assert.deepEqual(smaller.drift, []);
    assert.deepEqual((await reconcileTopology(nats.operator, { storeBytes: STORE_BYTES })).drift, []);
  });
  it('reconcileTopology reports a stream that it cannot update, and creates the others', async () => {
    await using bare = await startNatsFixture({ withoutTopology: true });
    const connection = await bare.connect('operator');
    await connection.manager.streams.add({ name: 'temper-inbox', subjects: ['temper.inbox.*'], max_bytes: 1_024 });
    const report = await reconcileTopology(connection, { storeBytes: STORE_BYTES });
    assert.equal(report.created.length, desiredStreams().length - 1);
    assert.equal(report.drift.length, 1);
    assert.match(report.drift[0] ?? '', /temper-inbox: retention is "limits", not "workqueue"/);
  });
  it('streams stay as they are while too few servers can have their copies, and each is reported', async () => {
    const report = await reconcileTopology(nats.operator, { storeBytes: STORE_BYTES, replicas: 3 });
    assert.deepEqual(report.updated, []);
    assert.equal(report.drift.length, desiredStreams().length);
    for (const line of report.drift)
      assert.match(line, /num_replicas differ and the server rejects the change: replicas/);
    assert.deepEqual((await reconcileTopology(nats.operator, { storeBytes: STORE_BYTES })).drift, []);
  });
  it('messages are delivered again after a lost store and a reconcileTopology', { timeout: 300_000 }, async () => {
    await using lost = await startNatsFixture();
    const [mine, theirs] = [await lost.connect('operator'), await lost.connect('gateway')];
    const inbox = createNatsInbox(theirs);
    const uid = newUid();
    await inbox.publish(uid, { uid: 'user', key: 'k' }, newMessage('before'));
    const inFlight = await inbox.fetchNext(uid, TIMEOUT_MS, AbortSignal.timeout(TIMEOUT_MS));
    await lost.loseStore();
    await lost.server.restart();
    const waiting = poll('the message after the loss', () =>
      inbox.fetchNext(uid, TIMEOUT_MS, AbortSignal.timeout(TIMEOUT_MS)),
    );
    await mine.ready(TIMEOUT_MS);
    await theirs.ready(TIMEOUT_MS);
    const report = await reconcileTopology(mine, { storeBytes: STORE_BYTES });
    assert.equal(report.created.length, desiredStreams().length);
    await inbox.publish(uid, { uid: 'user', key: 'k' }, newMessage('after'));
    assert.equal((await waiting)?.message.text, 'after');
    assert.ok(inFlight !== undefined);
  });
});

describe('a NATS connection', () => {
  it('a connection reports outages with time and reason, and reconnects by itself', { timeout: 300_000 }, async () => {
    await using own = await startNatsFixture();
    const connection = await own.connect('gateway');
    const states: ConnectionState[] = [];
    const stop = connection.onChange((state) => states.push(state));
    assert.equal(connection.state().connected, true);
    await own.server.kill();
    await poll('the connection to report the outage', () => !connection.state().connected);
    assert.ok((connection.state().reason ?? '') !== '');
    await assert.rejects(connection.ready(100), (error) => isTemperError(error, 'TEMPER_BUS_UNAVAILABLE'));
    const inbox = createNatsInbox(connection);
    const start = performance.now();
    const early = inbox
      .publish(newUid(), { uid: 'user', key: 'k' }, newMessage('early'))
      .catch((error: unknown) => error);
    await own.server.restart();
    await connection.ready(TIMEOUT_MS);
    assert.ok(performance.now() - start < TIMEOUT_MS);
    const outcome = await early;
    assert.ok(!(outcome instanceof Error) || isTemperError(outcome, 'TEMPER_BUS_UNAVAILABLE'), String(outcome));
    stop();
    assert.deepEqual(
      states.map(({ connected }) => connected),
      states.map((_, index) => index === states.length - 1),
    );
    assert.equal(connection.closed.aborted, false);
    await connection[Symbol.asyncDispose]();
    assert.equal(connection.closed.aborted, true);
    await assert.rejects(connection.ready(50), (error) => isTemperError(error, 'TEMPER_BUS_UNAVAILABLE'));
  });
  it('a connection to an unsupported server version fails', async () => {
    const old = createServer((socket: Socket) => {
      const info = {
        server_id: 'x',
        version: '2.10.29',
        headers: true,
        max_payload: 1_024,
        nonce: 'n',
        jetstream: true,
      };
      socket.write(`INFO ${JSON.stringify(info)}\r\n`);
      socket.on('data', (data) => {
        if (data.toString().includes('PING')) socket.write('PONG\r\n');
      });
      socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => old.listen(0, '127.0.0.1', resolve));
    const { port } = old.address() as { port: number };
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const options = { name: 'x', user: 'gateway', seedFile: nats.bus.seedFile('gateway'), clock: systemClock, signal };
    const attempt = connectNats({ ...options, servers: `nats://127.0.0.1:${port}` });
    await assert.rejects(attempt, (error) => isTemperError(error, 'TEMPER_BUS_UNSUPPORTED'));
    await new Promise((resolve) => old.close(resolve));
  });
});
