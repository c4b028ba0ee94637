import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createUser } from '@nats-io/nkeys';
import { connect } from '@nats-io/transport-node';
import { systemClock } from '../../src/lib/clock.ts';
import { isTemperError, type TemperError } from '../../src/lib/errors.ts';
import { type BusConnection, type BusState, connectBus } from '../../src/nats/connection.ts';
import { createInbox } from '../../src/nats/inbox.ts';
import { desiredStreams, reconcileTopology } from '../../src/nats/topology.ts';
import { newMessage, newUid, STORE_BYTES, startBus, type TestBus } from './nats-bus.ts';

const PATIENCE = 20_000;
let bus: TestBus;
let operator: BusConnection;
let gateway: BusConnection;
before(async () => {
  bus = await startBus({ users: { crm: { publish: ['crm.>'], subscribe: ['crm.>'] } } });
  operator = await bus.connect('operator');
  gateway = await bus.connect('gateway');
});
after(async () => {
  await bus[Symbol.asyncDispose]();
});

const refused = async (connection: BusConnection, subject: string): Promise<void> => {
  await assert.rejects(
    connection.nats.request(subject, '{}', { timeout: 2_000 }),
    (error: Error) => /permissions violation/i.test(error.message),
    subject,
  );
};

describe('the server', () => {
  it('lets nobody in without a key it knows, or without TLS', async () => {
    const tls = { caFile: bus.caFile };
    const servers = bus.url;
    await assert.rejects(connect({ servers, tls, reconnect: false }));
    await assert.rejects(connect({ servers, tls, user: 'gateway', pass: 'x', reconnect: false }));
    await assert.rejects(connect({ servers: servers.replace('tls:', 'nats:'), reconnect: false, timeout: 2_000 }));
    const stranger = join(tmpdir(), `temper-stranger-${process.pid}.nk`);
    await writeFile(stranger, Buffer.from(createUser().getSeed()));
    const told: TemperError[] = [];
    const signal = AbortSignal.timeout(1_500);
    const options = { name: 'x', user: 'gateway', seedFile: stranger, caFile: bus.caFile, clock: systemClock, signal };
    const attempt = connectBus({ ...options, servers, onWaiting: (error) => told.push(error) });
    await assert.rejects(attempt, (error) => isTemperError(error, 'TEMPER_CANCELLED'));
    await rm(stranger);
    assert.ok(told.length > 1 && told.every(({ code }) => code === 'TEMPER_BUS_UNAUTHORIZED'), String(told[0]));
  });
  it('refuses the gateway what only the operator may', async () => {
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
      '$JS.API.CONSUMER.MSG.NEXT.temper-wakes.wakes',
      '$JS.API.CONSUMER.DURABLE.CREATE.temper-inbox.mine',
      '$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.temper-inbox.x',
      '$SYS.REQ.SERVER.PING',
      'crm.x',
    ]) {
      await refused(gateway, subject);
    }
  });
  it('refuses the operator what destroys or belongs to gateways', async () => {
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
      await refused(operator, subject);
    }
  });
  it('shows nobody the answers to another', async () => {
    const crm = await bus.connect('crm');
    for (const subject of ['_INBOX_gateway.>', '_INBOX.>', '>', 'temper.>', '$JS.EVENT.>', '$SYS.>']) {
      const denied = new Promise((resolve) => {
        crm.nats.subscribe(subject, { callback: (error) => resolve(error) });
      });
      assert.match(String(await denied), /permissions violation/i, subject);
    }
    await refused(crm, '$JS.API.STREAM.INFO.temper-inbox');
    await refused(crm, 'temper.inbox.x');
  });
  it('takes no message larger than any stream, and its monitoring is on loopback alone', async () => {
    assert.equal(gateway.nats.info?.max_payload, 256 * 1_024);
    const answer = (await (await fetch(`${bus.monitoring}/varz`)).json()) as Record<string, unknown>;
    assert.equal(answer['http_host'], '127.0.0.1');
    assert.equal(answer['max_control_line'], 4_096);
    assert.equal(answer['max_pending'], 2 * 1_024 * 1_024);
    assert.equal(answer['write_deadline'], 2_000_000_000);
    const { config } = (await (await fetch(`${bus.monitoring}/jsz`)).json()) as { config: Record<string, unknown> };
    assert.equal(config['sync_always'], true);
  });
});

describe('streams and buckets', () => {
  it('all have their limits, within the store', () => {
    const all = desiredStreams({ storeBytes: STORE_BYTES });
    assert.ok(all.reduce((sum, { max_bytes }) => sum + max_bytes, 0) <= STORE_BYTES);
    for (const stream of all) {
      assert.ok(stream.max_bytes > 0 && stream.max_msg_size === 256 * 1_024, stream.name);
      // What an agent remembers, and one entry for each provider.
      const kept = ['KV_temper-memory', 'KV_temper-health'];
      assert.ok(stream.max_age > 0 || kept.includes(stream.name), stream.name);
      assert.equal(stream.duplicate_window, 1_800_000_000_000, stream.name);
    }
  });
  it('are changed back where somebody changed them, and left alone where nobody did', async () => {
    assert.deepEqual(await reconcileTopology(operator, { storeBytes: STORE_BYTES }), {
      created: [],
      updated: [],
      drift: [],
    });
    await operator.manager.streams.update('temper-inbox', { max_msgs_per_subject: 5, max_age: 1_800_000_000_000 });
    const mended = await reconcileTopology(operator, { storeBytes: STORE_BYTES });
    assert.deepEqual(mended, { created: [], updated: ['temper-inbox'], drift: [] });
    const { config } = await operator.manager.streams.info('temper-inbox');
    assert.equal(config.max_msgs_per_subject, 1_000);
  });
  it('take up another size of the store', async () => {
    const smaller = await reconcileTopology(operator, { storeBytes: STORE_BYTES / 2 });
    assert.equal(smaller.updated.length, desiredStreams().length);
    assert.deepEqual(smaller.drift, []);
    assert.deepEqual((await reconcileTopology(operator, { storeBytes: STORE_BYTES })).drift, []);
  });
  it('that cannot be mended in place are named, and the others made', async () => {
    await using bare = await startBus({ bare: true });
    const connection = await bare.connect('operator');
    await connection.manager.streams.add({ name: 'temper-inbox', subjects: ['temper.inbox.*'], max_bytes: 1_024 });
    const report = await reconcileTopology(connection, { storeBytes: STORE_BYTES });
    assert.equal(report.created.length, desiredStreams().length - 1);
    assert.equal(report.drift.length, 1);
    assert.match(report.drift[0] ?? '', /temper-inbox: retention is "limits", not "workqueue"/);
  });
  it('come back after the store was lost, and messages go through them again', { timeout: 60_000 }, async () => {
    await using lost = await startBus();
    const [mine, theirs] = [await lost.connect('operator'), await lost.connect('gateway')];
    const inbox = createInbox(theirs);
    const uid = newUid();
    await inbox.publish(uid, { uid: 'person', key: 'k' }, newMessage('before'));
    const held = await inbox.fetchNext(uid, PATIENCE, AbortSignal.timeout(PATIENCE));
    await lost.wipe();
    await lost.server.restart();
    const waiting = (async () => {
      for (;;) {
        try {
          return await inbox.fetchNext(uid, PATIENCE, AbortSignal.timeout(PATIENCE));
        } catch (error) {
          if (!isTemperError(error)) throw error;
          await sleep(200);
        }
      }
    })();
    await mine.ready(PATIENCE);
    await theirs.ready(PATIENCE);
    const report = await reconcileTopology(mine, { storeBytes: STORE_BYTES });
    assert.equal(report.created.length, desiredStreams().length);
    await inbox.publish(uid, { uid: 'person', key: 'k' }, newMessage('after'));
    assert.equal((await waiting)?.message.text, 'after');
    assert.ok(held !== undefined);
  });
});

describe('a connection', () => {
  it('says since when it is away and why, and comes back by itself', { timeout: 60_000 }, async () => {
    await using own = await startBus();
    const connection = await own.connect('gateway');
    const states: BusState[] = [];
    const stop = connection.onChange((state) => states.push(state));
    assert.equal(connection.state().connected, true);
    await own.server.kill();
    while (connection.state().connected) await sleep(20);
    assert.ok((connection.state().reason ?? '') !== '');
    await assert.rejects(connection.ready(100), (error) => isTemperError(error, 'TEMPER_BUS_UNAVAILABLE'));
    const inbox = createInbox(connection);
    const start = performance.now();
    const early = inbox
      .publish(newUid(), { uid: 'person', key: 'k' }, newMessage('early'))
      .catch((error: unknown) => error);
    await own.server.restart();
    await connection.ready(PATIENCE);
    assert.ok(performance.now() - start < PATIENCE);
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
  it('is refused to a server that is too old', async () => {
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
    const signal = AbortSignal.timeout(PATIENCE);
    const options = { name: 'x', user: 'gateway', seedFile: bus.seedFile('gateway'), clock: systemClock, signal };
    const attempt = connectBus({ ...options, servers: `nats://127.0.0.1:${port}` });
    await assert.rejects(attempt, (error) => isTemperError(error, 'TEMPER_BUS_UNSUPPORTED'));
    await new Promise((resolve) => old.close(resolve));
  });
});
