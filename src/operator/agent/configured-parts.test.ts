import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { configurationProblem } from './configured-parts.ts';

const resources = { cpu: '100m', memory: '192Mi', ephemeralStorage: '128Mi' };
const sandboxClasses = [{ name: 'standard', image: 'sandbox', resources, workspace: '1Gi' }];
const image = `registry.example.com/helper@sha256:${'a'.repeat(64)}`;
const agentPrograms = [{ name: 'helper', image, folder: '/opt/helper', program: 'main.js' }];

const problem = (spec: object, config: object = {}): string | undefined =>
  configurationProblem({ sandboxClasses, ...config }, { model: { primary: 'a/b' }, ...spec } as AgentSpec);

describe('what an agent names of the configuration of a platform', () => {
  it('an agent without a class and a program has no problem, and neither has one with those that exist', () => {
    assert.equal(problem({}), undefined);
    const spec = { sandbox: { class: 'standard' }, model: { primary: 'a/b', agent: 'helper' } };
    assert.equal(problem(spec, { agentPrograms }), undefined);
  });

  it('a class and a program that do not exist are named with those that do', () => {
    assert.match(
      problem({ sandbox: { class: 'large' } }) ?? '',
      /class "large" does not exist; use one of "standard"$/,
    );
    const spec = { model: { primary: 'a/b', agent: 'other' } };
    assert.match(
      problem(spec, { agentPrograms }) ?? '',
      /^spec\.model\.agent: agent program "other" does not exist; use one of "helper"$/,
    );
    assert.match(problem(spec) ?? '', /this platform lists none in agentPrograms; remove the field$/);
  });
});
