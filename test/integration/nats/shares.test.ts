import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import { createDeadLetters } from '../../../src/nats/dead-letters/dead-letters.ts';
import { createNatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { createSessionEvents } from '../../../src/nats/session-events.ts';
import { StreamShares, type Trimmed } from '../../../src/nats/shares/stream-shares.ts';
import { messageEvent, newMessage, newUid } from '../../support/nats/nats-fixture.ts';
import { useNats } from '../../support/nats/nats-suite.ts';
import { poll } from '../../support/poll.ts';

const STREAM_BYTES = 4_000_000;
/** What one gateway lets an agent and a namespace have of such a stream. */
const [AGENT_BYTES, NAMESPACE_BYTES] = [(0.1 * STREAM_BYTES) / 4, (0.5 * STREAM_BYTES) / 4];
const STREAMS = ['temper-events', 'temper-replies', 'temper-reports', 'temper-activity', 'temper-deadletters'];

const nats = useNats();

/** A gateway whose agents are in the namespaces of the map. Knows the sizes of all streams. */
async function setup(namespaces: ReadonlyMap<string, string>) {
  const connection = await nats.bus.connect('gateway');
  const trimmed: Trimmed[] = [];
  const errors: unknown[] = [];
  const shares = new StreamShares({
    connection,
    namespacePercent: 50,
    namespaceOf: (uid) => namespaces.get(uid),
    onTrimmed: (one) => trimmed.push(one),
    onError: (error) => errors.push(error),
  });
  connection.onPublished((subject, bytes, sequence) => shares.count(subject, bytes, sequence));
  const known = newUid();
  await poll('the shares know the sizes of the streams', async () => {
    for (const stream of ['events', 'replies', 'reports.x', 'activity.x', 'deadletters'])
      connection.published(`temper.${stream}.${known}.x`, STREAM_BYTES, 1);
    await shares.idle();
    return new Set(trimmed.map(({ stream }) => stream)).size === STREAMS.length;
  });
  trimmed.length = 0;
  return { connection, shares, trimmed, errors };
}

const bytesOf = (lines: readonly unknown[]): number => Buffer.byteLength(JSON.stringify(lines));

describe('the shares of agents in streams that remove their oldest messages', () => {
  before(async () => {
    for (const stream of STREAMS) await nats.operator.manager.streams.update(stream, { max_bytes: STREAM_BYTES });
  });

  it('an agent that floods the events removes its own oldest events, and none of others', async () => {
    const [victim, hostile] = [newUid(), newUid()];
    const { connection, shares, trimmed, errors } = await setup(
      new Map([
        [victim, 'a'],
        [hostile, 'b'],
      ]),
    );
    const events = createSessionEvents(connection);
    await events.append(victim, 's', messageEvent('kept'));
    // More than the whole stream, over many sessions.
    for (let index = 0; index < 60; index += 1)
      await events.append(hostile, `s-${index % 7}`, messageEvent(`${index} ${'x'.repeat(100_000)}`));
    await shares.idle();
    assert.equal((await events.read(victim, 's', 0, 10)).length, 1);
    const kept = await Promise.all(Array.from({ length: 7 }, (_, index) => events.read(hostile, `s-${index}`, 0, 100)));
    assert.ok(bytesOf(kept) <= AGENT_BYTES + 110_000, `${bytesOf(kept)} bytes`);
    assert.match(JSON.stringify(kept), /"59 x/);
    assert.deepEqual(trimmed[0], { stream: 'temper-events', scope: 'agent', namespace: 'b', agentUid: hostile });
    assert.deepEqual(errors, []);
  });

  it('a namespace whose agents each stay within their share removes its own oldest events, and none of others', async () => {
    const victim = newUid();
    const hostile = Array.from({ length: 100 }, () => newUid());
    const { connection, shares, trimmed } = await setup(
      new Map([[victim, 'a'], ...hostile.map((uid): [string, string] => [uid, 'b'])]),
    );
    const events = createSessionEvents(connection);
    await events.append(victim, 's', messageEvent('kept'));
    for (const uid of hostile) await events.append(uid, 's', messageEvent('x'.repeat(45_000)));
    await shares.idle();
    assert.equal((await events.read(victim, 's', 0, 10)).length, 1);
    assert.deepEqual(new Set(trimmed.map(({ scope, namespace }) => `${scope} ${namespace}`)), new Set(['namespace b']));
    const kept = await Promise.all(hostile.map((uid) => events.read(uid, 's', 0, 10)));
    assert.ok(bytesOf(kept) <= NAMESPACE_BYTES + 50_000, `${bytesOf(kept)} bytes`);
    assert.equal(kept.at(-1)?.length, 1, 'the newest stays');
  });

  it('replies, reports and dead letters of one agent remove none of others', async () => {
    const [victim, hostile] = [newUid(), newUid()];
    const { connection, shares, trimmed } = await setup(
      new Map([
        [victim, 'a'],
        [hostile, 'b'],
      ]),
    );
    const [events, audit, inbox] = [
      createSessionEvents(connection),
      createNatsAudit(connection),
      createNatsInbox(connection),
    ];
    const store = async (uid: string, namespace: string, index: number, size: number): Promise<void> => {
      const text = 'x'.repeat(size);
      await events.append(uid, 's', { kind: 'reply', message: `m-${index}`, text, finishReason: 'complete' });
      const record = { action: 'tool.called', actor: 'agent/a', evidence: 'reported', subject: 'x', facts: { text } };
      await audit.append({ namespace, agentUid: uid }, { ...record, evidence: 'reported' });
      await audit.append({ namespace, agentUid: uid }, { ...record, action: 'tool.brokered', evidence: 'observed' });
      await inbox.publish(uid, { uid, key: `k-${index}` }, newMessage(text));
      const delivery = await inbox.fetchNext(uid, 60_000, AbortSignal.timeout(60_000));
      await inbox.reject(delivery?.coordinates ?? assert.fail('no message'), 'TEMPER_TURN_LIMIT', 'x');
    };
    await store(victim, 'a', 0, 10);
    for (let index = 0; index < 30; index += 1) await store(hostile, 'b', index, 150_000);
    await shares.idle();
    const replies = (await events.read(victim, 's', 0, 10)).filter(({ kind }) => kind === 'reply');
    assert.equal(replies.length, 1);
    assert.equal((await audit.read('a', 'reported', 0, 10)).length, 1);
    const work = async (namespace: string): Promise<number> =>
      (await audit.all(namespace, 100)).filter(({ action }) => action === 'tool.brokered').length;
    assert.equal(await work('a'), 1);
    assert.ok((await work('b')) <= 3);
    assert.equal(await createDeadLetters(connection).count(victim), 1);
    const [read, letters] = [
      await audit.read('b', 'reported', 0, 100),
      await createDeadLetters(connection).count(hostile),
    ];
    assert.ok(
      read.length <= 3 && letters <= 3,
      `${read.length} reports and ${letters} dead letters of the hostile agent`,
    );
    assert.deepEqual(new Set(trimmed.map(({ agentUid }) => agentUid)), new Set([hostile]));
    assert.deepEqual(new Set(trimmed.map(({ stream }) => stream)), new Set(STREAMS));
  });
});
