import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../../src/lib/errors.ts';
import type { SessionStreamLine } from '../../../src/gateway-api/user-api.ts';
import { createNatsAudit, type StoredAuditRecord } from '../../../src/nats/audit.ts';
import { createSessionEvents, type FollowOptions, type StoredSessionEvent } from '../../../src/nats/session-events.ts';
import { createNatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { createNatsMemory } from '../../../src/nats/memory.ts';
import { QUEUES, STREAMS, subjects } from '../../../src/nats/jetstream/names.ts';
import { publish } from '../../../src/nats/jetstream/publish.ts';
import { desiredStreams } from '../../../src/nats/jetstream/topology.ts';
import { createToolEvidence } from '../../../src/nats/promotion/evidence.ts';
import { createPanelReviews } from '../../../src/nats/promotion/panel-reviews.ts';
import { createPromotionStates } from '../../../src/nats/promotion/promotion-states.ts';
import { createPromotionRequests, type PromotionRequest } from '../../../src/nats/promotion/promotion-requests.ts';
import { createSessionStore } from '../../../src/nats/sessions/session-store.ts';
import { deleteAgentData } from '../../../src/nats/agent-data.ts';
import { createTriggerFires } from '../../../src/nats/events/trigger-fires.ts';
import { createWakeups } from '../../../src/nats/wakeups.ts';
import { userMessage } from '../../contracts/stores.ts';
import { messageEvent, newMessage, newUid } from '../../support/nats/nats-fixture.ts';
import { useNats } from '../../support/nats/nats-suite.ts';
import { pollValue } from '../../support/poll.ts';

const TIMEOUT_MS = 60_000;
const nats = useNats();

/** Waits until the consumer has delivered every message and all are acknowledged: none follows. */
async function whenDrained(stream: string, consumer: string): Promise<void> {
  await pollValue(
    `the end of the deliveries of ${consumer}`,
    () => nats.operator.manager.consumers.info(stream, consumer),
    ({ num_pending, num_ack_pending }) => num_pending === 0 && num_ack_pending === 0,
  );
}

describe('the events of a session', () => {
  it('session events are read from a sequence number and followed live, separately per session', async () => {
    const events = createSessionEvents(nats.gateway);
    const uid = newUid();
    const first = await events.append(uid, 's.1', messageEvent('one', 's.1'));
    await events.append(uid, 's.1x', messageEvent('another session', 's.1x'));
    await events.append(uid, 's.1', messageEvent('two', 's.1'));
    const stop = new AbortController();
    const seen: StoredSessionEvent[] = [];
    const following = (async () => {
      const options: FollowOptions = { after: first, signal: stop.signal };
      for await (const line of events.follow(uid, 's.1', options)) seen.push(line);
    })();
    await pollValue(
      'the stored event',
      () => seen.length,
      (value) => value === 1,
    );
    const end = { kind: 'reply', message: 'm', text: 'done', finishReason: 'complete' } as const;
    await createSessionEvents(await nats.bus.connect('gateway')).append(uid, 's.1', end);
    await pollValue(
      'the reply',
      () => seen.length,
      (value) => value === 2,
    );
    stop.abort();
    await following;
    // The user API sends these lines unchanged.
    const lines: SessionStreamLine[] = seen;
    assert.deepEqual(
      lines.map(({ kind }) => kind),
      ['event', 'reply'],
    );
    assert.deepEqual((await events.read(uid, 's.1', 0, 10)).length, 3);
    assert.deepEqual(
      (await events.read(uid, 's.1', 0, 1)).map(({ seq }) => seq),
      [first],
    );
    assert.deepEqual(await events.read(uid, 's.1', 0, 0), []);
  });
  it('events that are stored at once take one message, and a reader continues behind any of them', async () => {
    const events = createSessionEvents(nats.gateway);
    const uid = newUid();
    await events.append(uid, 's', messageEvent('before', 's'));
    const stampedEvents = ['one', 'two', 'three'].flatMap((text) => {
      const line = messageEvent(text, 's');
      return line.kind === 'event' ? [line.event] : [];
    });
    const stored = async () =>
      (await nats.gateway.manager.streams.info(STREAMS.events, { subjects_filter: subjects.events(uid, 's') })).state
        .subjects?.[subjects.events(uid, 's')];
    await events.appendAll(uid, 's', stampedEvents, 'report-1');
    await events.appendAll(uid, 's', stampedEvents, 'report-1');
    assert.equal(await stored(), 2, 'the repeated call stores nothing');
    await events.append(uid, 's', messageEvent('after', 's'));
    const textOf = (line: StoredSessionEvent) =>
      line.kind === 'event' && line.event.type === 'message' ? line.event.text : '';
    const all = await events.read(uid, 's', 0, 10);
    assert.deepEqual(all.map(textOf), ['before', 'one', 'two', 'three', 'after']);
    for (const [index, { seq, skip }] of all.entries()) {
      const rest = all.slice(index + 1).map(textOf);
      assert.deepEqual((await events.read(uid, 's', seq, 10, skip)).map(textOf), rest, `behind line ${index}`);
      const followed: string[] = [];
      const stop = new AbortController();
      if (rest.length === 0) continue;
      const options = { after: seq, signal: stop.signal, ...(skip === undefined ? {} : { skip }) };
      for await (const line of events.follow(uid, 's', options)) {
        followed.push(textOf(line));
        if (followed.length === rest.length) stop.abort();
      }
      assert.deepEqual(followed, rest, `followed behind line ${index}`);
    }
    const [second, third] = [await events.read(uid, 's', 0, 3), all[2]];
    assert.deepEqual(second.map(textOf), ['before', 'one', 'two']);
    assert.deepEqual(second.at(-1), third);
  });
  it('a repeated reply to a message is stored once', async () => {
    const events = createSessionEvents(nats.gateway);
    const uid = newUid();
    const end = { kind: 'reply', message: 'm', text: 'done', finishReason: 'complete' } as const;
    const sequences = [await events.append(uid, 's', end), await events.append(uid, 's', { ...end, text: 'again' })];
    assert.equal(sequences[0], sequences[1]);
    assert.deepEqual(
      (await events.read(uid, 's', 0, 10)).map((line) => line.kind === 'reply' && line.text),
      ['done'],
    );
  });

  it('the end of a message is known as soon as its event is stored, before the reply is', async () => {
    const events = createSessionEvents(nats.gateway);
    const [uid, of] = [newUid(), { session: 's', message: 'm', after: 0 }];
    await events.append(uid, 's', messageEvent('one', 's'));
    assert.equal(await events.end(uid, of), undefined);
    const end = { kind: 'reply', message: 'm', text: 'done', finishReason: 'complete' } as const;
    await publish(nats.gateway, subjects.events(uid, 's'), end);
    assert.deepEqual(await events.end(uid, of), end);
    assert.equal(await events.end(uid, { ...of, message: 'other' }), undefined);
    await events.append(uid, 's', end);
    await events.append(uid, 's', messageEvent('two', 's'));
    assert.deepEqual(await events.end(uid, of), end);
  });

  it('readers that follow a session need no consumer on the server, and get new events at once', async () => {
    const events = createSessionEvents(nats.gateway);
    const uid = newUid();
    await events.append(uid, 's', messageEvent('one', 's'));
    const stop = new AbortController();
    let read = 0;
    const following = Array.from({ length: 50 }, async () => {
      for await (const _ of events.follow(uid, 's', { after: 0, signal: stop.signal })) read += 1;
    });
    const hasRead = (count: number) =>
      pollValue(
        `${count} events`,
        () => read,
        (value) => value === count,
      );
    await hasRead(50);
    const writer = createSessionEvents(await nats.bus.connect('gateway'));
    const start = performance.now();
    const rounds = 10;
    for (let round = 1; round <= rounds; round += 1) {
      await writer.append(uid, 's', messageEvent(`event ${round}`, 's'));
      await hasRead(50 * (round + 1));
    }
    // A reader without notifications looks again after 10 s. All rounds but the first would begin right after such a look.
    assert.ok(performance.now() - start < (rounds - 1) * 10_000, 'readers found the events without notifications');
    assert.equal((await nats.gateway.manager.streams.info(STREAMS.events)).state.consumer_count, 0);
    stop.abort();
    await Promise.all(following);
  });
  it('many followers read a large history without losing the connection', { timeout: 300_000 }, async () => {
    const events = createSessionEvents(nats.gateway);
    const uid = newUid();
    const lines = 60;
    const big = 'x'.repeat(100_000);
    for (let line = 0; line < lines; line += 1) await events.append(uid, 's', messageEvent(`${line} ${big}`, 's'));
    const since = nats.gateway.state().since;
    const counts = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const stop = new AbortController();
        let count = 0;
        for await (const _ of events.follow(uid, 's', { after: 0, signal: stop.signal })) {
          count += 1;
          if (count === lines) stop.abort();
        }
        return count;
      }),
    );
    assert.deepEqual(new Set(counts), new Set([lines]));
    assert.deepEqual([nats.gateway.state().connected, nats.gateway.state().since], [true, since]);
    await createSessionEvents(nats.operator).remove(uid);
    assert.deepEqual(await events.read(uid, 's', 0, 10), []);
  });
});

describe('wakeups', () => {
  it('wakeups of one agent are merged until consumed, and redelivered after a failure', async () => {
    const wakes = createWakeups(nats.gateway);
    const [one, two] = [newUid(), newUid()];
    for (let wake = 0; wake < 5; wake += 1) await wakes.publish(one);
    await wakes.publish(two);
    const stop = new AbortController();
    const taken: string[] = [];
    const failures: unknown[] = [];
    const wake = async (uid: string): Promise<void> => {
      taken.push(uid);
      if (uid === two && failures.length === 0) throw new Error('not now');
    };
    const consuming = createWakeups(nats.operator).consume(wake, stop.signal, (error) => failures.push(error));
    await pollValue(
      'three wakeups',
      () => taken.length,
      (value) => value >= 3,
    );
    await wakes.publish(one);
    await pollValue(
      'a fourth wakeup',
      () => taken.length,
      (value) => value >= 4,
    );
    await whenDrained(QUEUES.wakeups.stream, QUEUES.wakeups.consumer);
    stop.abort();
    await consuming;
    assert.deepEqual(taken, [one, two, two, one]);
    assert.equal(failures.length, 1);
  });
});

function aRequest(agentUid: string, digit: string): PromotionRequest {
  return { agentUid, digest: `sha256:${digit.repeat(64)}`, session: 's1' };
}

describe('promotion requests', () => {
  it('each promotion request is consumed once by one of two operators, unchanged', async () => {
    const promotions = createPromotionRequests(nats.gateway);
    const requests = ['1', '2'].map((digit) => aRequest(newUid(), digit));
    for (const request of [...requests, ...requests]) await promotions.publish(request, 0);
    const stop = new AbortController();
    const taken: PromotionRequest[] = [];
    const consuming = [nats.operator, await nats.bus.connect('operator')].map((connection) =>
      createPromotionRequests(connection).consume(async (request) => void taken.push(request), stop.signal),
    );
    await pollValue(
      'two promotion requests',
      () => taken.length,
      (value) => value >= 2,
    );
    await whenDrained(STREAMS.promotions, QUEUES.promotions.consumer);
    stop.abort();
    await Promise.all(consuming);
    const inOrder = (all: readonly PromotionRequest[]) => all.toSorted((a, b) => (a.digest < b.digest ? -1 : 1));
    assert.deepEqual(inOrder(taken), inOrder(requests));
  });
  it('a promotion request above the limit per agent is rejected', async () => {
    const promotions = createPromotionRequests(nats.gateway);
    const request = aRequest(newUid(), '1');
    await Promise.all(Array.from({ length: 100 }, (_, revision) => promotions.publish(request, revision)));
    await assert.rejects(promotions.publish(request, 100), (error) => isTemperError(error, 'TEMPER_BUS_FULL'));
  });
});

describe('the audit', () => {
  it('the audit is read in order and per namespace, with evidence, time and sequence number', async () => {
    const audit = createNatsAudit(nats.gateway);
    const record = { action: 'tool.called', actor: 'agent/a', subject: 'sha256:x', facts: { n: 1 } } as const;
    const append = (namespace: string, evidence: 'observed' | 'reported') =>
      audit.append({ namespace, agentUid: 'uid-a' }, { ...record, evidence });
    for (const evidence of ['observed', 'reported'] as const) {
      const first = await append('team-a', evidence);
      await append('team-b', evidence);
      const second = await append('team-a', evidence);
      const read: StoredAuditRecord[] = await createNatsAudit(nats.operator).read('team-a', evidence, 0, 10);
      assert.deepEqual(
        read.map(({ seq }) => seq),
        [first, second],
      );
      const { seq, time, ...rest } = read[0] ?? assert.fail('nothing was read');
      assert.deepEqual(rest, { ...record, evidence });
      assert.ok(seq > 0 && !Number.isNaN(Date.parse(time)));
      assert.equal((await audit.read('team-a', evidence, seq, 1))[0]?.seq, second);
    }
    const all = await audit.all('team-a', 10);
    assert.deepEqual(
      all.map(({ evidence }) => evidence),
      ['observed', 'observed', 'reported', 'reported'],
    );
  });
});

const STREAMS_OF_AN_AGENT = [
  'temper-inbox',
  'temper-promotions',
  'temper-wakeups',
  'temper-events',
  'temper-replies',
  'temper-deadletters',
  'KV_temper-sessions',
  'temper-tools',
  'KV_temper-memory',
  'temper-state',
  'KV_temper-acked',
  'KV_temper-deliveries',
];

/** Streams with a subject that contains the UID. */
async function streamsWithData(uid: string): Promise<string[]> {
  const found: string[] = [];
  for (const { name } of desiredStreams()) {
    const { state } = await nats.operator.manager.streams.info(name, { subjects_filter: '>' });
    if (Object.keys(state.subjects ?? {}).some((subject) => subject.split('.').includes(uid))) found.push(name);
  }
  return found;
}

/** One of everything that the promotion of a tool stores. */
async function storePromotion(agentUid: string): Promise<void> {
  const request = aRequest(agentUid, '3');
  const { digest, session } = request;
  await createPromotionRequests(nats.gateway).publish(request, 0);
  await createPanelReviews(nats.operator).request({ ...request, attempt: 'a', facts: {} }, 0);
  const agent = { namespace: 'team-a', name: 'analyst', uid: agentUid };
  const record = { agent, tool: 'double', digest, session, attempt: 'a', since: '2026-01-01T00:00:00Z' };
  const candidate = { ...record, state: 'Candidate', missing: [], notBefore: record.since } as const;
  await createPromotionStates(nats.operator).write(candidate, 0);
  const use = { ...agent, agent: agent.name, session, digest, rootMessage: 'm', input: { value: 1 } };
  const reported = { ...use, evidence: 'reported', succeeded: true, milliseconds: 1, time: record.since } as const;
  await createToolEvidence(nats.gateway).count(agentUid, { digest, namespace: 'team-a' }, 'key', [reported]);
}

describe('the data of a deleted agent', () => {
  it('deleteAgentData removes the data of one agent and keeps that of others', async () => {
    const [deleted, neighbour] = [newUid(), newUid()];
    for (const uid of [deleted, neighbour]) {
      const inbox = createNatsInbox(nats.gateway);
      await inbox.publish(uid, { uid, key: 'rejected' }, newMessage('x'));
      const delivery = await inbox.fetchNext(uid, TIMEOUT_MS, AbortSignal.timeout(TIMEOUT_MS));
      await inbox.reject(delivery?.coordinates ?? assert.fail('no message'), 'TEMPER_TURN_LIMIT', 'x');
      await inbox.publish(uid, { uid, key: 'waits' }, newMessage('x'));
      await createSessionEvents(nats.gateway).append(uid, 's', messageEvent('x', 's'));
      await createSessionEvents(nats.gateway).append(uid, 's', {
        kind: 'reply',
        message: 'm',
        text: 'x',
        finishReason: 'complete',
      });
      await createSessionStore(nats.gateway, uid).append('s', 0, [userMessage('x')]);
      await createNatsMemory(nats.gateway, { uid, namespace: 'team-a' }).set('k', 1);
      await createWakeups(nats.gateway).publish(uid);
      const fires = createTriggerFires(nats.gateway);
      await fires.fire(uid, 'paid', { maxFiresPerHour: 1, cooldownMs: 0 }, 'evt-1');
      await storePromotion(uid);
    }
    assert.deepEqual(await streamsWithData(deleted), STREAMS_OF_AN_AGENT);
    await deleteAgentData(nats.operator, deleted);
    await deleteAgentData(nats.operator, deleted);
    assert.deepEqual(await streamsWithData(deleted), []);
    assert.deepEqual(await streamsWithData(neighbour), STREAMS_OF_AN_AGENT);
    assert.equal((await createSessionStore(nats.gateway, neighbour).load('s')).seq, 1);
    assert.deepEqual(await createNatsInbox(nats.gateway).depth(neighbour), { pending: 1, inFlight: 0 });
  });
});
