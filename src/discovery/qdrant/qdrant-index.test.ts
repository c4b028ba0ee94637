import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { vectorIndexContract } from '../../../test/contracts/vector-index.ts';
import { callOptions } from '../../../test/support/call-options.ts';
import { conceptVector } from '../../../test/support/concept-vectors.ts';
import { type QdrantServer, startQdrantServer } from '../../../test/support/qdrant-server.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import type { DiscoveryEntry } from '../entry.ts';
import { LexicalIndex } from '../lexical/lexical-index.ts';
import { UNOBSERVED } from '../vector/embed-texts.ts';
import { HybridSearch } from '../vector/hybrid-search.ts';
import { unitVectors } from '../vector/unit-vectors.ts';
import { QdrantVectorIndex, type QdrantIndexOptions } from './qdrant-index.ts';

const SPACE = { namespace: 'team-a', dimensions: 2 };
const ENTRY = { id: '0'.repeat(32), vector: Float32Array.of(1, 0) };
const QUERY = [Float32Array.of(1, 0)];
const FILTER = { ids: [ENTRY.id], most: 5 };

const isUnavailable = (error: unknown): boolean => isTemperError(error, 'TEMPER_VECTORS_UNAVAILABLE');

describe('vectors in Qdrant', () => {
  let server: QdrantServer;
  let now = 0;
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + now };

  before(async () => {
    server = await startQdrantServer();
  });
  after(() => server[Symbol.asyncDispose]());
  beforeEach(() => {
    server.failure = undefined;
    server.key = undefined;
    server.collections.clear();
  });

  const indexOf = (changes: Partial<QdrantIndexOptions> = {}): QdrantVectorIndex =>
    new QdrantVectorIndex({
      url: server.url,
      key: async () => undefined,
      prefix: 'temper',
      model: 'tei/bge',
      clock,
      timeoutMs: 30_000,
      ...changes,
    });

  vectorIndexContract('in Qdrant over HTTP', async () => indexOf({ prefix: ulids.next('temper') }));

  const real = process.env['QDRANT_URL'];
  if (real !== undefined)
    vectorIndexContract('in the server of QDRANT_URL', async () =>
      indexOf({
        url: real,
        key: async () => process.env['QDRANT_API_KEY'],
        prefix: ulids.next('temper-test').toLowerCase(),
      }),
    );

  it('another gateway finds the vectors, so it does not embed them again', async () => {
    await indexOf().upsert(SPACE, [ENTRY]);
    const other = indexOf();
    assert.deepEqual(await other.missing(SPACE, [ENTRY.id]), []);
    assert.equal((await other.query(SPACE, QUERY, FILTER))[0]?.length, 1);
    const before = server.requests.length;
    await other.missing(SPACE, [ENTRY.id]);
    assert.equal(server.requests.length, before, 'what is known needs no request');
  });

  it('models and releases have collections of their own', async () => {
    await indexOf().upsert(SPACE, [ENTRY]);
    assert.deepEqual(await indexOf({ model: 'tei/other' }).missing(SPACE, [ENTRY.id]), [ENTRY.id]);
    assert.deepEqual(await indexOf({ prefix: 'other' }).missing(SPACE, [ENTRY.id]), [ENTRY.id]);
  });

  it('a server that lost points or collections gets them again', async () => {
    const index = indexOf();
    await index.upsert(SPACE, [ENTRY]);
    for (const lose of [
      () => server.collections.forEach(({ points }) => points.clear()),
      () => server.collections.clear(),
    ]) {
      lose();
      await index.query(SPACE, QUERY, FILTER).catch((error: unknown) => assert.ok(isUnavailable(error)));
      now += 60_000;
      assert.deepEqual(await index.missing(SPACE, [ENTRY.id]), [ENTRY.id]);
      await index.upsert(SPACE, [ENTRY]);
      assert.equal((await index.query(SPACE, QUERY, FILTER))[0]?.length, 1);
    }
  });

  it('a server that lost a part of the points gets them again after ten minutes', async () => {
    const index = indexOf();
    const entries = Array.from({ length: 300 }, (_, number) => ({
      id: String(number).padStart(32, '0'),
      vector: Float32Array.of(1, number),
    }));
    const ids = entries.map(({ id }) => id);
    await index.upsert(SPACE, entries);
    const [collection] = [...server.collections.values()];
    const lost = [...(collection?.points.keys() ?? [])].filter((_, at) => at % 3 !== 0);
    for (const point of lost) collection?.points.delete(point);
    assert.equal((await index.query(SPACE, QUERY, { ids, most: 100 }))[0]?.length, 100, 'a query cannot show it');
    now += 600_000;
    const missing = new Set(await index.missing(SPACE, ids));
    assert.equal(missing.size, lost.length);
    await index.upsert(
      SPACE,
      entries.filter(({ id }) => missing.has(id)),
    );
    assert.equal(collection?.points.size, entries.length);
    assert.deepEqual(await index.missing(SPACE, ids), []);
  });

  it('a space with more entries than an index remembers has no missing ones, and the oldest are asked about again', async () => {
    const index = indexOf({ known: { mostOfSpace: 3 } });
    const entries = Array.from({ length: 5 }, (_, number) => ({ ...ENTRY, id: String(number).padStart(32, '0') }));
    const ids = entries.map(({ id }) => id);
    await index.upsert(SPACE, entries);
    const asked = server.requests.length;
    assert.deepEqual(await index.missing(SPACE, ids.slice(2)), []);
    assert.equal(server.requests.length, asked);
    assert.deepEqual(await index.missing(SPACE, ids.slice(0, 2)), []);
    assert.ok(server.requests.length > asked);
    assert.deepEqual(await index.missing(SPACE, ids), []);
  });

  it('the spaces that were used longest ago are forgotten when all of them have too many points', async () => {
    const index = indexOf({ known: { most: 6 } });
    const entries = ['0', '1'].map((digit) => ({ ...ENTRY, id: digit.repeat(32) }));
    const spaces = ['team-a', 'team-b', 'team-c'].map((namespace) => ({ ...SPACE, namespace }));
    for (const space of spaces) await index.upsert(space, entries);
    const requestsFor = async (space: typeof SPACE): Promise<number> => {
      const before = server.requests.length;
      assert.deepEqual(
        await index.missing(
          space,
          entries.map(({ id }) => id),
        ),
        [],
      );
      return server.requests.length - before;
    };
    const [first = SPACE, , last = SPACE] = spaces;
    assert.equal(await requestsFor(last), 0);
    assert.ok((await requestsFor(first)) > 0);
  });

  it('a server that is away or refuses the key is not asked for five seconds', async () => {
    const index = indexOf();
    for (const failure of [500, 401]) {
      server.failure = failure;
      await assert.rejects(index.missing(SPACE, [ENTRY.id]), isUnavailable);
      const before = server.requests.length;
      await assert.rejects(index.missing(SPACE, [ENTRY.id]), isUnavailable);
      assert.equal(server.requests.length, before);
      now += 60_000;
      server.failure = undefined;
      assert.deepEqual(await index.missing(SPACE, [ENTRY.id]), [ENTRY.id]);
    }
  });

  it('a server that does not answer ends with the time of a request', async () => {
    server.failure = 'hang';
    await assert.rejects(indexOf({ timeoutMs: 20 }).missing(SPACE, [ENTRY.id]), isUnavailable);
  });

  it('the key is sent, read again after a failure, and in no error', async () => {
    let key = 'old-secret';
    server.key = 'new-secret';
    const index = indexOf({ key: async () => key });
    await assert.rejects(
      index.missing(SPACE, [ENTRY.id]),
      (error) => isUnavailable(error) && !/secret/.test(String(error)),
    );
    key = 'new-secret';
    now += 60_000;
    assert.deepEqual(await index.missing(SPACE, [ENTRY.id]), [ENTRY.id]);
  });

  it('a search uses words alone while Qdrant is away, and meaning again afterwards', async () => {
    const entry: DiscoveryEntry = {
      id: 'tool:bulletin',
      kind: 'tool',
      name: 'bulletin',
      description: 'Whether rain is near.',
      category: 'other',
      tags: [],
      requiredTools: [],
    };
    const embed = async (texts: string[]) => unitVectors(texts.map((text) => conceptVector(text)));
    const search = new HybridSearch({
      index: indexOf(),
      embedEntries: embed,
      clock,
      redact: (text) => text,
      observer: UNOBSERVED,
      closing: NEVER_ABORTED,
      limits: { searchMs: 60_000, entriesMs: 60_000 },
    });
    const caller = { id: 'a', namespace: 'team-a', embed, ownerOf: () => 'Namespace' as const };
    const scope = { indexes: [LexicalIndex.of([entry])], permits: () => true };
    const found = async (query: string) =>
      (await search.search({ query }, scope, caller, { ...callOptions(), deadline: Infinity })).map(
        ({ entry: { name } }) => name,
      );
    server.failure = 500;
    assert.deepEqual([await found('umbrella'), await found('rain')], [[], ['bulletin']]);
    server.failure = undefined;
    now += 60_000;
    assert.deepEqual(await found('umbrella'), ['bulletin']);
  });
});
