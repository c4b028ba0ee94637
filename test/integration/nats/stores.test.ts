import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_TASK_RECORDS } from '../../../src/api/v1alpha1/trust/strategy.ts';
import { artifactDigest } from '../../../src/tempering/registry/serialization.ts';
import type { RegisteredTool } from '../../../src/tempering/types.ts';
import { isTemperError, TemperError } from '../../../src/lib/errors.ts';
import { createNatsMemory } from '../../../src/nats/memory.ts';
import { BUCKETS, bucketStream, bucketSubject } from '../../../src/nats/jetstream/names.ts';
import { messageCounts } from '../../../src/nats/jetstream/stream-reader.ts';
import { SessionHeads } from '../../../src/nats/sessions/session-heads.ts';
import type { StoredSession } from '../../../src/nats/sessions/port.ts';
import { createSessionStore } from '../../../src/nats/sessions/session-store.ts';
import { createSessionToolStore } from '../../../src/nats/sessions/session-tools.ts';
import { createTaskRecords } from '../../../src/nats/tasks/task-records.ts';
import { storesContract, userMessage } from '../../contracts/stores.ts';
import { newUid } from '../../support/nats/nats-fixture.ts';
import { useNats } from '../../support/nats/nats-suite.ts';
import { clockAt } from '../../support/clocks.ts';
import { poll } from '../../support/poll.ts';

const nats = useNats();

const historyOf = (uid: string): string => bucketSubject(BUCKETS.sessions, `${uid}.*.history.>`);

storesContract('NATS', async () => {
  const owners = new Map<string, string>();
  const uid = newUid();
  return {
    sessions: async (clock) => createSessionStore(await nats.bus.connect('gateway', clock), uid),
    memory: async (owner) => {
      const uidOf = owners.get(owner) ?? newUid();
      owners.set(owner, uidOf);
      return createNatsMemory(nats.gateway, { uid: uidOf, namespace: `team-${uid}` });
    },
  };
});

describe('sessions in NATS', () => {
  it('a session stores items larger than a NATS message unchanged', async () => {
    const store = createSessionStore(nats.gateway, newUid());
    const long = userMessage('ä€😀'.repeat(100_000));
    assert.equal(await store.append('a.b-c_d', 0, [userMessage('first'), long]), 2);
    assert.equal(await store.append('a.b-c_d', 2, [userMessage('last')], { tainted: true }), 3);
    assert.deepEqual(await store.load('a.b-c_d'), {
      seq: 3,
      items: [userMessage('first'), long, userMessage('last')],
      tainted: true,
    });
  });
  it('an append above the size limit is rejected and keeps the session unchanged', async () => {
    const store = createSessionStore(nats.gateway, newUid());
    await store.append('s', 0, [userMessage('a')]);
    const much = userMessage('x'.repeat(12 * 1_024 * 1_024));
    await assert.rejects(store.append('s', 1, [much]), (error) => isTemperError(error, 'TEMPER_BUS_TOO_LARGE'));
    assert.equal((await store.load('s')).seq, 1);
  });
  it('a repeated append after a lost response has no second effect', async () => {
    const uid = newUid();
    const [one, two] = [createSessionStore(nats.gateway, uid), createSessionStore(nats.gateway, uid)];
    assert.equal(await one.append('s', 0, [userMessage('a')], { tainted: true }), 1);
    assert.equal(await two.append('s', 0, [userMessage('a')], { tainted: true }), 1);
    assert.equal(await two.append('s', 1, [userMessage('a')]), 2);
    assert.equal((await one.load('s')).seq, 2);
  });
  it('an append after another one reads nothing, and one after an append of another process reads the head', async () => {
    const [uid, connection, other] = [newUid(), await nats.bus.connect('gateway'), await nats.bus.connect('gateway')];
    const heads = new SessionHeads(connection);
    // The gateway opens a store per request.
    const store = () => createSessionStore(connection, uid, { heads });
    const elsewhere = createSessionStore(other, uid);
    const operations: string[] = [];
    connection.onRequest((operation) => operations.push(operation));
    const gets = () => operations.splice(0).filter((operation) => operation === 'get').length;
    await store().open('s');
    gets();
    await store().append('s', 0, [userMessage('a')]);
    await store().append('s', 1, [userMessage('b')], { tainted: true });
    assert.equal(gets(), 0);
    assert.equal(await elsewhere.append('s', 2, [userMessage('c')]), 3);
    assert.equal(await store().append('s', 2, [userMessage('c')]), 3, 'the response of the other process was lost');
    await elsewhere.append('s', 3, [userMessage('d')]);
    const isCorrupt = (error: unknown) => isTemperError(error, 'TEMPER_STATE_CORRUPT');
    await assert.rejects(store().append('s', 3, [userMessage('e')]), isCorrupt);
    assert.ok(gets() > 0);
    await store().append('s', 4, [userMessage('e')]);
    const { items, tainted } = await elsewhere.load('s');
    assert.deepEqual([items.map(({ text }) => text), tainted], [['a', 'b', 'c', 'd', 'e'], true]);
  });
  it('an append over the remembered head of a session that another process closed and filled becomes part of the new one', async () => {
    const [uid, connection] = [newUid(), await nats.bus.connect('gateway')];
    const store = createSessionStore(connection, uid, { heads: new SessionHeads(connection) });
    const elsewhere = createSessionStore(nats.gateway, uid);
    await store.append('s', 0, [userMessage('old')], { tainted: true });
    await elsewhere.close('s');
    await elsewhere.append('s', 0, [userMessage('new')]);
    assert.equal(await store.append('s', 1, [userMessage('next')]), 2);
    const { items, tainted } = await elsewhere.load('s');
    assert.deepEqual([items.map(({ text }) => text), tainted], [['new', 'next'], false]);
  });
  it('an append is stored once also when an equal one arrives after later ones, and one with other items is refused', async () => {
    const uid = newUid();
    const [one, two] = [createSessionStore(nats.gateway, uid), createSessionStore(nats.gateway, uid)];
    const [a, b, c] = [userMessage('a'), userMessage('b'), userMessage('c')];
    await one.append('s', 0, [a, b]);
    await one.append('s', 2, [c], { tainted: true });
    assert.equal(await two.append('s', 0, [a, b]), 3);
    const isCorrupt = (error: unknown) => isTemperError(error, 'TEMPER_STATE_CORRUPT');
    await assert.rejects(two.append('s', 0, [a, c]), isCorrupt);
    await assert.rejects(two.append('s', 2, [c, c]), isCorrupt);
    await assert.rejects(two.append('s', 1, []), isCorrupt);
    assert.deepEqual((await one.load('s')).items, [a, b, c]);
  });
  it('equal appends of several processes at the same time succeed, while others mark the session and append the next items', async () => {
    const uid = newUid();
    const [connection, elsewhere] = [await nats.bus.connect('gateway'), await nats.bus.connect('gateway')];
    const heads = new SessionHeads(connection);
    const stores = [
      createSessionStore(connection, uid, { heads }),
      createSessionStore(connection, uid, { heads }),
      createSessionStore(elsewhere, uid),
    ];
    const [first] = stores;
    for (let seq = 0; seq < 20; seq += 2) {
      const item = userMessage(`item ${seq}`);
      const appends = stores.map((store) => store.append('s', seq, [item]));
      const next = Promise.any(appends).then(() => first?.append('s', seq + 1, [userMessage(`item ${seq + 1}`)]));
      const marks = seq === 10 ? [createSessionStore(elsewhere, uid).taint('s')] : [];
      await Promise.all([...appends, next, ...marks]);
    }
    const { items, tainted } = await createSessionStore(connection, uid).load('s');
    assert.deepEqual(
      items.map(({ text }) => text),
      Array.from({ length: 20 }, (_, seq) => `item ${seq}`),
    );
    assert.equal(tainted, true);
  });
  it('an append stores its parts before it is admitted, and nothing of one that is not admitted stays', async () => {
    const uid = newUid();
    const store = createSessionStore(nats.gateway, uid);
    const parts = async () =>
      Object.keys(await messageCounts(nats.gateway, bucketStream(BUCKETS.sessions), historyOf(uid)));
    await store.append('s', 0, [userMessage('a')]);
    const admission = Promise.withResolvers<void>();
    const refused = store.append('s', 1, [userMessage('b')], {}, admission.promise);
    await poll('the part of the append', async () => (await parts()).length === 2);
    assert.equal((await store.load('s')).seq, 1);
    admission.reject(new TemperError('TEMPER_DELIVERY_LOST', 'lost'));
    await assert.rejects(refused, { message: 'lost' });
    assert.equal((await parts()).length, 1);
    assert.equal(await store.append('s', 1, [userMessage('c')], {}, Promise.resolve()), 2);
    const repeated = store.append('s', 1, [userMessage('c')], {}, admission.promise);
    await assert.rejects(repeated, { message: 'lost' });
    assert.equal((await store.load('s')).seq, 2);
  });
  it('a small history is read with its head, also when another process appended since', async () => {
    const [uid, connection] = [newUid(), await nats.bus.connect('gateway')];
    const store = createSessionStore(connection, uid, { heads: new SessionHeads(connection) });
    const elsewhere = createSessionStore(nats.gateway, uid);
    const texts = async () => (await store.loadBelow('s', 1_000))?.items.map(({ text }) => text);
    await store.append('s', 0, [userMessage('a')]);
    assert.deepEqual(await texts(), ['a']);
    await elsewhere.append('s', 1, [userMessage('b')]);
    assert.deepEqual(await texts(), ['a', 'b']);
    await elsewhere.append('s', 2, [userMessage('x'.repeat(2_000))]);
    assert.equal(await texts(), undefined);
    await elsewhere.close('s');
    assert.deepEqual(await texts(), []);
  });
  it('a load reads the head once', async () => {
    const [uid, connection] = [newUid(), await nats.bus.connect('gateway')];
    const store = createSessionStore(connection, uid);
    await store.append('s', 0, [userMessage('a')]);
    const operations: string[] = [];
    connection.onRequest((operation) => operations.push(operation));
    await store.load('s');
    assert.deepEqual(operations, ['get', 'page']);
    await store.open('empty');
    operations.length = 0;
    assert.deepEqual(await store.load('empty'), { seq: 0, items: [], tainted: false });
    assert.deepEqual(operations, ['get']);
  });
  it('one of eight concurrent writers succeeds per sequence number', async () => {
    const uid = newUid();
    for (let seq = 0; seq < 5; seq += 1) {
      const writers = Array.from({ length: 8 }, (_, writer) =>
        createSessionStore(nats.gateway, uid).append('s', seq, [userMessage(`${seq}/${writer}`)]),
      );
      const won = (await Promise.allSettled(writers)).filter(({ status }) => status === 'fulfilled');
      assert.equal(won.length, 1);
    }
    const { items } = await createSessionStore(nats.gateway, uid).load('s');
    assert.deepEqual(
      items.map(({ text }) => text.split('/')[0]),
      ['0', '1', '2', '3', '4'],
    );
  });
  it('sessions are listed per owner, most recently used first', async () => {
    let now = Date.parse('2026-11-21T10:00:00Z');
    const connection = await nats.bus.connect(
      'gateway',
      clockAt(() => (now += 1_000)),
    );
    const uid = newUid();
    const store = createSessionStore(connection, uid);
    await store.append('one', 0, [userMessage('a')], { tainted: true });
    await store.append('two.x', 0, [userMessage('a'), userMessage('b')]);
    await store.append('one', 1, [userMessage('b')]);
    await createSessionStore(connection, newUid()).append('other', 0, [userMessage('a')]);
    const listed: StoredSession[] = await store.list();
    assert.deepEqual(
      listed.map(({ session, items, tainted }) => [session, items, tainted]),
      [
        ['one', 2, true],
        ['two.x', 2, false],
      ],
    );
    assert.ok(listed.every(({ openedAt, lastUsedAt }) => openedAt <= lastUsedAt));
  });
  it('loading a session with a missing part fails', async () => {
    const uid = newUid();
    const store = createSessionStore(nats.gateway, uid);
    await store.append('s', 0, [userMessage('a')]);
    await nats.gateway.manager.streams.purge('KV_temper-sessions', {
      filter: `$KV.temper-sessions.${uid}.s.history.>`,
    });
    await assert.rejects(store.load('s'), (error) => isTemperError(error, 'TEMPER_STATE_CORRUPT'));
  });
  it('closing a session removes all its keys', async () => {
    const uid = newUid();
    const store = createSessionStore(nats.gateway, uid);
    await store.append('s', 0, [userMessage('a')]);
    await store.close('s');
    const filter = { subjects_filter: `$KV.temper-sessions.${uid}.>` };
    const { state } = await nats.gateway.manager.streams.info('KV_temper-sessions', filter);
    assert.deepEqual(state.subjects ?? {}, {});
  });
});

describe('session tools in NATS', () => {
  const toolOf = (name: string, session: string): RegisteredTool => {
    const artifact = { name, description: 'a tool' } as unknown as RegisteredTool['artifact'];
    return {
      object: `tools/${name}`,
      artifact,
      digest: artifactDigest(artifact),
      tier: 'Session',
      owner: { agent: 'a', namespace: 'n', session },
      contributors: [],
      verdicts: [],
      authorModel: 'm',
      sourceWithheld: false,
      acceptedAt: '2026-11-21T10:00:00Z',
      active: true,
    };
  };
  it('a session tool is stored once, listed by session and removed with the session', async () => {
    const tools = createSessionToolStore(nats.gateway);
    const uid = newUid();
    const [first, second] = [toolOf('first', 's.1'), toolOf('second', 's.2')];
    assert.equal(await tools.put(uid, first), true);
    assert.equal(await tools.put(uid, { ...first, authorModel: 'another' }), false);
    assert.equal(await tools.put(uid, second), true);
    assert.deepEqual(await tools.list(uid, 's.1'), [first]);
    assert.deepEqual(await tools.list(uid), [first, second]);
    assert.deepEqual(await tools.get(uid, 's.1', first.digest), first);
    assert.equal(await tools.get(uid, 's.1', second.digest), undefined);
    assert.deepEqual(await tools.list(newUid()), []);
    await tools.removeSession(uid, 's.1');
    assert.deepEqual(await tools.list(uid), [second]);
    await tools.remove(uid, 's.2', second.digest);
    assert.deepEqual(await tools.list(uid), []);
    assert.equal(await tools.put(uid, first), true);
  });
  it('a stored tool that does not match its key is ignored', async () => {
    const tools = createSessionToolStore(nats.gateway);
    const uid = newUid();
    const tool = toolOf('honest', 's');
    const changed = { ...tool, artifact: { ...tool.artifact, name: 'changed' } };
    const key = `$KV.temper-session-tools.${uid}.s.${tool.digest.slice('sha256:'.length)}`;
    for (const wrong of [
      changed,
      { ...tool, tier: 'Shared' },
      { ...tool, owner: { session: 'other' } },
      'not a tool',
      null,
    ]) {
      await nats.gateway.jetstream.publish(key, JSON.stringify(wrong));
      assert.equal(await tools.get(uid, 's', tool.digest), undefined);
      assert.deepEqual(await tools.list(uid), []);
    }
  });
});

describe('memory in NATS', () => {
  it('the memory rejects keys above its limit and still replaces existing ones', { timeout: 300_000 }, async () => {
    const uid = newUid();
    const memory = createNatsMemory(nats.gateway, { uid, namespace: 'team-a' });
    await memory.set('known', 1);
    const others = Array.from({ length: 999 }, (_, index) =>
      nats.gateway.jetstream.publish(
        `$KV.temper-memory.${uid}.k${index}`,
        JSON.stringify({ key: `k${index}`, value: 1 }),
      ),
    );
    await Promise.all(others);
    await assert.rejects(memory.set('one more', 1), (error) => isTemperError(error, 'TEMPER_QUOTA_EXCEEDED'));
    await memory.set('known', 2);
    assert.equal((await memory.get('known'))?.value, 2);
    assert.equal((await memory.search('k500', 5, () => true))[0]?.key, 'k500');
  });
});

describe('task records in NATS', () => {
  it('an agent with more records than the server answers at once has its latest tasks', async () => {
    const uid = newUid();
    const unlimited = { reserve: () => Promise.resolve() };
    const end = { session: 's', outcome: 'completed', deliveries: 1 } as const;
    // Each gateway removes old records only after fifty of its own.
    const add = async (gateway: number): Promise<void> => {
      const records = createTaskRecords(nats.gateway, () => unlimited);
      for (let index = 0; index < 49; index += 1) {
        await records.end(uid, { ...end, message: `m-${gateway}-${index}`, endedAt: index });
      }
    };
    await Promise.all(Array.from({ length: 22 }, (_, gateway) => add(gateway)));
    const tasks = await createTaskRecords(nats.gateway, () => unlimited).read(uid);
    assert.equal(tasks.length, MAX_TASK_RECORDS);
    assert.ok(tasks.some(({ endedAt }) => endedAt === 48));
  });

  it('tasks that used one category remove no record of another one, and those of a category are bounded', async () => {
    const uid = newUid();
    const records = createTaskRecords(nats.gateway, () => ({ reserve: () => Promise.resolve() }));
    const end = { session: 's', outcome: 'completed', deliveries: 1, endedAt: 1 } as const;
    await records.end(uid, { ...end, message: 'm-rare' });
    await records.use(uid, 'm-rare', 'database');
    const count = MAX_TASK_RECORDS + 100;
    for (let index = 0; index < count; index += 1) await records.use(uid, `m-${index}`, 'web');
    assert.deepEqual(
      (await records.read(uid)).map(({ categories }) => categories),
      [['database']],
    );
    const subjects = bucketSubject(BUCKETS.tasks, `${uid}.use.*.web`);
    const stored = await messageCounts(nats.gateway, bucketStream(BUCKETS.tasks), subjects);
    assert.ok(Object.keys(stored).length <= MAX_TASK_RECORDS + 50, String(Object.keys(stored).length));
  });
});
