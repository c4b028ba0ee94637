import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { ApiError } from '../client/kube-client.ts';
import type { Transport } from '../client/transport.ts';
import type { Thing } from './fake-api-server.testing.ts';
import type { ChangeSource } from './reflector.ts';
import { createReflectorFixture, type ReflectorFixture, valuesOf } from './reflector.testing.ts';
import type { Change } from './store.ts';

async function aWatchedFixture(more: Parameters<typeof createReflectorFixture>[0] = {}): Promise<ReflectorFixture> {
  const fixture = await createReflectorFixture(more);
  for (const [index, name] of ['a', 'b', 'c', 'd', 'e'].entries()) fixture.api.set(name, index);
  fixture.reflector.start();
  await fixture.until(() => fixture.api.watching === 1, 'the first watch');
  return fixture;
}

function changesOf({ reflector }: ReflectorFixture): [string, string, ChangeSource][] {
  const changes: [string, string, ChangeSource][] = [];
  reflector.subscribe((change: Change<Thing>, origin) => changes.push([change.type, change.key, origin]));
  return changes;
}

describe('the reflector', () => {
  it('the reflector lists page by page, then reports watch events', async () => {
    await using fixture = await aWatchedFixture();
    const { api, reflector, until } = fixture;
    assert.equal(reflector.hasSynced, true);
    assert.deepEqual(valuesOf(reflector.store), { a: 0, b: 1, c: 2, d: 3, e: 4 });
    const initial = changesOf(fixture).splice(0, 5);
    assert.deepEqual(initial[0], ['added', 'team/a', 'initial']);
    const later = changesOf(fixture);
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
      api.requests.map(({ path }) => new URL(path, 'http://fake').searchParams.get('limit')),
      ['500', '500', '500', null],
    );
    assert.match(
      api.requests[3]?.path ?? '',
      /watch=true&allowWatchBookmarks=true&resourceVersion=v\d+&timeoutSeconds=300$/,
    );
  });

  it('a change is in the store, and every listener has it, as soon as its event arrives: no timer stands between', async () => {
    await using fixture = await aWatchedFixture();
    const { api, clock, reflector, until } = fixture;
    const seen: unknown[] = [];
    reflector.subscribe(({ key, object }, origin) => {
      if (origin === 'change') seen.push([key, object.spec.value, reflector.store.get('team/a')?.spec.value]);
    });
    const before = clock.monotonic();
    api.set('a', 10);
    await until(() => seen.length > 0, 'the change', 0);
    assert.deepEqual([seen, clock.monotonic()], [[['team/a', 10, 10]], before]);
  });

  it('an expired continue token restarts the list without pages', async () => {
    await using fixture = await createReflectorFixture();
    const { api, reflector, until } = fixture;
    for (const name of ['a', 'b', 'c']) api.set(name, 1);
    api.fail('none', 'gone');
    reflector.start();
    await until(() => reflector.hasSynced, 'the list', 0);
    assert.equal(reflector.store.size, 3);
    const limits = api.requests.map(({ path }) => new URL(path, 'http://fake').searchParams.get('limit'));
    assert.deepEqual(limits.slice(0, 3), ['500', '500', null]);
  });

  it('after a watch ends, breaks or is truncated, the next one continues from the last version', async () => {
    await using fixture = await aWatchedFixture();
    const { api, reflector, until } = fixture;
    const endings = [
      () => api.endWatches(),
      () => api.dropWatches(),
      () => api.truncateWatches(),
      () => (api.fail('refuse', 'busy'), api.dropWatches()),
    ];
    for (const [index, end] of endings.entries()) {
      end();
      api.set('a', 100 + index);
      await until(() => valuesOf(reflector.store)['a'] === 100 + index, 'the change between the watches');
    }
    assert.equal(api.lists, 1);
    assert.equal(api.watches, 5);
  });

  it('an expired version causes an immediate relist that reports missed deletions', async () => {
    await using fixture = await aWatchedFixture();
    const { api, reflector, until, clock } = fixture;
    const changes = changesOf(fixture);
    changes.length = 0;
    await clock.advance(2_000);
    api.dropWatches();
    await until(() => api.watching === 0, 'the end');
    api.remove('c');
    api.set('a', 7);
    api.compact();
    await until(() => api.lists === 2, 'the second list');
    const before = clock.monotonic();
    await until(() => reflector.store.size === 4, 'the state');
    assert.ok(clock.monotonic() - before < 800, 'no backoff after an expired version');
    assert.deepEqual(changes, [
      ['deleted', 'team/c', 'change'],
      ['updated', 'team/a', 'change'],
    ]);
  });

  it('the reflector backs off when the server expires a version immediately after the list', async () => {
    await using fixture = await createReflectorFixture();
    const { api, reflector, until, lines } = fixture;
    api.fail('none', 'gone', 'none', 'gone');
    reflector.start();
    await until(() => lines.length === 1, 'the first failure', 0);
    assert.equal(api.lists, 1);
    await until(() => lines.length === 2, 'the second failure');
    assert.equal(api.lists, 2);
    await until(() => api.watching === 1, 'the watch');
    assert.equal(api.lists, 3);
  });

  it('a list that is older than the store is read again, and is taken when every list has been older for half a minute', async () => {
    const versions = ['10', '9', '100', '99'];
    let lists = 0;
    const transport = {
      send: async () => {
        const version = versions[Math.min(lists++, versions.length - 1)] ?? '';
        const metadata = { name: 'a', namespace: 'team', uid: 'u', resourceVersion: version };
        return { metadata: { resourceVersion: version }, items: [{ metadata, spec: { value: Number(version) } }] };
      },
      open: async () => Promise.reject(new ApiError(410, 'Expired', 'too old resource version')),
    } as unknown as Transport;
    await using fixture = await createReflectorFixture({ transport });
    const { reflector, until, clock, metrics } = fixture;
    const seen: unknown[] = [];
    reflector.subscribe(({ object }) => seen.push(object.spec.value));
    reflector.start();
    await until(() => lists >= 4, 'the first list that stays older');
    assert.deepEqual(seen, [10, 100], 'nothing goes back');
    const since = clock.monotonic();
    await until(() => seen.length === 3, 'the older state');
    assert.deepEqual(seen, [10, 100, 99]);
    assert.ok(clock.monotonic() - since >= 28_000);
    assert.ok((metrics.counts['reflector_stale_lists_total'] ?? 0) >= 3);
  });

  it('an ERROR event with an expired version causes a relist', async () => {
    await using fixture = await aWatchedFixture();
    fixture.api.expireWatches();
    await fixture.until(() => fixture.api.lists === 2 && fixture.api.watching === 1, 'list and watch');
  });

  it('a watch without data for 90 seconds is restarted, and a watch with bookmarks is kept', async () => {
    await using fixture = await aWatchedFixture();
    const { api, clock, until, reflector, metrics } = fixture;
    for (let minutes = 0; minutes < 4; minutes += 1) {
      const sent = clock.monotonic();
      api.bookmark();
      await until(() => clock.monotonic() - sent >= 60_000, 'a minute', 1_000);
    }
    assert.equal(api.watches, 1);
    const lastEvent = (): number => metrics.gauges['reflector_last_event_timestamp_seconds'] ?? 0;
    const heardAt = lastEvent();
    assert.ok(heardAt >= 180 && heardAt <= 181 + 60, `${heardAt} s`);
    assert.equal(metrics.counts['reflector_stalls_total'], 0);
    api.silence();
    await clock.advance(60_000);
    assert.equal(lastEvent(), heardAt, 'silence is no event');
    api.set('a', 55);
    await until(() => valuesOf(reflector.store)['a'] === 55, 'the missed change', 1_000);
    assert.equal(api.watches, 2);
    assert.equal(api.lists, 1);
    assert.match(fixture.lines.join(''), /StalledWatch/);
    assert.equal(metrics.counts['reflector_stalls_total'], 1);
    assert.ok(lastEvent() >= heardAt + 90);
  });

  it('a watch whose data arrived while the event loop was blocked is kept', async () => {
    await using fixture = await aWatchedFixture();
    const { api, clock, until, reflector } = fixture;
    for (let times = 0; times < 3; times += 1) {
      clock.skip(200_000);
      // The event loop runs timers before I/O.
      await clock.advance(0);
      api.set('a', 100 + times);
      await until(() => valuesOf(reflector.store)['a'] === 100 + times, 'the pending change', 10);
    }
    assert.equal(api.watches, 1);
  });

  it('the next watch continues from the version of the last bookmark', async () => {
    await using fixture = await aWatchedFixture();
    const { api, until } = fixture;
    api.silence();
    api.set('z', 1);
    api.dropWatches();
    await until(() => api.watching === 1, 'the second watch');
    api.bookmark();
    await until(() => fixture.reflector.store.size === 6, 'the change');
    api.compact();
    api.dropWatches();
    await until(() => api.watches === 3 && api.watching === 1, 'the third watch');
    assert.equal(api.lists, 1);
  });

  it('the backoff grows to 30 seconds and is reset after two minutes without a failure', async () => {
    await using fixture = await createReflectorFixture();
    const { api, reflector, until, lines } = fixture;
    api.fail('forbid', 'refuse', 'busy', 'break', 'forbid', 'forbid', 'forbid', 'forbid');
    reflector.start();
    await until(() => api.watching === 1, 'success', 400);
    const waits = () => lines.flatMap((line) => (JSON.parse(line) as { wait?: number }).wait ?? []);
    assert.deepEqual(waits(), [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
    const quiet = fixture.clock.monotonic();
    await until(
      () => {
        api.bookmark();
        return fixture.clock.monotonic() - quiet > 121_000;
      },
      'two minutes',
      1_000,
    );
    api.dropWatches();
    await until(() => waits().length === 9, 'the next failure');
    assert.equal(waits()[8], 800);
  });

  it('a watch that ends immediately counts as a failure', async () => {
    await using fixture = await aWatchedFixture();
    const { api, until, metrics } = fixture;
    await fixture.clock.advance(2_000);
    api.endWatches();
    await until(() => api.watches === 2 && api.watching === 1, 'the second watch', 0);
    assert.equal(metrics.counts['reflector_short_watches_total'], 0);
    api.endWatches();
    await until(() => metrics.counts['reflector_short_watches_total'] === 1, 'the short one', 0);
    assert.equal(api.watches, 2);
    await until(() => api.watches === 3, 'the third watch');
  });

  it('every listener is notified, a late one of existing objects first, even when another listener throws', async () => {
    await using fixture = await aWatchedFixture();
    const { api, reflector, until } = fixture;
    reflector.subscribe((_change, origin) => {
      if (origin === 'change') throw new Error('a defect');
    });
    const changes = changesOf(fixture);
    assert.equal(changes.filter(([, , origin]) => origin === 'initial').length, 5);
    api.set('a', 9);
    await until(() => changes.length === 6, 'the change');
    assert.match(fixture.lines.join(''), /a change listener threw an error/);
  });

  it('a resync reports every object again', async () => {
    await using fixture = await aWatchedFixture({ resyncMs: 3_600_000 });
    const changes = changesOf(fixture);
    changes.length = 0;
    await fixture.until(() => changes.length > 0, 'the resync', 60_000);
    assert.deepEqual(
      changes.map(([, key, origin]) => [key, origin]),
      ['a', 'b', 'c', 'd', 'e'].map((name) => [`team/${name}`, 'resync']),
    );
  });

  it('the reflector applies transform, namespace, selectors and metadataOnly', async () => {
    await using fixture = await createReflectorFixture({
      transform: (thing) => ({ ...thing, spec: { value: thing.spec.value * 2 } }),
      namespace: 'team',
      labelSelector: 'a in (b,c)',
      fieldSelector: 'metadata.name=x',
      metadataOnly: true,
    });
    fixture.api.set('a', 21);
    fixture.reflector.start();
    await fixture.until(() => fixture.api.watching === 1, 'the watch');
    assert.deepEqual(valuesOf(fixture.reflector.store), { a: 42 });
    for (const { path, accept } of fixture.api.requests) {
      assert.match(path, /^\/apis\/example\.dev\/v1\/namespaces\/team\/things\?/);
      assert.match(path, /labelSelector=a\+in\+%28b%2Cc%29&fieldSelector=metadata\.name%3Dx/);
      assert.match(accept, /as=PartialObjectMetadata(List)?;g=meta\.k8s\.io;v=v1/);
    }
  });

  it('a disposed reflector sends no further requests', async () => {
    const fixture = await createReflectorFixture();
    fixture.api.fail('busy');
    fixture.reflector.start();
    await fixture.until(() => fixture.lines.length === 1, 'the failure', 0);
    await fixture.reflector[Symbol.asyncDispose]();
    await fixture.clock.advance(60_000);
    assert.equal(fixture.api.requests.length, 1);
    assert.deepEqual(fixture.clock.pendingDelays(), []);
    await fixture[Symbol.asyncDispose]();
  });

  it('synced resolves after the initial list, or rejects when its signal aborts', async () => {
    await using fixture = await createReflectorFixture();
    const controller = new AbortController();
    const aborted = fixture.reflector.synced(controller.signal);
    const synced = fixture.reflector.synced(NEVER_ABORTED);
    controller.abort(new Error('enough'));
    await assert.rejects(aborted, /enough/);
    fixture.reflector.start();
    await synced;
    await fixture.reflector.synced(NEVER_ABORTED);
  });
});
