import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import * as fc from 'fast-check';
import type { FakeApi, Fault, Thing } from './fake-api.testing.ts';
import { aScene, type Scene } from './reflector.testing.ts';
import type { Change } from './store.ts';

type Step = (scene: Scene) => Promise<void> | void;

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'];
const FAULTS: readonly Fault[] = ['refuse', 'busy', 'gone', 'break', 'forbid', 'mute'];
const TROUBLES = [
  'compact',
  'endWatches',
  'dropWatches',
  'truncateWatches',
  'repeat',
  'bookmark',
  'silence',
  'expireWatches',
] as const satisfies readonly (keyof FakeApi)[];

const name = fc.constantFrom(...NAMES);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(name, fc.nat(99)).map(
      ([name, value]): Step =>
        ({ api }) =>
          api.set(name, value),
    ),
  },
  {
    weight: 4,
    arbitrary: name.map(
      (name): Step =>
        ({ api }) =>
          api.remove(name),
    ),
  },
  // Deleted and made again while nobody looks: another object under the same name.
  {
    weight: 2,
    arbitrary: name.map(
      (name): Step =>
        ({ api }) => {
          api.remove(name);
          api.set(name, 7);
        },
    ),
  },
  {
    weight: 5,
    arbitrary: fc.constantFrom(...TROUBLES).map(
      (trouble): Step =>
        ({ api }) =>
          api[trouble](),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(...FAULTS).map(
      (fault): Step =>
        ({ api }) =>
          api.fail(fault),
    ),
  },
  { weight: 4, arbitrary: fc.constantFrom(0, 1_000, 40_000, 100_000).map(pass) },
);

/** Time and the network go on. */
function pass(milliseconds: number): Step {
  return async ({ clock }) => {
    await sleep(2);
    await clock.advance(milliseconds);
    await sleep(2);
  };
}

/** What somebody who only listens believes; what he is told must make sense to him. */
function mirrorOf({ reflector }: Scene): Map<string, Thing> {
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

function believed(mirror: Iterable<Thing>): unknown[] {
  return [...mirror].toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1));
}

describe('the reflector, beside a server that fails in every way', () => {
  it('comes to hold what the server holds, and tells of every deletion', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        await using scene = await aScene();
        const mirror = mirrorOf(scene);
        scene.reflector.start();
        for (const one of steps) await one(scene);
        scene.api.heal();
        const truth = (): string => JSON.stringify(believed(scene.api.state().values() as Iterable<Thing>));
        await scene.until(
          () => JSON.stringify(believed(scene.reflector.store.list())) === truth(),
          'the same state',
          5_000,
        );
        assert.equal(JSON.stringify(believed(mirror.values())), truth());
        assert.doesNotMatch(scene.lines.join(''), /a listener of changes threw/);
      }),
      { numRuns: 60 },
    );
  });
});
