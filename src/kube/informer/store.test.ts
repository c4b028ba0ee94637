import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type KubeObject, Store } from './store.ts';

interface Pod extends KubeObject {
  readonly spec: { readonly node: string };
}

function aPod(name: string, version: string, node = 'one', metadata: Partial<KubeObject['metadata']> = {}): Pod {
  return {
    metadata: { name, namespace: 'team', uid: `uid-${name}`, resourceVersion: version, ...metadata },
    spec: { node },
  };
}

describe('the store', () => {
  it('set and delete return the changes they cause', () => {
    const store = new Store<Pod>();
    assert.deepEqual(store.set(aPod('a', '7')), [{ type: 'added', key: 'team/a', object: aPod('a', '7') }]);
    assert.deepEqual(store.set(aPod('a', '7', 'ignored')), []);
    const [change] = store.set(aPod('a', '3', 'two'));
    assert.equal(change?.type, 'updated', 'versions are compared for equality only');
    assert.equal(store.get('team/a')?.spec.node, 'two');
    assert.deepEqual(store.delete('team/a', aPod('a', '9')), [
      { type: 'deleted', key: 'team/a', object: aPod('a', '9'), tombstone: false },
    ]);
    assert.deepEqual(store.delete('team/a'), []);
  });

  it('an object with another uid replaces the previous object, with a deletion in between', () => {
    const store = new Store<Pod>();
    store.set(aPod('a', '1'));
    const changes = store.set(aPod('a', '2', 'one', { uid: 'recreated' }));
    assert.deepEqual(
      changes.map((change) => [change.type, change.object.metadata.uid]),
      [
        ['deleted', 'uid-a'],
        ['added', 'recreated'],
      ],
    );
  });

  it('replace reports objects that are missing in the new list as tombstones', () => {
    const store = new Store<Pod>();
    store.addIndex('node', (pod) => [pod.spec.node]);
    store.replace([aPod('a', '1'), aPod('b', '1'), aPod('c', '1')]);
    const changes = store.replace([aPod('a', '1'), aPod('b', '2', 'two'), aPod('d', '1')]);
    assert.deepEqual(
      changes.map((change) => [change.type, change.key, change.type === 'deleted' && change.tombstone]),
      [
        ['deleted', 'team/c', true],
        ['updated', 'team/b', false],
        ['added', 'team/d', false],
      ],
    );
    assert.deepEqual(
      store.byIndex('node', 'one').map((pod) => pod.metadata.name),
      ['a', 'd'],
    );
    assert.equal(store.size, 3);
  });

  it('an index finds objects, including those stored before the index was added', () => {
    const store = new Store<Pod>();
    store.set(aPod('a', '1'));
    store.addIndex('node', (pod) => [pod.spec.node, 'any']);
    store.set(aPod('b', '1', 'two'));
    assert.equal(store.byIndex('node', 'any').length, 2);
    store.set(aPod('a', '2', 'two'));
    assert.deepEqual(store.byIndex('node', 'one'), []);
    assert.equal(store.byIndex('node', 'two').length, 2);
    store.delete('team/a');
    assert.equal(store.byIndex('node', 'two').length, 1);
    assert.throws(() => store.byIndex('nodes', 'one'), RangeError);
    assert.throws(() => store.addIndex('node', () => []), RangeError);
  });

  it('the store drops managedFields and the last applied configuration without modifying its input', () => {
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}', kept: 'yes' };
    const pod = aPod('a', '1', 'one', { managedFields: [{ manager: 'kubectl' }], annotations });
    const store = new Store<Pod>();
    store.set(pod);
    assert.deepEqual(store.list(), [aPod('a', '1', 'one', { annotations: { kept: 'yes' } })]);
    assert.equal(pod.metadata.managedFields?.length, 1);
  });

  it('the option freeze deep-freezes stored objects', () => {
    const store = new Store<Pod>({ freeze: true });
    store.set(aPod('a', '1'));
    const spec = store.get('team/a')?.spec as { node: string };
    assert.throws(() => (spec.node = 'two'), TypeError);
  });

  it('the key of a cluster-scoped object is its name', () => {
    const store = new Store<KubeObject>();
    assert.equal(store.set({ metadata: { name: 'cluster' } })[0]?.key, 'cluster');
  });
});
