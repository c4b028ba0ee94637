import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createUser } from '@nats-io/nkeys';
import { systemClock } from '../../../src/lib/clock.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import { deleteAgentData } from '../../../src/nats/agent-data.ts';
import { connectNats, type JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { createNatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { desiredStreams, reconcileTopology } from '../../../src/nats/jetstream/topology.ts';
import { createNatsMemory } from '../../../src/nats/memory.ts';
import { createPromotionRequests } from '../../../src/nats/promotion/promotion-requests.ts';
import { createResidents } from '../../../src/nats/residents/residents.ts';
import { createSessionEvents } from '../../../src/nats/session-events.ts';
import { createSessionStore } from '../../../src/nats/sessions/session-store.ts';
import { createWakeups } from '../../../src/nats/wakeups.ts';
import { type NatsServer, startNats } from '../../cluster/nats-server.ts';
import { userMessage } from '../../contracts/stores.ts';
import { newMessage, newUid } from '../../support/nats/nats-fixture.ts';

const TEMPER = new URL('../../../bin/temper', import.meta.url).pathname;
const STORE_BYTES = 128 * 1_024 * 1_024;
const TIMEOUT_MS = 30_000;
const DIGEST = `sha256:${'0'.repeat(64)}` as const;

describe('an external NATS server with the account that `temper nats permissions` prints', () => {
  let folder: string;
  let server: NatsServer;
  let operator: JetStreamConnection;
  let gateway: JetStreamConnection;
  /** Requests that the server refused. */
  const violations: string[] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-external-'));
    const [operatorKey, gatewayKey] = [await newUser('operator'), await newUser('gateway')];
    const flags = ['nats', 'permissions', '--operator-key', operatorKey, '--gateway-key', gatewayKey];
    const { stdout } = await promisify(execFile)(TEMPER, flags);
    const jetstream = `jetstream { max_file_store: ${STORE_BYTES}, sync_interval: always }`;
    server = await startNats({ jetstream: true, config: `${jetstream}\naccounts {\n${stdout}}\n` });
    operator = await connect('operator');
    gateway = await connect('gateway');
  });
  after(async () => {
    await operator?.[Symbol.asyncDispose]();
    await gateway?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  async function newUser(name: string): Promise<string> {
    const pair = createUser();
    await writeFile(join(folder, `${name}.nk`), Buffer.from(pair.getSeed()), { mode: 0o600 });
    return pair.getPublicKey();
  }

  async function connect(user: string): Promise<JetStreamConnection> {
    const options = { servers: server.url, name: 'test', user, seedFile: join(folder, `${user}.nk`) };
    const connection = await connectNats({ ...options, clock: systemClock, signal: AbortSignal.timeout(TIMEOUT_MS) });
    void (async () => {
      for await (const status of connection.nats.status())
        if (status.type === 'error') violations.push(`${user}: ${status.error.message}`);
    })();
    return connection;
  }

  it('operator and gateway do their whole work, and the server refuses none of it', async () => {
    const report = await reconcileTopology(operator, { storeBytes: STORE_BYTES });
    assert.deepEqual([report.created.length, report.drift], [desiredStreams().length, []]);
    const uid = newUid();
    const agent = { namespace: 'team-a', name: 'analyst', uid };
    const inbox = createNatsInbox(gateway);
    await createResidents(gateway).ensure(agent, 'temper');
    await inbox.publish(uid, { uid: 'user', key: 'one' }, newMessage('one'));
    const waiting = inbox.fetchNext(uid, TIMEOUT_MS, AbortSignal.timeout(TIMEOUT_MS));
    const delivery = await waiting;
    assert.ok(delivery !== undefined);
    const reply = { kind: 'reply', message: delivery.message.id, text: 'done', finishReason: 'complete' } as const;
    const events = createSessionEvents(gateway);
    await inbox.ack(delivery.coordinates, async () => void (await events.append(uid, 's-1', reply)));
    assert.equal((await events.read(uid, 's-1', 0, 10)).length, 1);
    await createSessionStore(gateway, uid).append('s-1', 0, [userMessage('one')]);
    await createNatsMemory(gateway, { uid, namespace: 'team-a' }).set('key', 'value');
    const record = { action: 'tool.accepted', actor: 'agent/a', subject: 'x', facts: {} } as const;
    for (const evidence of ['observed', 'reported'] as const)
      await createNatsAudit(gateway).append({ namespace: 'team-a', agentUid: uid }, { ...record, evidence });
    await createWakeups(gateway).publish(uid);
    await createPromotionRequests(gateway).publish({ agentUid: uid, digest: DIGEST, session: 's' }, 0);
    const stop = new AbortController();
    const woken: string[] = [];
    const wake = async (agentUid: string) => {
      woken.push(agentUid);
      stop.abort();
    };
    await createWakeups(operator).consume(wake, stop.signal, (error) => violations.push(String(error)));
    assert.deepEqual(woken, [uid]);
    await deleteAgentData(operator, uid);
    assert.deepEqual(await inbox.depth(uid), { pending: 0, inFlight: 0 });
    assert.deepEqual(violations, []);
  });

  for (const [user, subjects] of [
    [
      'operator',
      ['$JS.API.STREAM.DELETE.temper-audit', '$JS.API.STREAM.SNAPSHOT.temper-sessions', '$SYS.REQ.SERVER.PING'],
    ],
    [
      'gateway',
      ['$JS.API.STREAM.CREATE.mine', '$JS.API.STREAM.PURGE.temper-audit', '$JS.API.STREAM.NAMES', 'other.app'],
    ],
  ] as const) {
    it(`the server refuses the ${user} everything else`, async () => {
      const { nats } = user === 'operator' ? operator : gateway;
      for (const subject of subjects) {
        const refused = nats.request(subject, '{}', { timeout: 60_000 });
        await assert.rejects(refused, /permissions violation/i, subject);
      }
    });
  }
});
