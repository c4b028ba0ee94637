import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { VectorIndex, VectorSpace } from '../../src/discovery/vector/port.ts';
import { seededRandom } from '../support/seeded-random.ts';
import { callOptions } from '../support/call-options.ts';

const SPACE: VectorSpace = { namespace: 'team-a', dimensions: 3 };
/** Ids are digests of texts. */
const id = (number: number): string => number.toString(16).padStart(32, '0');
const unit = (...values: number[]): Float32Array => {
  const length = Math.hypot(...values);
  return Float32Array.from(values, (value) => value / length);
};

/** The contract of every index of vectors. `open` returns an empty one. */
export function vectorIndexContract(adapter: string, open: () => Promise<VectorIndex>): void {
  describe(`the vector index ${adapter}`, () => {
    it('a query returns the nearest entries with their cosine, nearest first and ties by id', async () => {
      const index = await open();
      const entries = [
        { id: id(3), vector: unit(1, 0, 0) },
        { id: id(2), vector: unit(1, 1, 0) },
        { id: id(1), vector: unit(1, 0, 0) },
        { id: id(4), vector: unit(-1, 0, 0) },
      ];
      await index.upsert(SPACE, entries, callOptions());
      const filter = { ids: entries.map((entry) => entry.id), most: 3 };
      const [first, second] = await index.query(SPACE, [unit(1, 0, 0), unit(0, 1, 0)], filter, callOptions());
      assert.deepEqual(
        first?.map((hit) => hit.id),
        [id(1), id(3), id(2)],
      );
      assert.ok(Math.abs((first[2]?.cosine ?? 0) - Math.SQRT1_2) < 1e-5);
      assert.equal(second?.[0]?.id, id(2));
    });

    it('entries that the filter does not name neither appear nor take places', async () => {
      const index = await open();
      const hidden = Array.from({ length: 50 }, (_, number) => ({ id: id(number + 100), vector: unit(1, 0, 0) }));
      await index.upsert(SPACE, [...hidden, { id: id(1), vector: unit(0, 1, 0) }], callOptions());
      const [hits] = await index.query(SPACE, [unit(1, 0, 0)], { ids: [id(1), id(2)], most: 1 }, callOptions());
      assert.deepEqual(
        hits?.map((hit) => hit.id),
        [id(1)],
      );
    });

    it('namespaces and dimensions are apart', async () => {
      const index = await open();
      await index.upsert(SPACE, [{ id: id(1), vector: unit(1, 0, 0) }], callOptions());
      const elsewhere = { namespace: 'team-b', dimensions: 3 };
      const filter = { ids: [id(1)], most: 5 };
      assert.deepEqual(await index.missing(SPACE, [id(1)], callOptions()), []);
      assert.deepEqual(await index.missing(elsewhere, [id(1)], callOptions()), [id(1)]);
      assert.deepEqual(await index.query(elsewhere, [unit(1, 0, 0)], filter, callOptions()), [[]]);
      const wider = { namespace: 'team-a', dimensions: 4 };
      assert.deepEqual(await index.missing(wider, [id(1)], callOptions()), [id(1)]);
      assert.deepEqual(await index.query(wider, [unit(1, 0, 0, 0)], filter, callOptions()), [[]]);
    });

    it('an upsert replaces a vector, and may be repeated', async () => {
      const index = await open();
      const filter = { ids: [id(1)], most: 1 };
      for (const vector of [unit(1, 0, 0), unit(0, 1, 0), unit(0, 1, 0)])
        await index.upsert(SPACE, [{ id: id(1), vector }], callOptions());
      const [[hit] = []] = await index.query(SPACE, [unit(0, 1, 0)], filter, callOptions());
      assert.ok((hit?.cosine ?? 0) > 0.999);
    });

    it('a query over many entries finds exactly the nearest ones', async () => {
      const index = await open();
      const random = seededRandom(7);
      const value = (): number => random(10_000) - 5_000;
      const entries = Array.from({ length: 500 }, (_, number) => ({
        id: id(number),
        vector: unit(value(), value(), value()),
      }));
      await index.upsert(SPACE, entries, callOptions());
      const wanted = unit(value(), value(), value());
      const visible = entries.filter((_, number) => number % 3 === 0);
      const [hits] = await index.query(
        SPACE,
        [wanted],
        { ids: visible.map((entry) => entry.id), most: 20 },
        callOptions(),
      );
      const product = (vector: Float32Array): number =>
        vector.reduce((sum, one, at) => sum + one * (wanted[at] ?? 0), 0);
      const expected = visible.toSorted((a, b) => product(b.vector) - product(a.vector)).slice(0, 20);
      assert.deepEqual(
        hits?.map((hit) => hit.id),
        expected.map((entry) => entry.id),
      );
    });
  });
}
