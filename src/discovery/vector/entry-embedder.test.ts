import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { conceptVector } from '../../../test/support/concept-vectors.ts';
import { FakeClock } from '../../../test/support/clocks.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { TemperError } from '../../lib/errors.ts';
import { EntryEmbedder, type EntryText } from './entry-embedder.ts';
import { MemoryVectorIndex } from './memory-index.ts';
import type { VectorIndex } from './port.ts';

const POISON = 'poison';
const DIMENSIONS = conceptVector('').length;
const HOUR_MS = 3_600_000;

const space = (namespace: string) => ({ namespace, dimensions: DIMENSIONS });
const texts = (count: number, first = 0): EntryText[] =>
  Array.from({ length: count }, (_, number) => ({ id: `id-${first + number}`, text: `tool ${first + number}` }));
const poison: EntryText = { id: 'id-poison', text: POISON };
const failure = (status: number) =>
  new TemperError('TEMPER_MODEL_OVERLOADED', 'failed', { retry: 'backoff', details: { status } });

/** An embedder of entries whose answers `answer` gives, and the texts of each request. */
function setup(
  answer: (sent: string[]) => Float32Array[],
  index: VectorIndex = new MemoryVectorIndex(),
  mostFailed = 10_000,
) {
  const clock = new FakeClock();
  const requests: string[][] = [];
  const embedder = new EntryEmbedder({
    index,
    embed: async (sent) => {
      requests.push(sent);
      return answer(sent);
    },
    clock,
    saw: () => undefined,
    closing: NEVER_ABORTED,
    mostFailed,
  });
  const op = { signal: NEVER_ABORTED, deadline: Infinity, key: 'search' };
  const add = (namespace: string, added: readonly EntryText[]) => embedder.add(space(namespace), added, op);
  const missing = (namespace: string, asked: readonly EntryText[]) =>
    index.missing(
      space(namespace),
      asked.map(({ id }) => id),
      op,
    );
  return { clock, requests, add, missing };
}

const vectors = (sent: string[]): Float32Array[] => sent.map((text) => conceptVector(text));

const POISONED: [string, (sent: string[]) => Float32Array[]][] = [
  [
    'answers 500',
    (sent) => {
      if (sent.includes(POISON)) throw failure(500);
      return vectors(sent);
    },
  ],
  [
    'sends a vector that is not a number',
    (sent) =>
      sent.map((text) =>
        text === POISON ? Float32Array.of(...Array.from({ length: DIMENSIONS }, () => NaN)) : conceptVector(text),
      ),
  ],
];

describe('the embedder of entries', () => {
  for (const [what, answer] of POISONED) {
    it(`a text for which the server ${what} is skipped for an hour, and all other texts get their vectors`, async () => {
      const { clock, requests, add, missing } = setup(answer);
      const own = [...texts(20), poison, ...texts(40, 20)];
      const elsewhere = texts(3);
      await Promise.all([add('team-a', own), add('team-b', elsewhere)]);
      assert.deepEqual(await missing('team-a', own), [poison.id]);
      assert.deepEqual(await missing('team-b', elsewhere), []);
      const sent = requests.length;
      assert.ok(sent < 30, `${sent} requests isolate one text`);
      await add('team-a', [poison]);
      assert.equal(requests.length, sent);
      clock.skip(HOUR_MS);
      await add('team-a', [poison]);
      assert.deepEqual(requests[sent], [POISON]);
    });
  }

  it('a namespace with many failing texts has every second request while another one has texts', async () => {
    const { requests, add, missing } = setup((sent) => {
      if (sent.some((text) => text.startsWith('bad'))) throw failure(500);
      return vectors(sent);
    });
    const bad = texts(32).map(({ id, text }) => ({ id, text: `bad ${text}` }));
    const good = texts(5 * 32);
    await Promise.all([add('team-a', bad), add('team-b', good)]);
    assert.deepEqual(await missing('team-b', good), []);
    const owners = requests.filter(([text = '']) => text !== 'capability').map(([text = '']) => text.slice(0, 4));
    // The first request was before the other namespace came.
    assert.deepEqual(owners.slice(1, 11), Array.from({ length: 5 }, () => ['bad ', 'tool']).flat());
  });

  it('more failing texts than the memory keeps end with a bounded number of requests', async () => {
    const { requests, add } = setup(
      (sent) => {
        if (sent.some((text) => text.startsWith('tool'))) throw failure(500);
        return vectors(sent);
      },
      new MemoryVectorIndex(),
      4,
    );
    await add('team-a', texts(96));
    const failed = requests.filter(([text = '']) => text.startsWith('tool')).length;
    assert.ok(failed <= 96 * 2, `${failed} requests failed`);
  });

  it('an embedder that does not work gets a probe each 30 seconds, and nothing else, until it works', async () => {
    let isDown = true;
    const { clock, requests, add, missing } = setup((sent) => {
      if (isDown) throw failure(503);
      return vectors(sent);
    });
    const own = texts(40);
    await add('team-a', own);
    assert.deepEqual(
      requests.map((sent) => sent.length),
      [32, 1],
    );
    for (const namespace of ['team-a', 'team-b', 'team-c']) await add(namespace, own);
    assert.equal(requests.length, 2);
    for (let pause = 1; pause <= 3; pause += 1) {
      clock.skip(30_000);
      for (const namespace of ['team-a', 'team-b', 'team-c']) await add(namespace, own);
      assert.deepEqual(
        requests.slice(2),
        Array.from({ length: pause }, () => ['capability']),
      );
    }
    isDown = false;
    clock.skip(30_000);
    await add('team-a', own);
    assert.deepEqual(await missing('team-a', own), []);
  });

  it('an embedder that limits its rate gets no request for 30 seconds', async () => {
    const { clock, requests, add } = setup(() => {
      throw new TemperError('TEMPER_MODEL_RATE_LIMITED', 'slower', { retry: 'backoff', details: { status: 429 } });
    });
    await add('team-a', texts(40));
    await add('team-b', texts(1));
    assert.equal(requests.length, 1);
    clock.skip(30_000);
    await add('team-b', texts(1));
    assert.deepEqual(requests.at(-1), ['capability']);
  });

  it('a text after which the embedder stops working is isolated too, and is sent less and less often', async () => {
    let isDown = false;
    const { clock, requests, add, missing } = setup((sent) => {
      if (isDown || sent.includes(POISON)) {
        isDown = true;
        throw failure(503);
      }
      return vectors(sent);
    });
    const own = [...texts(20), poison];
    for (let minute = 0; minute < 60; minute += 1) {
      await add('team-a', own);
      // A supervisor starts it again.
      isDown = false;
      clock.skip(60_000);
    }
    assert.deepEqual(await missing('team-a', own), [poison.id]);
    const harmful = requests.filter((sent) => sent.includes(POISON)).length;
    assert.ok(harmful <= 12, `it was sent ${harmful} times in an hour`);
  });

  it('vectors that the index does not store let their namespace wait, and no other one', async () => {
    const inner = new MemoryVectorIndex();
    const index: VectorIndex = {
      missing: (asked, ids) => inner.missing(asked, ids),
      query: (asked, wanted, filter) => inner.query(asked, wanted, filter),
      async upsert(asked, entries) {
        if (asked.namespace === 'team-a') throw new TemperError('TEMPER_VECTORS_UNAVAILABLE', 'full', { retry: 5_000 });
        await inner.upsert(asked, entries);
      },
    };
    const { clock, requests, add, missing } = setup(vectors, index);
    const own = texts(40);
    await Promise.all([add('team-a', own), add('team-b', own)]);
    assert.deepEqual(await missing('team-b', own), []);
    const sent = requests.length;
    await add('team-a', own);
    assert.equal(requests.length, sent);
    clock.skip(30_000);
    await add('team-a', own);
    assert.equal(requests.length, sent + 1);
  });
});
