import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withResidents } from '../../../src/gateway/storage/resident-inbox.ts';
import { isTemperError } from '../../../src/lib/errors.ts';
import { createChildRequests } from '../../../src/nats/children/child-requests.ts';
import { createNatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { BUCKETS, bucketSubject } from '../../../src/nats/jetstream/names.ts';
import { publish } from '../../../src/nats/jetstream/publish.ts';
import { createNatsMemory } from '../../../src/nats/memory.ts';
import { createPendingCalls } from '../../../src/nats/pending-calls.ts';
import { countBytes } from '../../../src/nats/residents/byte-count.ts';
import type { ResidentAgent } from '../../../src/nats/residents/resident.ts';
import { createResidents } from '../../../src/nats/residents/residents.ts';
import { DEFAULT_STORAGE_LIMITS, type StorageLimits } from '../../../src/nats/residents/storage-limits.ts';
import { StorageQuota } from '../../../src/nats/residents/storage-quota.ts';
import { createSessionStore } from '../../../src/nats/sessions/session-store.ts';
import { createSessionToolStore } from '../../../src/nats/sessions/session-tools.ts';
import { artifactDigest } from '../../../src/tempering/registry/serialization.ts';
import type { RegisteredTool } from '../../../src/tempering/types.ts';
import { userMessage } from '../../contracts/stores.ts';
import { buildAgent } from '../../support/builders.ts';
import { newMessage, newUid } from '../../support/nats/nats-fixture.ts';
import { useNats } from '../../support/nats/nats-suite.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';

const MIB = 1_024 * 1_024;
const SMALL: StorageLimits = {
  sessionBytes: 2 * MIB,
  agentBytes: {
    sessions: 3 * MIB,
    sessionTools: 100_000,
    sources: 100_000,
    memory: 100_000,
    evidence: 100_000,
    inbox: 2 * MIB,
    tasks: 100_000,
    requests: 100_000,
  },
  namespacePercent: 50,
};
const nats = useNats();

let namespaces = 0;
/** Agents of a namespace of their own, and quotas as a gateway has them. */
function setup(limits: StorageLimits = SMALL) {
  namespaces += 1;
  const namespace = `team-${namespaces}`;
  const agents = new Map<string, ResidentAgent>();
  const newGateway = () =>
    new StorageQuota({ connection: nats.gateway, limits, release: 'mine', identify: (uid) => agents.get(uid) });
  const newAgent = (): string => {
    const uid = newUid();
    agents.set(uid, { namespace, name: 'analyst', uid });
    return uid;
  };
  const quota = newGateway();
  const sessionsOf = (uid: string, own = quota) => createSessionStore(nats.gateway, uid, { quota: own.of(uid) });
  return { namespace, agents, quota, newGateway, newAgent, sessionsOf };
}

const text = (bytes: number, letter = 'x') => userMessage(letter.repeat(bytes));
const isLimit = (pattern: RegExp) => (error: unknown) =>
  isTemperError(error, 'TEMPER_STORAGE_LIMIT_EXCEEDED') && pattern.test(error.message);

async function subjectsOf(uid: string): Promise<string[]> {
  const filter = { subjects_filter: `$KV.temper-sessions.${uid}.>` };
  const { state } = await nats.gateway.manager.streams.info('KV_temper-sessions', filter);
  return Object.keys(state.subjects ?? {});
}

describe('bytes of sessions in NATS', () => {
  it('a session is refused beyond its limit, with both numbers, and stays readable', async () => {
    const { newAgent, sessionsOf } = setup();
    const store = sessionsOf(newAgent());
    await store.append('s', 0, [text(1.5 * MIB)]);
    await assert.rejects(store.append('s', 1, [text(MIB)]), isLimit(/session "s" would have 26\d{5} bytes.*2097152/));
    assert.equal((await store.load('s')).seq, 1);
    assert.equal(await store.append('s', 1, [text(10)]), 2);
  });
  it('an agent is refused beyond its limit until it closes a session, and no other agent is', async () => {
    const { newAgent, sessionsOf } = setup();
    const [full, other] = [newAgent(), newAgent()];
    const store = sessionsOf(full);
    await store.append('a', 0, [text(1.6 * MIB)]);
    await store.append('b', 0, [text(1.2 * MIB)]);
    await assert.rejects(store.append('c', 0, [text(MIB)]), isLimit(/conversations of agent "analyst".*3145728/));
    assert.equal(await sessionsOf(other).append('c', 0, [text(MIB)]), 1);
    await store.close('a');
    assert.equal(await store.append('c', 0, [text(MIB)]), 1);
  });
  it('the limit of an agent holds for a second gateway', async () => {
    const { newAgent, newGateway, sessionsOf } = setup();
    const uid = newAgent();
    await sessionsOf(uid).append('a', 0, [text(1.8 * MIB)]);
    await sessionsOf(uid).append('b', 0, [text(1 * MIB)]);
    await assert.rejects(sessionsOf(uid, newGateway()).append('c', 0, [text(MIB)]), isLimit(/analyst/));
  });
  it('a repeated append is not charged twice', async () => {
    const { newAgent, quota, sessionsOf } = setup();
    const uid = newAgent();
    const store = sessionsOf(uid);
    for (let attempt = 0; attempt < 5; attempt += 1) {
      assert.equal(await store.append('s', 0, [text(1.5 * MIB)]), 1);
    }
    const stored = await countBytes(nats.gateway, 'sessions', uid, 100 * MIB);
    assert.ok(stored < 1.6 * MIB, String(stored));
    await quota.of(uid).reserve('sessions', 1.3 * MIB);
    await assert.rejects(quota.of(uid).reserve('sessions', 1.8 * MIB), isLimit(/analyst/));
  });
  it('writers that lose a conflict leave nothing behind, and the sum is that of the winners', async () => {
    const { newAgent, sessionsOf } = setup({ ...SMALL, agentBytes: { ...SMALL.agentBytes, sessions: 100 * MIB } });
    const uid = newAgent();
    for (let seq = 0; seq < 3; seq += 1) {
      const writers = Array.from({ length: 6 }, (_, writer) =>
        sessionsOf(uid).append('s', seq, [text(300_000, String(writer))]),
      );
      assert.equal((await Promise.allSettled(writers)).filter(({ status }) => status === 'fulfilled').length, 1);
    }
    // Two parts for each of three appends, and the head.
    assert.equal((await subjectsOf(uid)).length, 7);
    let bytes = 0;
    const reader = { admit: (stored: number) => void (bytes = stored), signal: NEVER_ABORTED };
    assert.equal((await sessionsOf(uid).loadFor('s', reader)).seq, 3);
    const counted = await countBytes(nats.gateway, 'sessions', uid, 100 * MIB);
    assert.ok(counted >= bytes && counted < bytes + 1_000, `${counted} ${bytes}`);
  });
  it('a history is not read for a reader that is refused, or has left', async () => {
    const { newAgent, sessionsOf } = setup();
    const uid = newAgent();
    await sessionsOf(uid).append('s', 0, [text(1.5 * MIB)]);
    const refusal = new Error('refused');
    const refuse = () => {
      throw refusal;
    };
    await assert.rejects(sessionsOf(uid).loadFor('s', { admit: refuse, signal: NEVER_ABORTED }), refusal);
    const left = AbortSignal.abort(refusal);
    await assert.rejects(sessionsOf(uid).loadFor('s', { admit: () => undefined, signal: left }), refusal);
  });
  it('equal appends at the same time are one append for both callers', async () => {
    const { newAgent, sessionsOf } = setup();
    const uid = newAgent();
    const results = await Promise.all([1, 2, 3].map(() => sessionsOf(uid).append('s', 0, [text(1_000)])));
    assert.deepEqual(results, [1, 1, 1]);
    assert.equal((await subjectsOf(uid)).length, 2);
  });
  it('a head without a sum is counted before the next append', async () => {
    const { newAgent, sessionsOf } = setup();
    const uid = newAgent();
    const store = sessionsOf(uid);
    await store.append('s', 0, [text(1.5 * MIB)]);
    const key = `$KV.temper-sessions.${uid}.s.head`;
    const { bytes, ...old } =
      (await nats.gateway.manager.streams.getMessage('KV_temper-sessions', { last_by_subj: key }))?.json<{
        bytes: number;
      }>() ?? assert.fail('no head');
    assert.ok(bytes > 1.5 * MIB);
    await nats.gateway.jetstream.publish(key, JSON.stringify(old));
    await assert.rejects(store.append('s', 1, [text(MIB)]), isLimit(/session "s"/));
    assert.equal(await store.append('s', 1, [text(10)]), 2);
  });
  it('the taint flag is read without the history', async () => {
    const { newAgent, sessionsOf } = setup();
    const uid = newAgent();
    const store = sessionsOf(uid);
    await store.append('s', 0, [text(10)], { tainted: true });
    await nats.gateway.manager.streams.purge('KV_temper-sessions', {
      filter: `$KV.temper-sessions.${uid}.s.history.>`,
    });
    assert.equal(await store.isTainted('s'), true);
    assert.equal(await store.isTainted('unknown'), false);
  });
  it('an opened session exists, is empty, and accepts its first append', async () => {
    const { newAgent, sessionsOf } = setup();
    const store = sessionsOf(newAgent());
    assert.equal(await store.exists('s'), false);
    await Promise.all([store.open('s'), store.open('s')]);
    assert.equal(await store.exists('s'), true);
    assert.deepEqual(await store.load('s'), { seq: 0, items: [], tainted: false });
    assert.equal(await store.append('s', 0, [text(1)]), 1);
    await store.open('s');
    assert.equal((await store.load('s')).seq, 1);
  });
});

describe('empty sessions', () => {
  it('an agent cannot open sessions without end', async () => {
    const { newAgent, sessionsOf } = setup({ ...SMALL, agentBytes: { ...SMALL.agentBytes, sessions: 2_000 } });
    const store = sessionsOf(newAgent());
    const open = async () => {
      for (let index = 0; index < 20; index += 1) await store.open(`s-${index}`);
    };
    await assert.rejects(open(), isLimit(/conversations of agent "analyst".*2000/));
    await store.open('s-0');
    assert.ok((await store.list()).length < 20);
  });
});

describe('bytes of memory and of session tools', () => {
  it('memory is refused beyond its limit until a value becomes shorter', async () => {
    const { newAgent, quota } = setup();
    const uid = newAgent();
    const memory = createNatsMemory(nats.gateway, { uid, namespace: 'team-a' }, quota.of(uid));
    await memory.set('a', 'x'.repeat(60_000));
    await memory.set('a', 'y'.repeat(60_000));
    await assert.rejects(memory.set('b', 'x'.repeat(50_000)), isLimit(/memory of agent "analyst".*100000/));
    await memory.set('a', 'short');
    await memory.set('b', 'x'.repeat(50_000));
    assert.equal((await memory.get('a'))?.value, 'short');
    await assert.rejects(memory.set('c', 'x'.repeat(60_000)), isLimit(/memory of agent/));
    await memory.delete('b');
    await memory.set('c', 'x'.repeat(60_000));
  });
  it('session tools are refused beyond the limit of the agent until their session is closed', async () => {
    const { newAgent, quota } = setup();
    const uid = newAgent();
    const tools = createSessionToolStore(nats.gateway, { quotaOf: (agent) => quota.of(agent) });
    const toolOf = (name: string, session: string): RegisteredTool => {
      const artifact = { name, description: 'x'.repeat(60_000) } as unknown as RegisteredTool['artifact'];
      const owner = { agent: 'a', namespace: 'n', session };
      return {
        object: 'o',
        artifact,
        digest: artifactDigest(artifact),
        tier: 'Session',
        owner,
        contributors: [],
        verdicts: [],
        authorModel: 'm',
        sourceWithheld: false,
        acceptedAt: '2026-11-21T10:00:00Z',
        active: true,
      };
    };
    assert.equal(await tools.put(uid, toolOf('one', 's-1')), true);
    assert.equal(await tools.put(uid, toolOf('one', 's-1')), false);
    await assert.rejects(tools.put(uid, toolOf('two', 's-2')), isLimit(/session tools of agent "analyst"/));
    await tools.removeSession(uid, 's-1');
    assert.equal(await tools.put(uid, toolOf('two', 's-2')), true);
  });
});

describe('the share of a namespace', () => {
  it('the agents of one namespace cannot fill a bucket, and a closed session no longer counts', async () => {
    const { config, state } = await nats.gateway.manager.streams.info('KV_temper-sessions');
    // Of what earlier tests left free: more than one full agent, and less than two.
    const namespacePercent = Math.ceil((100 * 3.5 * MIB) / (config.max_bytes - state.bytes));
    const limits = { ...SMALL, sessionBytes: 3 * MIB, namespacePercent };
    const { newAgent, sessionsOf } = setup(limits);
    const [one, two] = [newAgent(), newAgent()];
    await sessionsOf(one).append('s', 0, [text(2.5 * MIB)]);
    await assert.rejects(
      sessionsOf(two).append('s', 0, [text(2.5 * MIB)]),
      isLimit(/conversations of all agents in namespace team-\d+ would have \d+ bytes/),
    );
    const other = setup(limits);
    assert.equal(await other.sessionsOf(other.newAgent()).append('s', 0, [text(2.5 * MIB)]), 1);
    await sessionsOf(one).close('s');
    assert.equal(await sessionsOf(two).append('s', 0, [text(2.5 * MIB)]), 1);
  });

  it('two namespaces that take all that they may leave a share for a third one', async () => {
    const limits = { ...SMALL, sessionBytes: 3 * MIB, agentBytes: { ...SMALL.agentBytes, sessions: 256 * MIB } };
    const { config } = await nats.gateway.manager.streams.info('KV_temper-sessions');
    const most = Math.ceil(config.max_bytes / MIB);
    const fill = async () => {
      const { newAgent, sessionsOf } = setup(limits);
      const store = sessionsOf(newAgent());
      const refused = async (): Promise<number> => {
        for (let stored = 0; stored <= most; stored += 1) {
          try {
            await store.append(`s-${stored}`, 0, [text(MIB)]);
          } catch (error) {
            assert.ok(isLimit(/conversations of all agents in namespace/)(error), String(error));
            return stored;
          }
        }
        return assert.fail('the namespace stored more than the bucket holds');
      };
      return { stored: await refused(), store };
    };
    const [first, second, third] = [await fill(), await fill(), await fill()];
    const counts = [first, second, third].map(({ stored }) => stored);
    assert.ok(first.stored > second.stored && second.stored > third.stored && third.stored > 0, counts.join(', '));
    for (const { stored, store } of [first, second, third])
      for (let index = 0; index < stored; index += 1) await store.close(`s-${index}`);
  });
});

describe('bytes of requests in NATS', () => {
  /** An agent asks for a child whose spec has so many bytes. */
  const ask = (own: StorageQuota, uid: string, id: string, bytes: number): Promise<void> => {
    const spec = { ...buildAgent('team', 'child').spec, systemPrompt: 'x'.repeat(bytes) };
    const parent = { uid, name: 'analyst', namespace: 'team' };
    const order = { kind: 'Spawn', spec } as const;
    const request = { id, parent, name: 'child', state: 'Requested', order, time: new Date().toISOString() } as const;
    return createChildRequests(nats.gateway, (agentUid) => own.of(agentUid)).add(request);
  };

  it('many agents that each ask for little are together refused beyond the share of their namespace, and another namespace is not', async () => {
    const { config, state } = await nats.gateway.manager.streams.info('temper-state');
    const namespacePercent = Math.ceil((100 * 2 * MIB) / (config.max_bytes - state.bytes));
    const share = (namespacePercent * (config.max_bytes - state.bytes)) / 100;
    const { newAgent, quota, newGateway } = setup({ ...SMALL, namespacePercent });
    const agents = Array.from({ length: Math.ceil(share / 60_000) + 2 }, newAgent);
    const refused: Error[] = [];
    for (const uid of agents) await ask(quota, uid, 'one', 60_000).catch((error: Error) => refused.push(error));
    assert.ok(
      refused.length > 0 && refused.length < agents.length / 2,
      `${refused.length} of ${agents.length} refused`,
    );
    for (const error of refused)
      assert.ok(isLimit(/requests for approvals, children and promotions of all agents in namespace/)(error));
    await assert.rejects(ask(newGateway(), newAgent(), 'one', 60_000), isLimit(/of all agents in namespace/));
    const other = setup({ ...SMALL, namespacePercent });
    await ask(other.quota, other.newAgent(), 'one', 60_000);
  });

  it('the calls, children and promotions of an agent count together, and an ended request for a child counts no spec', async () => {
    const { newAgent, quota } = setup();
    const uid = newAgent();
    const calls = createPendingCalls(nats.gateway);
    await calls.update(uid, () => [{ request: 'call-1', arguments: 'x'.repeat(30_000) } as never]);
    await publish(nats.gateway, bucketSubject(BUCKETS.promotionStates, `${uid}.digest`), 'x'.repeat(30_000));
    await ask(quota, uid, 'one', 30_000);
    await assert.rejects(ask(quota, uid, 'two', 30_000), isLimit(/children and promotions of agent "analyst".*100000/));
    const children = createChildRequests(nats.gateway);
    const { requests } = await children.open(0);
    const [one] = requests.filter(({ parent }) => parent.uid === uid);
    assert.ok(one !== undefined);
    await children.end(one, { state: 'Done' });
    await ask(quota, uid, 'two', 30_000);
  });

  it('a request to end a child is taken from an agent that may store nothing more', async () => {
    const { newAgent, quota } = setup();
    const uid = newAgent();
    await ask(quota, uid, 'one', 95_000);
    const request = {
      id: 'kill',
      parent: { uid, name: 'analyst', namespace: 'team' },
      name: 'child',
      state: 'Requested',
      order: { kind: 'Kill', uid: newUid() },
      time: new Date().toISOString(),
    } as const;
    await createChildRequests(nats.gateway, (agentUid) => quota.of(agentUid)).add(request);
    await assert.rejects(ask(quota, uid, 'two', 30_000), isLimit(/children and promotions/));
  });
});

describe('bytes of waiting messages in NATS', () => {
  /** Sends a message of 100 KB to an agent. */
  const send = (own: StorageQuota, uid: string, key: string): Promise<unknown> =>
    inboxWith(own).publish(uid, { uid: 'sender', key: `${uid}/${key}` }, newMessage('x'.repeat(100_000)));
  const inboxWith = (own: StorageQuota) =>
    withResidents(createNatsInbox(nats.gateway), {
      quotaOf: (uid) => own.of(uid),
    });
  const count = async (uid: string): Promise<number> => (await createNatsInbox(nats.gateway).depth(uid)).pending;

  it('an agent that reads no messages is refused further ones, and no other agent is', async () => {
    const { newAgent, quota } = setup();
    const [full, other] = [newAgent(), newAgent()];
    const sent = await Promise.allSettled(Array.from({ length: 30 }, (_, index) => send(quota, full, `k-${index}`)));
    const refused = sent.flatMap((result) => (result.status === 'rejected' ? [result.reason as Error] : []));
    assert.equal(refused.length, 10);
    for (const error of refused)
      assert.ok(isLimit(/waiting messages of agent "analyst" would have 2\d{6} bytes/)(error));
    assert.equal(await count(full), 20);
    await send(quota, other, 'k');
  });
  it('the limit holds for what another gateway accepted', async () => {
    const { newAgent, newGateway, quota } = setup();
    const uid = newAgent();
    for (let index = 0; index < 18; index += 1) await send(quota, uid, `k-${index}`);
    const other = newGateway();
    const refused: unknown[] = [];
    for (let index = 0; index < 30; index += 1)
      await send(other, uid, `l-${index}`).catch((error: unknown) => refused.push(error));
    assert.ok(refused.length > 0);
    // A gateway looks after it has added 1 MiB.
    assert.ok((await count(uid)) <= 30, String(await count(uid)));
  });
  it('messages that were processed do not count', async () => {
    const { newAgent, quota } = setup();
    const uid = newAgent();
    const inbox = createNatsInbox(nats.gateway);
    for (let index = 0; index < 60; index += 1) {
      await send(quota, uid, `k-${index}`);
      const delivery = await inbox.fetchNext(uid, 60_000, AbortSignal.timeout(60_000));
      await inbox.ack(delivery?.coordinates ?? assert.fail('no message'));
    }
    assert.equal(await count(uid), 0);
  });
  it('a message that is sent again with its key counts once', async () => {
    const { newAgent, quota } = setup();
    const uid = newAgent();
    for (let index = 0; index < 60; index += 1) await send(quota, uid, 'same');
    assert.equal(await count(uid), 1);
    await send(quota, uid, 'another');
  });
  it('the agents of a namespace together are refused beyond its share, and another namespace is not', async () => {
    const { operator } = nats;
    const { config } = await operator.manager.streams.info('temper-inbox');
    await operator.manager.streams.purge('temper-inbox');
    await operator.manager.streams.update('temper-inbox', { max_bytes: 8 * MIB });
    const { newAgent, quota } = setup();
    const refused: unknown[] = [];
    const agents = Array.from({ length: 6 }, () => newAgent());
    for (let index = 0; index < 15; index += 1)
      for (const uid of agents) await send(quota, uid, `k-${index}`).catch((error: unknown) => refused.push(error));
    assert.ok(refused.length > 0);
    assert.ok(
      refused.every((error) =>
        isLimit(/waiting messages of all agents in namespace team-\d+ would have/)(error as Error),
      ),
    );
    const other = setup();
    await send(other.quota, other.newAgent(), 'k');
    for (const uid of agents) await createNatsInbox(operator).remove(uid);
    await operator.manager.streams.update('temper-inbox', { max_bytes: config.max_bytes });
  });
});

describe('the list of agents with data', () => {
  it('an agent is listed before something of it is stored, once, with release and namespace', async () => {
    const { namespace, newAgent, newGateway, sessionsOf } = setup(DEFAULT_STORAGE_LIMITS);
    const uid = newAgent();
    await Promise.all([newGateway(), newGateway()].map((quota) => quota.ensureResident(uid)));
    await sessionsOf(uid).append('s', 0, [text(MIB)]);
    const found = [];
    for await (const { resident } of createResidents(nats.gateway).list(namespace)) found.push(resident);
    assert.equal(found.length, 1);
    const { release, name, bytes } = found[0] ?? assert.fail('no entry');
    assert.deepEqual([release, name, found[0]?.uid], ['mine', 'analyst', uid]);
    assert.ok(bytes.sessions >= MIB, String(bytes.sessions));
  });
  it('nothing is stored for an agent that does not exist', async () => {
    const { sessionsOf } = setup();
    const uid = newUid();
    await assert.rejects(sessionsOf(uid).append('s', 0, [text(1)]), (error) =>
      isTemperError(error, 'TEMPER_NOT_FOUND'),
    );
    assert.deepEqual(await subjectsOf(uid), []);
  });
  it('listing agents reads one entry per agent and counts no subjects', async () => {
    const { namespace, newAgent, sessionsOf } = setup();
    const uid = newAgent();
    const store = sessionsOf(uid);
    for (let seq = 0; seq < 20; seq += 1) await store.append('s', seq, [text(10)]);
    const operator = await nats.bus.connect('operator');
    const operations: string[] = [];
    operator.onRequest((operation) => operations.push(operation));
    const uids = [];
    for await (const { resident } of createResidents(operator).list(namespace)) uids.push(resident.uid);
    assert.deepEqual(uids, [uid]);
    assert.deepEqual(operations, ['page']);
  });
  it('a change is repeated when another process changed the entry meanwhile', async () => {
    const { agents, newAgent, quota } = setup();
    const agent = agents.get(newAgent()) ?? assert.fail('no agent');
    await quota.ensureResident(agent.uid);
    const residents = createResidents(nats.gateway);
    let attempts = 0;
    const update = residents.update(agent, (entry) => {
      attempts += 1;
      return { ...entry, missingSince: '2026-11-22T10:00:00Z' };
    });
    const other = residents.update(agent, (entry) => ({ ...entry, bytes: { ...entry.bytes, memory: 7 } }));
    await Promise.all([update, other]);
    const stored = await residents.update(agent, () => undefined);
    assert.deepEqual([stored?.missingSince, stored?.bytes.memory], ['2026-11-22T10:00:00Z', 7]);
    assert.ok(attempts >= 1);
  });
});
