import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { API_VERSION } from '../../../api/names.ts';
import type { AgentSpec } from '../../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../../api/v1alpha1/trustpolicy.ts';
import { anAgentSpec } from '../../../policy/policy.testing.ts';
import type { AgentDefinition } from '../../../standalone/team/member.ts';
import { clusterFieldsNote } from './cluster-fields-note.ts';

const LIMITED: TrustPolicy = {
  apiVersion: API_VERSION,
  kind: 'TrustPolicy',
  metadata: { name: 'standard' },
  spec: { quotas: { cpu: '8', tokensPerDay: 1_000 } },
};

function anAgent(name: string, spec: Partial<AgentSpec>, policy = LIMITED): AgentDefinition {
  return { agent: { apiVersion: API_VERSION, kind: 'Agent', metadata: { name }, spec: anAgentSpec(spec) }, policy };
}

describe('the note about fields that only a cluster acts on', () => {
  it('the note names the object and each field that is set, and a policy of several agents once', () => {
    const agents = [
      anAgent('one', { sandbox: { class: 'gvisor', workspace: { size: '1Gi' } }, idle: { scaleToZeroAfter: '5m' } }),
      anAgent('two', { idle: { closeSessionsAfter: '24h' } }),
    ];
    assert.equal(
      clusterFieldsNote(agents),
      'these fields have no effect with temper run, only on a cluster: Agent "one": spec.sandbox.class, spec.sandbox.workspace.size, spec.idle.scaleToZeroAfter; TrustPolicy "standard": spec.quotas.cpu',
    );
  });

  it('manifests whose fields are all in force have no note', () => {
    const policy = { ...LIMITED, spec: { quotas: { agents: 3 } } };
    assert.equal(clusterFieldsNote([anAgent('two', { limits: { turns: 3 } }, policy)]), undefined);
  });
});
