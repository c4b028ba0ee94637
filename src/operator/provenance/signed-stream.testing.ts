import assert from 'node:assert/strict';
import { type SignedHead, signHead, type StreamRecord } from '../../audit/stream-chain.ts';
import type { AuditStream } from '../../nats/audit-stream.ts';
import { AuditChain } from './audit-chain.ts';
import { type AuditKeys, headKeysOf, rotateAuditKeys } from './audit-key.ts';
import type { HeadStore, StoredHeads } from './head-store.ts';

export const DAY_MS = 24 * 3_600_000;
export const START = Date.parse('2026-11-01T00:00:00.000Z');
export const KEYS = rotateAuditKeys(undefined, new Date(START));
export const SIGNAL = new AbortController().signal;

/** A stream that a test may change as an administrator of its store can. */
interface FakeStream extends AuditStream {
  records: StreamRecord[];
  lastSequence: number;
  add(count: number, namespace?: string): void;
}

function aStream(time: { ms: number }): FakeStream {
  const stream: FakeStream = {
    records: [],
    lastSequence: 0,
    add(count, namespace = 'team-a') {
      for (let index = 0; index < count; index += 1) {
        stream.lastSequence += 1;
        const seq = stream.lastSequence;
        const data = Buffer.from(JSON.stringify({ action: 'tool.called', subject: `sha256:${seq}` }));
        stream.records.push({ seq, subject: `temper.audit.${namespace}`, time: new Date(time.ms), data });
      }
    },
    async bounds() {
      const firstSequence = stream.records[0]?.seq ?? stream.lastSequence + 1;
      return { firstSequence, lastSequence: stream.lastSequence, maxAgeMs: 90 * DAY_MS };
    },
    async *read(from, through) {
      yield* stream.records.filter(({ seq }) => seq >= from && seq <= through);
    },
  };
  return stream;
}

/** Heads with the optimistic concurrency of an API server. */
function aHeadStore(): HeadStore & { heads: SignedHead[] | undefined } {
  let version = 0;
  const store: HeadStore & { heads: SignedHead[] | undefined } = {
    heads: undefined,
    read: async (): Promise<StoredHeads | undefined> =>
      store.heads === undefined ? undefined : { heads: [...store.heads], resourceVersion: String(version) },
    async write({ heads }, known) {
      if (known !== undefined && known.resourceVersion !== String(version)) throw new Error('409 Conflict');
      version += 1;
      store.heads = [...heads];
    },
  };
  return store;
}

export function fixture(keys: AuditKeys = KEYS) {
  const time = { ms: START };
  const clock = { now: () => new Date(time.ms), monotonic: () => time.ms, sleep: async () => undefined };
  const [stream, heads] = [aStream(time), aHeadStore()];
  const leader = () => new AuditChain({ stream, heads, clock, keys: async () => headKeysOf(keys) });
  return { time, stream, heads, leader };
}
type Fixture = ReturnType<typeof fixture>;

/** Three rounds over thirty records of two namespaces. */
export async function aSignedStream(): Promise<Fixture> {
  const made = fixture();
  const chain = made.leader();
  for (const namespace of ['team-a', 'team-b', 'team-a']) {
    made.stream.add(10, namespace);
    assert.ok((await chain.round(SIGNAL)).intact);
    made.time.ms += DAY_MS;
  }
  return made;
}

const at = (stream: FakeStream, seq: number): StreamRecord => {
  const found = stream.records.find((record) => record.seq === seq);
  assert.ok(found);
  return found;
};

export const FORGERIES: Record<string, (made: Fixture) => void> = {};
for (const seq of [1, 7, 15, 30]) {
  FORGERIES[`an edited byte of record ${seq}`] = ({ stream }) => {
    const record = at(stream, seq);
    record.data = Buffer.from(record.data.toString().replace('called', 'callee'));
  };
  FORGERIES[`another namespace of record ${seq}`] = ({ stream }) => {
    at(stream, seq).subject = 'temper.audit.team-c';
  };
  FORGERIES[`another time of record ${seq}`] = ({ stream }) => {
    at(stream, seq).time = new Date(0);
  };
  FORGERIES[`the content of record ${seq} of another tool`] = ({ stream }) => {
    at(stream, seq).data = at(stream, 22).data;
  };
  FORGERIES[`record ${seq} removed`] = ({ stream }) => {
    stream.records = stream.records.filter((record) => record.seq !== seq);
  };
}
for (const count of [2, 10, 12, 29])
  FORGERIES[`the first ${count} records removed before their age`] = ({ stream }) => {
    stream.records = stream.records.slice(count);
  };
for (const count of [1, 5, 15, 30])
  FORGERIES[`the last ${count} records cut off`] = ({ stream }) => {
    stream.records = stream.records.slice(0, 30 - count);
    stream.lastSequence -= count;
  };
Object.assign(FORGERIES, {
  'an old copy of the stream that grew again with other records': ({ stream }: Fixture) => {
    stream.records = stream.records.slice(0, 20);
    stream.lastSequence = 20;
    stream.add(15, 'team-b');
  },
  'a new stream': ({ stream }: Fixture) => {
    stream.records = [];
    stream.lastSequence = 0;
    stream.add(3);
  },
  'two records in the other order': ({ stream }: Fixture) => {
    const [one, two] = [at(stream, 11), at(stream, 12)];
    [one.data, two.data] = [two.data, one.data];
  },
  'a record inserted and the later ones moved': ({ stream }: Fixture) => {
    const moved = stream.records.slice(10).map((record) => ({ ...record, seq: record.seq + 1 }));
    stream.records = [...stream.records.slice(0, 10), { ...at(stream, 3), seq: 11 }, ...moved];
    stream.lastSequence += 1;
  },
  'a head of another key': ({ heads }: Fixture) => {
    const other = headKeysOf(rotateAuditKeys(undefined, new Date(START)));
    const last = heads.heads?.at(-1);
    assert.ok(last);
    heads.heads?.splice(-1, 1, signHead(last, last, other));
  },
  'a head with another digest': ({ heads }: Fixture) => {
    Object.assign(heads.heads?.at(-1) ?? {}, { digest: 'sha256:0' });
  },
  'a head with another time': ({ heads }: Fixture) => {
    Object.assign(heads.heads?.at(-1) ?? {}, { time: '2026-01-01T00:00:00.000Z' });
  },
  'a head whose last record has another time': ({ heads }: Fixture) => {
    Object.assign(heads.heads?.at(-1) ?? {}, { recordedAt: '2026-01-01T00:00:00.000Z' });
  },
  'a head without the time of its last record': ({ heads }: Fixture) => {
    delete heads.heads?.at(-1)?.recordedAt;
  },
  'heads in another order': ({ heads }: Fixture) => {
    heads.heads?.reverse();
  },
  'a head twice': ({ heads }: Fixture) => {
    heads.heads?.push(...heads.heads.slice(-1));
  },
} satisfies Record<string, (made: Fixture) => void>);
