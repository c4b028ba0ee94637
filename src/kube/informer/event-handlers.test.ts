import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeClock } from '../fake-clock.testing.ts';
import { RecordingMetrics } from '../metrics.testing.ts';
import { generationChanged } from './predicates.ts';
import { createRateLimiter } from '../controller/rate-limiter.ts';
import { PRIORITY } from '../controller/priority-fifo.ts';
import type { ChangeListener } from './reflector.ts';
import { type KubeObject, Store } from './store.ts';
import { ownerKeys, ownerUids, enqueueOnChange, type EnqueueOptions } from './event-handlers.ts';
import { WorkQueue } from '../controller/work-queue.ts';

function aWatch(options?: EnqueueOptions<KubeObject>) {
  const clock = new FakeClock();
  const queue = new WorkQueue({ name: 'q', clock, limiter: createRateLimiter(clock), metrics: new RecordingMetrics() });
  let notify: ChangeListener<KubeObject> = () => assert.fail('there is no listener');
  enqueueOnChange({ subscribe: (listener) => (notify = listener) }, queue, options);
  const store = new Store<KubeObject>();
  return {
    set: (object: KubeObject, origin: Parameters<typeof notify>[1] = 'change') => {
      for (const change of store.set(object)) notify(change, origin);
    },
    taken: async (): Promise<unknown[]> => {
      const all: unknown[] = [];
      while (queue.length > 0) {
        const work = await queue.get();
        all.push([work?.key, work?.priority]);
        queue.done(work?.key ?? '');
      }
      return all;
    },
  };
}

function aChild(version: string, owner?: string, more: object = {}): KubeObject {
  const reference = {
    apiVersion: 'example.dev/v1',
    kind: 'Owner',
    name: owner ?? '',
    uid: `uid-${owner}`,
    controller: true,
  };
  const ownerReferences = owner === undefined ? [] : [{ ...reference, ...more }];
  return {
    metadata: { name: 'pod', namespace: 'team', uid: 'u', resourceVersion: version, generation: 1, ownerReferences },
  };
}

describe('enqueueing of changes', () => {
  it('the key of a changed object is enqueued before keys from the initial list or a resync', async () => {
    const { set, taken } = aWatch();
    set({ metadata: { name: 'listed', resourceVersion: '1' } }, 'initial');
    set({ metadata: { name: 'seen', resourceVersion: '1' } }, 'resync');
    set({ metadata: { name: 'changed', namespace: 'team', resourceVersion: '1' } });
    assert.deepEqual(await taken(), [
      ['team/changed', PRIORITY.normal],
      ['listed', PRIORITY.resync],
      ['seen', PRIORITY.resync],
    ]);
  });

  it('the predicate filters changes, but not resyncs', async () => {
    const { set, taken } = aWatch({ predicate: generationChanged });
    set(aChild('1'));
    await taken();
    set(aChild('2'));
    assert.deepEqual(await taken(), []);
    set(aChild('3'), 'resync');
    assert.equal((await taken()).length, 1);
  });

  it('the controlling owner of a child object is enqueued, and both owners when it changes', async () => {
    const { set, taken } = aWatch({ keys: ownerKeys({ group: 'example.dev', kind: 'Owner' }) });
    set(aChild('1', 'a'));
    assert.deepEqual(await taken(), [['team/a', PRIORITY.normal]]);
    set(aChild('2', 'b'));
    assert.deepEqual(await taken(), [
      ['team/a', PRIORITY.normal],
      ['team/b', PRIORITY.normal],
    ]);
  });

  it('ownerKeys ignores owners of another kind or group and owners that are not controllers', () => {
    const keys = ownerKeys({ group: 'example.dev', kind: 'Owner' });
    assert.deepEqual(keys(aChild('1')), []);
    assert.deepEqual(keys(aChild('1', 'a', { kind: 'Other' })), []);
    assert.deepEqual(keys(aChild('1', 'a', { apiVersion: 'v1' })), []);
    assert.deepEqual(keys(aChild('1', 'a', { apiVersion: 'example.dev.evil/v1' })), []);
    assert.deepEqual(keys(aChild('1', 'a', { controller: false })), []);
    assert.deepEqual(ownerUids(aChild('1', 'a')), ['uid-a']);
    assert.deepEqual(ownerUids(aChild('1')), []);
    assert.deepEqual(keys({ metadata: { ...aChild('1', 'a').metadata, namespace: '' } }), ['a']);
  });
});
