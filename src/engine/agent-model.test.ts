import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import { isTemperError } from '../lib/errors.ts';
import { createDecider } from '../policy/decider.ts';
import { createAgentModel, resolveModelAliases } from './agent-model.ts';

const ALIASES: Record<string, string> = { 'default/default': 'a/one', 'default/large': 'b/large' };
const resolve = (name: string): string => ALIASES[name] ?? name;

function modelsOf(model: AgentSpec['model'], models: TrustPolicySpec['models'] = {}) {
  const spec: AgentSpec = { trustPolicyRef: { name: 'p' }, model, prompt: { system: 'x' } };
  const policy = { name: 'p', spec: { models } };
  const agent = resolveModelAliases({ name: 'x', namespace: 'n', spec, policy, level: 'standard' }, resolve);
  const decider = createDecider({ agent, policy, level: 'standard', tainted: false, workspace: '/workspace' });
  return createAgentModel(agent, resolve, decider);
}

describe('the models of an agent', () => {
  it('aliases are resolved, and models that the policy does not allow are omitted', () => {
    const routing = { simple: 'default/default', medium: 'c/medium', complex: 'default/large' };
    const found = modelsOf({ primary: 'a/two', routing, fallbacks: ['c/other', 'a/three'] }, { allow: ['a/*', 'b/*'] });
    assert.deepEqual(
      [found.primary, found.routing, found.fallbacks],
      ['a/two', { simple: 'a/one', complex: 'b/large' }, ['a/three']],
    );
  });

  it('a policy that does not allow the primary model allows none', () => {
    assert.throws(
      () => modelsOf({ primary: 'c/x', routing: { simple: 'a/one' } }, { allow: ['a/*'] }),
      (error) => isTemperError(error, 'TEMPER_POLICY_DENIED'),
    );
  });

  it('the judge is the author when any model of the agent may have answered in its place', () => {
    const judged = (model: AgentSpec['model']): string => modelsOf(model, { judge: 'default/large' }).author;
    assert.equal(judged({ primary: 'a/two' }), 'a/two');
    assert.equal(judged({ primary: 'a/two', routing: { complex: 'b/large' } }), 'b/large');
    assert.equal(judged({ primary: 'a/two', routing: { simple: 'a/one' }, fallbacks: ['b/large'] }), 'b/large');
  });
});
