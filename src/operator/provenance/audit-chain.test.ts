import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type AuditChainState, keptHeads } from './audit-chain.ts';
import { auditKeyData, auditKeysIn, headKeysOf, rotateAuditKeys } from './audit-key.ts';
import { aSignedStream, DAY_MS, fixture, FORGERIES, KEYS, SIGNAL, START } from './signed-stream.testing.ts';

describe('the provenance chain of an installation', () => {
  it('the leader signs new records, and each later leader verifies all of them', async () => {
    const { heads, stream, leader } = await aSignedStream();
    assert.deepEqual(
      heads.heads?.map(({ sequence, records }) => [sequence, records]),
      [
        [0, 0],
        [10, 10],
        [20, 20],
        [30, 30],
      ],
    );
    assert.deepEqual(await leader().round(SIGNAL), { intact: true, records: 30 } satisfies AuditChainState);
    stream.add(1);
    assert.deepEqual(await leader().round(SIGNAL), { intact: true, records: 31 } satisfies AuditChainState);
  });
  for (const [what, forge] of Object.entries(FORGERIES)) {
    it(`the next full verification detects ${what}, and nothing further is signed`, async () => {
      const made = await aSignedStream();
      forge(made);
      const before = structuredClone(made.heads.heads);
      for (const leader of [made.leader(), made.leader()]) {
        const state = await leader.round(SIGNAL);
        assert.equal(state.intact, false);
      }
      assert.deepEqual(made.heads.heads, before);
    });
  }
  it('a leader that runs verifies all records again after a day', async () => {
    const made = await aSignedStream();
    const chain = made.leader();
    assert.ok((await chain.round(SIGNAL)).intact);
    FORGERIES['an edited byte of record 7']?.(made);
    made.time.ms += DAY_MS - 1;
    assert.ok((await chain.round(SIGNAL)).intact);
    made.time.ms += 1;
    assert.equal((await chain.round(SIGNAL)).intact, false);
  });
  it('records that passed their age are no gap, also when a head was made between them', async () => {
    const made = await aSignedStream();
    made.time.ms = START + 92 * DAY_MS;
    for (const first of [4, 15, 31]) {
      made.stream.records = made.stream.records.filter(({ seq }) => seq >= first);
      assert.ok((await made.leader().round(SIGNAL)).intact, `from ${first}`);
    }
    made.stream.add(5);
    assert.deepEqual(await made.leader().round(SIGNAL), { intact: true, records: 35 });
    assert.deepEqual(
      made.heads.heads?.map(({ sequence }) => sequence),
      [30, 35],
    );
  });
  it('a chain that begins on an old stream, and one whose leader was away, take no expired record for a removed one', async () => {
    const made = fixture();
    const expire = () => {
      const oldest = made.time.ms - 90 * DAY_MS;
      made.stream.records = made.stream.records.filter(({ time }) => time.getTime() >= oldest);
    };
    for (let day = 0; day < 80; day += 1) {
      made.stream.add(3);
      made.time.ms += DAY_MS;
      if (day === 20) assert.ok((await made.leader().round(SIGNAL)).intact);
    }
    // An administrator deletes the ConfigMap.
    made.heads.heads = undefined;
    assert.ok((await made.leader().round(SIGNAL)).intact);
    for (let day = 80; day < 200; day += 1) {
      made.stream.add(3);
      made.time.ms += DAY_MS;
      expire();
      const isLeaderAway = day > 100 && day < 115;
      if (isLeaderAway) continue;
      const state = await made.leader().round(SIGNAL);
      assert.ok(state.intact, `day ${day}: ${JSON.stringify(state)}`);
    }
    assert.ok((made.heads.heads ?? []).length <= 92);
    made.stream.records = made.stream.records.slice(30);
    assert.equal((await made.leader().round(SIGNAL)).intact, false);
  });
  it('the clock of a server that goes back adds no heads', async () => {
    const made = fixture();
    made.stream.add(40);
    for (const [index, record] of made.stream.records.entries())
      record.time = new Date(START + (index % 2 === 0 ? 0 : DAY_MS));
    assert.ok((await made.leader().round(SIGNAL)).intact);
    assert.equal(made.heads.heads?.length, 3);
  });
  it('two leaders that sign at once do not fork the chain, because one of them fails', async () => {
    const made = await aSignedStream();
    made.stream.add(2);
    const results = await Promise.allSettled([made.leader().round(SIGNAL), made.leader().round(SIGNAL)]);
    assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
    assert.ok((await made.leader().round(SIGNAL)).intact);
  });
  it('one head per day is kept', async () => {
    const made = fixture();
    const chain = made.leader();
    for (let hour = 0; hour < 100; hour += 1) {
      made.stream.add(1);
      assert.ok((await chain.round(SIGNAL)).intact);
      made.time.ms += 3_600_000;
    }
    assert.equal(made.heads.heads?.length, 6);
    assert.deepEqual(keptHeads(made.heads.heads ?? [], await made.stream.bounds()), made.heads.heads);
  });
  it('a key signs for ninety days, and older heads stay verifiable', () => {
    const stored = auditKeysIn(auditKeyData(KEYS), new Date(START + DAY_MS));
    assert.deepEqual(stored, KEYS);
    assert.equal(rotateAuditKeys(stored, new Date(START + 89 * DAY_MS)), stored);
    const rotated = rotateAuditKeys(stored, new Date(START + 90 * DAY_MS));
    const old = headKeysOf(KEYS).sign('text');
    assert.ok(headKeysOf(rotated).verify('text', old.key, old.signature));
    assert.notEqual(headKeysOf(rotated).sign('text').key, old.key);
    assert.ok(!headKeysOf(rotated).verify('texts', old.key, old.signature));
    assert.equal(auditKeysIn({}, new Date(START)), undefined);
  });
});
