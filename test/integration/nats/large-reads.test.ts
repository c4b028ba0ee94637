import assert from 'node:assert/strict';
import { it } from 'node:test';
import { BUCKETS, bucketStream, bucketSubject } from '../../../src/nats/jetstream/names.ts';
import { publish } from '../../../src/nats/jetstream/publish.ts';
import { countMessages, lastMessage, lastMessages, purge } from '../../../src/nats/jetstream/stream-reader.ts';
import { newUid } from '../../support/nats/nats-fixture.ts';
import { useNats } from '../../support/nats/nats-suite.ts';

const nats = useNats();
const STREAM = bucketStream(BUCKETS.memory);
const LARGE = 'x'.repeat(190_000);

/** Stores so many large values of a new agent. */
async function store(count: number): Promise<{ uid: string; subjects: string[] }> {
  const uid = newUid();
  const subjects = Array.from({ length: count }, (_, index) => bucketSubject(BUCKETS.memory, `${uid}.k${index}`));
  for (const subject of subjects) await publish(nats.gateway, subject, LARGE);
  return { uid, subjects };
}

it('values of many subjects are read completely, however large they are together', async () => {
  const { uid, subjects } = await store(40);
  const all = bucketSubject(BUCKETS.memory, `${uid}.*`);
  const found = await lastMessages(nats.gateway, STREAM, [all]);
  assert.deepEqual(
    found?.map(({ subject }) => subject),
    subjects,
  );
});

it('a value that is written again while the others are read is found once', async () => {
  const { uid, subjects } = await store(12);
  const all = bucketSubject(BUCKETS.memory, `${uid}.*`);
  const [first = ''] = subjects;
  const reading = lastMessages(nats.gateway, STREAM, [all]);
  await publish(nats.gateway, first, 'new');
  const found = (await reading) ?? [];
  assert.equal(found.filter(({ subject }) => subject === first).length, 1);
  assert.deepEqual(found.map(({ subject }) => subject).toSorted(), subjects.toSorted());
});

it('hundreds of large values that are read at once do not end the connection of a process that is late', async () => {
  const { subjects } = await store(4);
  const connection = await nats.bus.connect('gateway');
  const since = connection.state();
  const reads = Array.from({ length: 200 }, (_, index) =>
    lastMessage(connection, STREAM, subjects[index % subjects.length] ?? ''),
  );
  // The requests leave with the first turns of the event loop; then nothing reads the responses for a while.
  await new Promise((resolve) => setImmediate(resolve));
  for (const until = performance.now() + 500; performance.now() < until; );
  const found = await Promise.all(reads);
  assert.ok(found.every((message) => message !== undefined && message.data.byteLength > LARGE.length));
  assert.deepEqual(connection.state(), since);
  assert.doesNotMatch(await nats.bus.server.log(), /Slow Consumer/);
});

it('a number of messages is exact, and hundreds of agents that ask for it at once do not end the connection of a process that is late', async () => {
  const uid = newUid();
  const names = Array.from({ length: 600 }, (_, index) => `${index}`.padStart(64, 'k'));
  const records = names.map((name) => bucketSubject(BUCKETS.memory, `${uid}.${name}`));
  await Promise.all(records.map((subject) => publish(nats.gateway, subject, 1)));
  await publish(nats.gateway, records[0] ?? '', 2);
  await purge(nats.gateway, STREAM, records[1] ?? '');
  const connection = await nats.bus.connect('gateway');
  const since = connection.state();
  const counts = Array.from({ length: 400 }, () =>
    countMessages(connection, STREAM, bucketSubject(BUCKETS.memory, `${uid}.*`)),
  );
  await new Promise((resolve) => setImmediate(resolve));
  for (const until = performance.now() + 500; performance.now() < until; );
  assert.deepEqual(new Set(await Promise.all(counts)), new Set([599]));
  assert.equal(await countMessages(connection, STREAM, bucketSubject(BUCKETS.memory, `${newUid()}.*`)), 0);
  assert.deepEqual(connection.state(), since);
  assert.doesNotMatch(await nats.bus.server.log(), /Slow Consumer/);
});
