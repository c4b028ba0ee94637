import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { and, annotationChanged, generationChanged, labelChanged, not, or, type Predicate } from './predicates.ts';
import type { Change, KubeObject } from './store.ts';

type Metadata = Partial<KubeObject['metadata']>;

function anUpdate(before: Metadata, after: Metadata): Change<KubeObject> {
  return {
    type: 'updated',
    key: 'a',
    before: { metadata: { name: 'a', ...before } },
    object: { metadata: { name: 'a', ...after } },
  };
}

const NEW_SPEC = anUpdate({ generation: 1 }, { generation: 2 });
const NEW_STATUS = anUpdate({ generation: 1, resourceVersion: '1' }, { generation: 1, resourceVersion: '2' });
const ASKED = anUpdate({ generation: 1 }, { generation: 1, annotations: { 'reconcile-at': 'now' } });
const RELABELLED = anUpdate({ labels: { tier: 'a' } }, { labels: { tier: 'b' } });
const ADDED: Change<KubeObject> = { type: 'added', key: 'a', object: { metadata: { name: 'a' } } };
const DELETED: Change<KubeObject> = { ...ADDED, type: 'deleted', tombstone: true };

function passing(predicate: Predicate): boolean[] {
  return [NEW_SPEC, NEW_STATUS, ASKED, RELABELLED].map(predicate);
}

describe('predicates', () => {
  it('each predicate detects only its own kind of change', () => {
    assert.deepEqual(passing(generationChanged), [true, false, false, false]);
    assert.deepEqual(passing(annotationChanged('reconcile-at')), [false, false, true, false]);
    assert.deepEqual(passing(annotationChanged('other')), [false, false, false, false]);
    assert.deepEqual(passing(labelChanged('tier')), [false, false, false, true]);
  });

  it('and, or and not combine predicates', () => {
    const asked = annotationChanged('reconcile-at');
    assert.deepEqual(passing(or(generationChanged, asked)), [true, false, true, false]);
    assert.deepEqual(passing(and(generationChanged, asked)), [false, false, false, false]);
    assert.deepEqual(passing(not(or(generationChanged, asked))), [false, true, false, true]);
  });

  it('every predicate passes additions and deletions', () => {
    for (const predicate of [generationChanged, labelChanged('tier'), not(generationChanged)]) {
      assert.deepEqual([ADDED, DELETED].map(predicate), [true, true]);
    }
  });
});
