import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TemperError } from '../lib/errors.ts';
import { newResident, type Resident } from '../nats/residents/resident.ts';
import { clockAt } from '../../test/support/clocks.ts';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { type DataGcRules, DataGarbageCollector } from './data-gc.ts';
import type { StoredAgent } from './kube/types.ts';

const HOUR_MS = 3_600_000;
const START = Date.parse('2026-11-22T10:00:00Z');

/** Entries in memory, and a record of what the collector does. */
function setup(changes: Partial<DataGcRules> = {}) {
  const entries = new Map<string, Resident>();
  const [cached, live, done] = [new Set<string>(), new Set<string>(), [] as string[]];
  const time = { now: START };
  const failing = new Set<string>();
  const errors: unknown[] = [];
  const connection: { since: Date | undefined } = { since: undefined };
  const collector = new DataGarbageCollector({
    agentActivity: {
      async *residents() {
        yield* entries.values();
      },
      addResident: async (agent, release) => {
        entries.set(agent.uid, newResident(agent, release, new Date(time.now)));
      },
      markMissing: async ({ uid }, missingSince) => {
        const entry = entries.get(uid) ?? assert.fail('no entry');
        entries.set(uid, { ...entry, missingSince });
      },
      recordDeletion: async ({ uid }) => {
        if (failing.has(uid)) throw new TemperError('TEMPER_BUS_FULL', 'the namespace has all of its records');
        done.push(`record ${uid}`);
      },
      unavailableSince: () => connection.since,
      deleteAgentData: async ({ uid }) => {
        done.push(`delete ${uid}`);
        entries.delete(uid);
      },
    },
    agents: () => [...cached].map((uid) => agentOf(uid)),
    exists: async ({ uid }) => live.has(uid),
    clock: clockAt(() => time.now),
    log: { info: () => undefined, error: ({ agentUid }: { agentUid: string }) => errors.push(agentUid) } as never,
    rules: { release: 'mine', namespaces: undefined, waitMs: 24 * HOUR_MS, dryRun: false, ...changes },
  });
  const add = (uid: string, release = 'mine', namespace = 'team-a'): void => {
    entries.set(uid, newResident({ namespace, name: uid, uid }, release, new Date(START)));
  };
  const round = async (hours = 0) => {
    time.now += hours * HOUR_MS;
    return collector.collect(NEVER_ABORTED);
  };
  return { entries, cached, live, done, add, round, failing, errors, connection };
}

function agentOf(uid: string): StoredAgent {
  return { metadata: { namespace: 'team-a', name: uid, uid }, status: { queue: 1 } } as unknown as StoredAgent;
}

describe('DataGarbageCollector', () => {
  it('the data of a deleted agent is deleted after the waiting time, with its audit record first', async () => {
    const { add, round, done, entries } = setup();
    add('gone');
    assert.equal((await round()).missing, 1);
    assert.equal((await round(23)).missing, 1);
    assert.deepEqual(done, []);
    assert.equal((await round(1)).deleted, 1);
    assert.deepEqual(done, ['record gone', 'delete gone']);
    assert.equal(entries.size, 0);
  });
  it('a first look never deletes, however short the waiting time is', async () => {
    const { add, round, done } = setup({ waitMs: 0 });
    add('gone');
    await round();
    assert.deepEqual(done, []);
    assert.equal((await round()).deleted, 1);
  });
  it('an agent that the API server knows keeps its data when the cache lacks it', async () => {
    const { add, live, round, done } = setup();
    add('slow');
    live.add('slow');
    assert.equal((await round()).present, 1);
    assert.equal((await round(48)).present, 1);
    assert.deepEqual(done, []);
  });
  it('an agent that exists again before the second look starts a new waiting time when it is deleted', async () => {
    const { add, live, round, done } = setup();
    add('a');
    await round();
    live.add('a');
    assert.equal((await round(24)).present, 1);
    live.delete('a');
    assert.equal((await round(1)).missing, 1);
    assert.equal((await round(23)).missing, 1);
    assert.deepEqual(done, []);
  });
  it('entries of another release and of namespaces that are not watched are left alone', async () => {
    const { add, round, done, entries } = setup({ namespaces: ['team-a'] });
    add('theirs', 'other');
    add('elsewhere', 'mine', 'team-b');
    assert.equal((await round()).foreign, 2);
    assert.equal((await round(48)).foreign, 2);
    assert.deepEqual(done, []);
    assert.ok([...entries.values()].every(({ missingSince }) => missingSince === undefined));
  });
  it('an agent whose deletion cannot be recorded is counted and keeps its data, and the agents after it are deleted', async () => {
    const { add, round, done, failing, errors, entries } = setup();
    for (const uid of ['full', 'next']) add(uid);
    await round();
    failing.add('full');
    assert.partialDeepStrictEqual(await round(24), { failed: 1, deleted: 1 });
    assert.deepEqual([done, errors, [...entries.keys()]], [['record next', 'delete next'], ['full'], ['full']]);
    failing.clear();
    assert.partialDeepStrictEqual(await round(1), { failed: 0, deleted: 1 });
  });
  it('a round ends when NATS is unreachable', async () => {
    const { add, round, done, failing, connection } = setup();
    for (const uid of ['full', 'next']) add(uid);
    await round();
    failing.add('full');
    connection.since = new Date(START);
    await assert.rejects(round(24), { code: 'TEMPER_BUS_FULL' });
    assert.deepEqual(done, []);
  });
  it('a dry run counts what it would delete and deletes nothing', async () => {
    const { add, round, done } = setup({ dryRun: true });
    add('gone');
    await round();
    assert.equal((await round(24)).wouldDelete, 1);
    assert.deepEqual(done, []);
  });
  it('an agent of an older release with a queue gets an entry', async () => {
    const { cached, round, entries } = setup();
    cached.add('old');
    await round();
    assert.equal(entries.get('old')?.release, 'mine');
  });
});
