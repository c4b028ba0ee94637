import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import { ValidationCache } from '../agent/validation-cache.ts';
import { aPod, aPolicy, anAgent } from '../agent/observed.testing.ts';
import { pruneAgent, pruneChild, prunePod, prunePolicy } from './prune.ts';
import type { StoredAgent } from './types.ts';

const LARGE = 'x'.repeat(60_000);

function largeAgent(prompt = LARGE): StoredAgent {
  const agent = anAgent({ prompt: { system: prompt }, description: 'y'.repeat(1_000) }, { level: 'sandboxed' });
  const added = { annotations: { note: LARGE }, labels: { team: 'a' }, managedFields: [{ manager: 'kubectl' }] };
  return { ...agent, metadata: { ...agent.metadata, ...added } };
}

describe('the objects in the caches of the operator', () => {
  it('a cached agent has neither prompt, description nor annotations, and is still valid', () => {
    const pruned = pruneAgent(largeAgent());
    assert.ok(JSON.stringify(pruned).length < 1_000);
    assert.equal(new ValidationCache().specError(pruned), undefined);
    const { name, uid, generation } = largeAgent().metadata;
    assert.deepEqual([pruned.metadata.name, pruned.metadata.uid, pruned.metadata.generation], [name, uid, generation]);
    assert.deepEqual(pruned.status, { level: 'sandboxed' });
    assert.deepEqual(pruned.spec.model, largeAgent().spec.model);
    assert.equal(pruned.metadata.labels, undefined);
    const child = largeAgent();
    const labels = { ...child.metadata.labels, [LABELS.parentAgent]: 'u-parent' };
    const kept = pruneAgent({ ...child, metadata: { ...child.metadata, labels } }).metadata.labels;
    assert.deepEqual(kept, { [LABELS.parentAgent]: 'u-parent' }, 'the agent that started it');
  });

  it('two prompts have two digests, and the time of a deletion stays', () => {
    assert.notDeepEqual(pruneAgent(largeAgent('a')).spec.prompt, pruneAgent(largeAgent('b')).spec.prompt);
    const agent = largeAgent();
    const deletionTimestamp = '2031-01-01T00:00:00Z';
    const deleting = { ...agent, metadata: { ...agent.metadata, deletionTimestamp } };
    assert.equal(pruneAgent(deleting).metadata.deletionTimestamp, deletionTimestamp);
  });

  it('an agent without a prompt, stored under another CRD, stays as it is for the check of its spec', () => {
    const agent = anAgent({ prompt: undefined });
    assert.deepEqual(pruneAgent(agent).spec, agent.spec);
    assert.match(new ValidationCache().specError(pruneAgent(agent)) ?? '', /prompt/);
  });

  it('a cached policy keeps its spec and loses its annotations', () => {
    const policy = aPolicy({ quotas: { agents: 3 } });
    const pruned = prunePolicy({ ...policy, metadata: { ...policy.metadata, annotations: { note: LARGE } } });
    assert.deepEqual(pruned.spec, policy.spec);
    assert.equal(pruned.metadata.annotations, undefined);
  });

  it('a cached pod keeps only its own labels and annotations', () => {
    const pod = aPod('u-pod');
    const labels = { ...pod.metadata.labels, 'mesh.example/injected': 'true' };
    const annotations = { ...pod.metadata.annotations, 'mesh.example/status': LARGE };
    const pruned = prunePod({ ...pod, metadata: { ...pod.metadata, labels, annotations } });
    assert.deepEqual(Object.keys(pruned.metadata.labels ?? {}), [LABELS.agentUid]);
    assert.deepEqual(Object.keys(pruned.metadata.annotations ?? {}), [ANNOTATIONS.template]);
  });

  it('a cached object of a namespace has neither status nor annotations, and keeps what the operator compares', () => {
    const metadata = { name: 'temper-agents', labels: { 'app.kubernetes.io/managed-by': 'temper-operator' } };
    const quota = { metadata, spec: { hard: { pods: '3' } } };
    const stored = {
      ...quota,
      metadata: { ...metadata, annotations: { note: LARGE } },
      status: { used: { pods: '1' } },
    };
    assert.deepEqual(pruneChild(stored), quota);
  });
});
