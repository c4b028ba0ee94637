import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bucketStreams, messageTtlOf } from './buckets.ts';
import { BUCKETS, bucketSubject, type BucketName, QUEUES } from './names.ts';
import { desiredStreams } from './topology.ts';

/** Filled by the platform, so that no tenant decides when they are full. */
const PLATFORM: readonly BucketName[] = [
  BUCKETS.promotionStates,
  BUCKETS.verifications,
  BUCKETS.pendingCalls,
  BUCKETS.childRequests,
  BUCKETS.health,
  BUCKETS.residents,
  BUCKETS.schedules,
  BUCKETS.triggers,
  BUCKETS.acceptedEvents,
];

describe('the streams of buckets', () => {
  it('every bucket has exactly one stream, and its subjects are those of no other', () => {
    const subjects = bucketStreams().flatMap((stream) => stream.subjects);
    assert.deepEqual(
      subjects.toSorted(),
      Object.values(BUCKETS)
        .map((bucket) => bucketSubject(bucket, '>'))
        .toSorted(),
    );
  });

  it('buckets that tenants fill share no stream with those of the platform', () => {
    const isPlatform = (subject: string): boolean => PLATFORM.some((bucket) => subject === bucketSubject(bucket, '>'));
    for (const { name, subjects } of bucketStreams())
      assert.equal(new Set(subjects.map(isPlatform)).size, 1, `${name}: ${subjects.join(', ')}`);
  });

  it('a value has the age of its bucket, by its stream or by its own time to live', () => {
    assert.equal(messageTtlOf(bucketSubject(BUCKETS.verifications, 'pod.work.1')), '24h');
    assert.equal(messageTtlOf(bucketSubject(BUCKETS.promotionStates, 'uid.digest')), '4320h');
    assert.equal(messageTtlOf(bucketSubject(BUCKETS.residents, 'owner')), undefined);
    assert.equal(messageTtlOf(bucketSubject(BUCKETS.sessions, 'uid.s.head')), undefined);
    assert.equal(messageTtlOf('temper.inbox.uid'), undefined);
    for (const { hasMessageTtl, days } of bucketStreams()) assert.ok(!hasMessageTtl || days === 0);
  });

  it('the streams of an installation and the consumers of its queues are at most twenty Raft groups', () => {
    const groups = [
      ...desiredStreams().map(({ name }) => name),
      ...Object.values(QUEUES).map(({ consumer }) => consumer),
    ];
    assert.equal(new Set(groups).size, groups.length);
    assert.ok(groups.length <= 20, `${groups.length}: ${groups.join(', ')}`);
  });
});
