import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import * as fc from 'fast-check';
import type { FakeApiServer, ApiFault, Thing } from './fake-api-server.testing.ts';
import { createReflectorFixture, type ReflectorFixture } from './reflector.testing.ts';
import type { Change } from './store.ts';

type TestStep = (fixture: ReflectorFixture) => Promise<void> | void;

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'];
const FAULTS: readonly ApiFault[] = ['refuse', 'busy', 'gone', 'break', 'forbid', 'mute'];
const DISRUPTIONS = [
  'compact',
  'endWatches',
  'dropWatches',
  'truncateWatches',
  'repeat',
  'bookmark',
  'silence',
  'expireWatches',
] as const satisfies readonly (keyof FakeApiServer)[];

const name = fc.constantFrom(...NAMES);
const step: fc.Arbitrary<TestStep> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(name, fc.nat(99)).map(
      ([name, value]): TestStep =>
        ({ api }) =>
          api.set(name, value),
    ),
  },
  {
    weight: 4,
    arbitrary: name.map(
      (name): TestStep =>
        ({ api }) =>
          api.remove(name),
    ),
  },
  // Deleted and recreated without a watch in between: another object with the same name.
  {
    weight: 2,
    arbitrary: name.map(
      (name): TestStep =>
        ({ api }) => {
          api.remove(name);
          api.set(name, 7);
        },
    ),
  },
  {
    weight: 5,
    arbitrary: fc.constantFrom(...DISRUPTIONS).map(
      (disruption): TestStep =>
        ({ api }) =>
          api[disruption](),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(...FAULTS).map(
      (fault): TestStep =>
        ({ api }) =>
          api.fail(fault),
    ),
  },
  { weight: 4, arbitrary: fc.constantFrom(0, 1_000, 40_000, 100_000).map(pass) },
);

/** Lets time and network I/O proceed. */
function pass(milliseconds: number): TestStep {
  return async ({ clock }) => {
    await sleep(2);
    await clock.advance(milliseconds);
    await sleep(2);
  };
}

/** The state that a listener reconstructs from the changes alone; asserts that the sequence of changes is consistent. */
function mirrorOf({ reflector }: ReflectorFixture): Map<string, Thing> {
  const mirror = new Map<string, Thing>();
  reflector.subscribe((change: Change<Thing>) => {
    const known = mirror.get(change.key);
    assert.equal(known === undefined, change.type === 'added', `${change.type} of ${change.key}`);
    if (change.type === 'updated')
      assert.equal(change.object.metadata.uid, known?.metadata.uid, 'an update keeps the uid');
    if (change.type === 'deleted') mirror.delete(change.key);
    else mirror.set(change.key, change.object);
  });
  return mirror;
}

function sorted(things: Iterable<Thing>): unknown[] {
  return [...things].toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

describe('the reflector, with a server that fails in every way', () => {
  it('the store converges to the state of the server, and listeners receive every deletion', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        await using fixture = await createReflectorFixture();
        const mirror = mirrorOf(fixture);
        fixture.reflector.start();
        for (const run of steps) await run(fixture);
        fixture.api.clearFaults();
        const expected = (): string => JSON.stringify(sorted(fixture.api.state().values() as Iterable<Thing>));
        await fixture.until(
          () => JSON.stringify(sorted(fixture.reflector.store.list())) === expected(),
          'the same state',
          5_000,
        );
        assert.equal(JSON.stringify(sorted(mirror.values())), expected());
        assert.doesNotMatch(fixture.lines.join(''), /a change listener threw an error/);
      }),
      { numRuns: 60 },
    );
  });
});
