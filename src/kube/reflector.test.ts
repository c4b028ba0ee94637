import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Thing } from './fake-api.testing.ts';
import type { Origin } from './reflector.ts';
import { aScene, type Scene, valuesOf } from './reflector.testing.ts';
import type { Change } from './store.ts';

async function aWatchedScene(more: Parameters<typeof aScene>[0] = {}): Promise<Scene> {
  const scene = await aScene(more);
  for (const [index, name] of ['a', 'b', 'c', 'd', 'e'].entries()) scene.api.set(name, index);
  scene.reflector.start();
  await scene.until(() => scene.api.watching === 1, 'the first watch');
  return scene;
}

function toldBy({ reflector }: Scene): [string, string, Origin][] {
  const told: [string, string, Origin][] = [];
  reflector.subscribe((change: Change<Thing>, origin) => told.push([change.type, change.key, origin]));
  return told;
}

describe('the reflector', () => {
  it('lists page by page, then says what changes', async () => {
    await using scene = await aWatchedScene();
    const { api, reflector, until } = scene;
    assert.equal(reflector.hasSynced, true);
    assert.deepEqual(valuesOf(reflector.store), { a: 0, b: 1, c: 2, d: 3, e: 4 });
    const told = toldBy(scene).splice(0, 5);
    assert.deepEqual(told[0], ['added', 'team/a', 'initial']);
    const later = toldBy(scene);
    later.length = 0;
    api.set('a', 10);
    api.set('f', 5);
    api.remove('b');
    await until(() => reflector.store.size === 5 && reflector.store.get('team/b') === undefined, 'the deletion');
    assert.deepEqual(later, [
      ['updated', 'team/a', 'change'],
      ['added', 'team/f', 'change'],
      ['deleted', 'team/b', 'change'],
    ]);
    assert.deepEqual(
      api.asked.map(({ path }) => new URL(path, 'http://fake').searchParams.get('limit')),
      ['500', '500', '500', null],
    );
    assert.match(
      api.asked[3]?.path ?? '',
      /watch=true&allowWatchBookmarks=true&resourceVersion=v\d+&timeoutSeconds=300$/,
    );
  });

  it('begins a list again, in one, when its pages became too old', async () => {
    await using scene = await aScene();
    const { api, reflector, until } = scene;
    for (const name of ['a', 'b', 'c']) api.set(name, 1);
    api.fail('none', 'gone');
    reflector.start();
    await until(() => reflector.hasSynced, 'the list', 0);
    assert.equal(reflector.store.size, 3);
    const limits = api.asked.map(({ path }) => new URL(path, 'http://fake').searchParams.get('limit'));
    assert.deepEqual(limits.slice(0, 3), ['500', '500', null]);
  });

  it('watches on from where it was when a watch ends, breaks or is cut in a line', async () => {
    await using scene = await aWatchedScene();
    const { api, reflector, until } = scene;
    const endings = [
      () => api.endWatches(),
      () => api.dropWatches(),
      () => api.truncateWatches(),
      () => (api.fail('refuse', 'busy'), api.dropWatches()),
    ];
    for (const [index, end] of endings.entries()) {
      end();
      api.set('a', 100 + index);
      await until(() => valuesOf(reflector.store)['a'] === 100 + index, 'the change meanwhile');
    }
    assert.equal(api.lists, 1);
    assert.equal(api.watches, 5);
  });

  it('lists anew, at once, when its version is forgotten, and tells of what was deleted unseen', async () => {
    await using scene = await aWatchedScene();
    const { api, reflector, until, clock } = scene;
    const told = toldBy(scene);
    told.length = 0;
    await clock.advance(2_000);
    api.dropWatches();
    await until(() => api.watching === 0, 'the end');
    api.remove('c');
    api.set('a', 7);
    api.compact();
    await until(() => api.lists === 2, 'the second list');
    const before = clock.monotonic();
    await until(() => reflector.store.size === 4, 'the state');
    assert.ok(clock.monotonic() - before < 800, 'no back-off after a forgotten version');
    assert.deepEqual(told, [
      ['deleted', 'team/c', 'change'],
      ['updated', 'team/a', 'change'],
    ]);
  });

  it('waits when the server forgets at once what it just listed', async () => {
    await using scene = await aScene();
    const { api, reflector, until, lines } = scene;
    api.fail('none', 'gone', 'none', 'gone');
    reflector.start();
    await until(() => lines.length === 1, 'the first failure', 0);
    assert.equal(api.lists, 1);
    await until(() => lines.length === 2, 'the second failure');
    assert.equal(api.lists, 2);
    await until(() => api.watching === 1, 'the watch');
    assert.equal(api.lists, 3);
  });

  it('lists anew when the watch itself says that it fell behind', async () => {
    await using scene = await aWatchedScene();
    scene.api.expireWatches();
    await scene.until(() => scene.api.lists === 2 && scene.api.watching === 1, 'list and watch');
  });

  it('begins a watch anew that says nothing for 90 seconds, and keeps one that sends bookmarks', async () => {
    await using scene = await aWatchedScene();
    const { api, clock, until, reflector } = scene;
    for (let minutes = 0; minutes < 4; minutes += 1) {
      const sent = clock.monotonic();
      api.bookmark();
      await until(() => clock.monotonic() - sent >= 60_000, 'a minute', 1_000);
    }
    assert.equal(api.watches, 1);
    api.silence();
    api.set('a', 55);
    await until(() => valuesOf(reflector.store)['a'] === 55, 'what was not said', 1_000);
    assert.equal(api.watches, 2);
    assert.equal(api.lists, 1);
    assert.match(scene.lines.join(''), /StalledWatch/);
  });

  it('keeps a watch whose news waited while the process stood still', async () => {
    await using scene = await aWatchedScene();
    const { api, clock, until, reflector } = scene;
    for (let times = 0; times < 3; times += 1) {
      clock.stall(200_000);
      // Timers come first, then what can be read.
      await clock.advance(0);
      api.set('a', 100 + times);
      await until(() => valuesOf(reflector.store)['a'] === 100 + times, 'what waited', 10);
    }
    assert.equal(api.watches, 1);
  });

  it('goes on from the version of the last bookmark', async () => {
    await using scene = await aWatchedScene();
    const { api, until } = scene;
    api.silence();
    api.set('z', 1);
    api.dropWatches();
    await until(() => api.watching === 1, 'the second watch');
    api.bookmark();
    await until(() => scene.reflector.store.size === 6, 'the news');
    api.compact();
    api.dropWatches();
    await until(() => api.watches === 3 && api.watching === 1, 'the third watch');
    assert.equal(api.lists, 1);
  });

  it('waits longer each time it fails, up to 30 seconds, and begins small again after two quiet minutes', async () => {
    await using scene = await aScene();
    const { api, reflector, until, lines } = scene;
    api.fail('forbid', 'refuse', 'busy', 'break', 'forbid', 'forbid', 'forbid', 'forbid');
    reflector.start();
    await until(() => api.watching === 1, 'success', 400);
    const waits = () => lines.flatMap((line) => (JSON.parse(line) as { wait?: number }).wait ?? []);
    assert.deepEqual(waits(), [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
    const quiet = scene.clock.monotonic();
    await until(
      () => {
        api.bookmark();
        return scene.clock.monotonic() - quiet > 121_000;
      },
      'two minutes',
      1_000,
    );
    api.dropWatches();
    await until(() => waits().length === 9, 'the next failure');
    assert.equal(waits()[8], 800);
  });

  it('takes a watch that ends at once for a failure', async () => {
    await using scene = await aWatchedScene();
    const { api, until, metrics } = scene;
    await scene.clock.advance(2_000);
    api.endWatches();
    await until(() => api.watches === 2 && api.watching === 1, 'the second watch', 0);
    assert.equal(metrics.counts['reflector_short_watches_total'], 0);
    api.endWatches();
    await until(() => metrics.counts['reflector_short_watches_total'] === 1, 'the short one', 0);
    assert.equal(api.watches, 2);
    await until(() => api.watches === 3, 'the third watch');
  });

  it('tells every listener, the late one as of a first list, and survives one that throws', async () => {
    await using scene = await aWatchedScene();
    const { api, reflector, until } = scene;
    reflector.subscribe((_change, origin) => {
      if (origin === 'change') throw new Error('a defect');
    });
    const told = toldBy(scene);
    assert.equal(told.filter(([, , origin]) => origin === 'initial').length, 5);
    api.set('a', 9);
    await until(() => told.length === 6, 'the news');
    assert.match(scene.lines.join(''), /a listener of changes threw/);
  });

  it('shows everything again after the resync time', async () => {
    await using scene = await aWatchedScene({ resync: 3_600_000 });
    const told = toldBy(scene);
    told.length = 0;
    await scene.until(() => told.length > 0, 'the resync', 60_000);
    assert.deepEqual(
      told.map(([, key, origin]) => [key, origin]),
      ['a', 'b', 'c', 'd', 'e'].map((name) => [`team/${name}`, 'resync']),
    );
  });

  it('keeps of an object what it is told to, and asks for what it is told to', async () => {
    await using scene = await aScene({
      transform: (thing) => ({ ...thing, spec: { value: thing.spec.value * 2 } }),
      namespace: 'team',
      labelSelector: 'a in (b,c)',
      fieldSelector: 'metadata.name=x',
      metadataOnly: true,
    });
    scene.api.set('a', 21);
    scene.reflector.start();
    await scene.until(() => scene.api.watching === 1, 'the watch');
    assert.deepEqual(valuesOf(scene.reflector.store), { a: 42 });
    for (const { path, accept } of scene.api.asked) {
      assert.match(path, /^\/apis\/example\.dev\/v1\/namespaces\/team\/things\?/);
      assert.match(path, /labelSelector=a\+in\+%28b%2Cc%29&fieldSelector=metadata\.name%3Dx/);
      assert.match(accept, /as=PartialObjectMetadata(List)?;g=meta\.k8s\.io;v=v1/);
    }
  });

  it('opens nothing after it was ended, whatever it was doing', async () => {
    const scene = await aScene();
    scene.api.fail('busy');
    scene.reflector.start();
    await scene.until(() => scene.lines.length === 1, 'the failure', 0);
    await scene.reflector[Symbol.asyncDispose]();
    await scene.clock.advance(60_000);
    assert.equal(scene.api.asked.length, 1);
    assert.deepEqual(scene.clock.waits(), []);
    await scene[Symbol.asyncDispose]();
  });

  it('has its waiters wait for the first list, or for their own signal', async () => {
    await using scene = await aScene();
    const given = new AbortController();
    const impatient = scene.reflector.synced(given.signal);
    const patient = scene.reflector.synced(new AbortController().signal);
    given.abort(new Error('enough'));
    await assert.rejects(impatient, /enough/);
    scene.reflector.start();
    await patient;
    await scene.reflector.synced(new AbortController().signal);
  });
});
