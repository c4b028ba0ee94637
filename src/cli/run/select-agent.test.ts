import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { describe, it } from 'node:test';
import { loadManifests } from '../../api/manifests.ts';
import { selectAgent, unusedObjectsNote } from './select-agent.ts';

const SAMPLES = resolve(import.meta.dirname, '../../../manifests');

describe('the agent of a run', () => {
  it('the agent is chosen by name and namespace, with the policy of its namespace', async () => {
    const manifests = await loadManifests([
      resolve(SAMPLES, 'samples'),
      resolve(SAMPLES, 'quickstart/agent.yaml'),
      resolve(SAMPLES, 'quickstart/policy.yaml'),
    ]);
    const chosen = (namespace: string) => {
      const { agent, policy } = selectAgent(manifests, { agent: 'analyst', namespace });
      return [agent.spec.trustPolicyRef.name, policy.metadata.namespace];
    };
    assert.deepEqual(chosen('team-a'), ['standard', 'team-a']);
    assert.deepEqual(chosen('default'), ['quickstart', undefined]);
    assert.throws(() => selectAgent(manifests, { agent: 'analyst' }), {
      code: 'TEMPER_USAGE',
      message: /2 agents named "analyst"; found: .*team-a\/analyst.*--agent and --namespace/,
    });
    assert.throws(() => selectAgent(manifests, { namespace: 'nowhere' }), /no agent in namespace "nowhere"/);
    assert.throws(() => selectAgent(manifests, { agent: 'other' }), /no agent named "other"/);
    assert.throws(() => selectAgent({ ...manifests, objects: [] }, {}), /contain no Agent; name the file or folder/);
  });

  it('objects that a run ignores are named', async () => {
    const manifests = await loadManifests([resolve(SAMPLES, 'samples')]);
    assert.match(unusedObjectsNote(manifests) ?? '', /ignores .*EmergentTool\/file-rows/);
    assert.doesNotMatch(unusedObjectsNote(manifests) ?? '', /Capability\/exchange-rate/);
    const used = await loadManifests([
      resolve(SAMPLES, 'quickstart/agent.yaml'),
      resolve(SAMPLES, 'quickstart/policy.yaml'),
    ]);
    assert.equal(unusedObjectsNote(used), undefined);
  });
});
