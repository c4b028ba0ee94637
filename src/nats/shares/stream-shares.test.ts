import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { StreamShares, type Trimmed } from './stream-shares.ts';

interface Purge {
  stream: string;
  filter: string;
  seq: number;
}

/** A connection to streams of 4,000 bytes: agents have a share of 100 bytes in each, namespaces one of 500. */
function setup({ fail = false }: { fail?: boolean } = {}) {
  const purges: Purge[] = [];
  const trimmed: Trimmed[] = [];
  const errors: unknown[] = [];
  const namespaces = new Map([
    ['uid-a', 'team-a'],
    ['uid-b', 'team-a'],
  ]);
  let since = new Date(0);
  const connection = {
    clock: new FakeClock(),
    state: () => ({ connected: true, since }),
    request: (work: () => Promise<unknown>) => work(),
    manager: {
      streams: {
        info: async () => ({ config: { max_bytes: 4_000 } }),
        purge: async (stream: string, options: { filter: string; seq: number }) => {
          if (fail) throw new Error('no answer');
          purges.push({ stream, ...options });
        },
      },
    },
  } as unknown as JetStreamConnection;
  const shares = new StreamShares({
    connection,
    namespacePercent: 50,
    namespaceOf: (uid) => namespaces.get(uid),
    onTrimmed: (one) => trimmed.push(one),
    onError: (error) => errors.push(error),
  });
  const store = async (subject: string, bytes: number, sequence: number): Promise<void> => {
    shares.count(subject, bytes, sequence);
    await shares.idle();
  };
  const reconnect = (): void => {
    since = new Date(since.getTime() + 1);
  };
  return { store, reconnect, purges, trimmed, errors };
}

/** The first message of a stream only asks for its size. */
async function ready(options?: { fail?: boolean }) {
  const all = setup(options);
  for (const subject of ['temper.events.x.s', 'temper.reports.n.x', '$KV.temper-acked.x.m'])
    await all.store(subject, 0, 1);
  await new Promise((resolve) => setImmediate(resolve));
  return all;
}

describe('shares of streams', () => {
  it('a full half of the share of an agent removes what is older', async () => {
    const { store, purges } = await ready();
    await store('temper.events.uid-a.s', 50, 10);
    await store('temper.events.uid-a.t', 50, 11);
    const filter = 'temper.events.uid-a.>';
    assert.deepEqual(purges, [
      { stream: 'temper-events', filter, seq: 10 },
      { stream: 'temper-events', filter, seq: 11 },
    ]);
  });

  it('the agent is found in the subjects of every stream', async () => {
    const { store, purges } = await ready();
    await store('temper.reports.team-a.uid-a', 50, 5);
    await store('$KV.temper-acked.uid-a.msg-1', 50, 6);
    assert.deepEqual(
      purges.map(({ filter }) => filter),
      ['temper.reports.*.uid-a', '$KV.temper-acked.uid-a.>'],
    );
  });

  it('streams that reject when they are full, and unknown subjects, are not counted', async () => {
    const { store, purges } = await ready();
    for (const subject of ['temper.inbox.uid-a', 'temper.audit.team-a', '$KV.temper-memory.uid-a.k', 'other'])
      await store(subject, 1_000, 9);
    assert.deepEqual(purges, []);
  });

  it('an agent without a namespace is held to the share of an agent', async () => {
    const { store, trimmed } = await ready();
    await store('temper.events.uid-gone.s', 4_000, 9);
    assert.deepEqual(
      trimmed.map(({ scope }) => scope),
      ['agent'],
    );
  });

  it('the counts start again after a reconnect, because the sequences may be those of another store', async () => {
    const { store, reconnect, purges } = await ready();
    await store('temper.events.uid-a.s', 49, 1_000_000);
    reconnect();
    await store('temper.events.uid-a.s', 49, 5);
    await store('temper.events.uid-a.s', 1, 6);
    assert.deepEqual(
      purges.map(({ seq }) => seq),
      [5],
    );
  });

  it('a removal that fails is reported, and the next one removes more', async () => {
    const { store, errors, trimmed } = await ready({ fail: true });
    await store('temper.events.uid-a.s', 50, 10);
    assert.deepEqual([errors.length, trimmed.length], [1, 0]);
  });
});
