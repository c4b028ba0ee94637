import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { anAgent, aPolicy } from './observed.testing.ts';
import { ValidationCache } from './validation-cache.ts';

/** Each pair of these takes the search for a difference to its limit. */
const heavy = (end: string) => Array.from({ length: 60 }, (_, index) => `${'a*'.repeat(100)}${index}${end}`);

describe('the validation of specs in the operator', () => {
  it('an agent whose primary model is denied is reported, and one whose other models are denied is not', () => {
    const policy = aPolicy({ models: { allow: ['a/*'] } });
    const modelProblem = (model: object) => new ValidationCache().policyViolations(anAgent({ model }), policy).model;
    assert.match(modelProblem({ primary: 'b/x', fallbacks: ['a/y'] }) ?? '', /b\/x/);
    assert.equal(modelProblem({ primary: 'a/x', fallbacks: ['b/y'], routing: { simple: 'b/z' } }), undefined);
  });

  it('an agent with a looser constraint than its policy is reported until one of the two changes', () => {
    const cache = new ValidationCache();
    const policy = aPolicy({ constraints: { network: 'None' } });
    const problem = (network: string, generation: number): string | undefined => {
      const agent = anAgent({ constraints: { network } });
      return cache.policyViolations({ ...agent, metadata: { ...agent.metadata, generation } }, policy).grant;
    };
    assert.equal(
      problem('Allowlist', 1),
      'constraints.network "Allowlist" exceeds policy "standard" (constraints.network is None; an agent may only be stricter); narrow the grant or extend the policy',
    );
    assert.equal(problem('None', 2), undefined);
    assert.match(problem('Open', 3) ?? '', /"Open" exceeds/);
  });

  it('a wildcard on a public suffix is reported for the agent and for its policy, with the field and what to write', () => {
    const agent = anAgent({ grants: { network: ['api.example.com', '*.github.io'] } });
    assert.match(
      new ValidationCache().specError(agent) ?? '',
      /^spec\.grants\.network\[1\]: .*public suffix "github\.io".*name a domain/,
    );
    const policy = aPolicy({ egress: { allow: ['**.co.uk'] } });
    assert.match(new ValidationCache().specError(policy) ?? '', /^spec\.egress\.allow\[0\]: .*public suffix "co\.uk"/);
    assert.match(
      new ValidationCache().policyViolations(anAgent({}), policy).grant ?? '',
      /spec\.egress\.allow of policy ".*" "\*\*\.co\.uk" is not a pattern/,
    );
  });

  it('patterns of one agent take a bounded number of steps, and the next agent is validated in full', () => {
    const cache = new ValidationCache();
    const small = anAgent({ denyTools: ['b*'], grants: { tools: ['ba*'] } });
    assert.match(cache.specError(small) ?? '', /spec\.denyTools denies all of it/);
    const large = anAgent({ denyTools: ['b*', ...heavy('x')], grants: { tools: [...heavy('y'), 'ba*'] } });
    const [one, other] = [large, small].map((agent, index) => {
      return { ...agent, metadata: { ...agent.metadata, uid: `u-${index}` } };
    });
    assert.ok(one !== undefined && other !== undefined);
    assert.equal(cache.specError(one), undefined, 'beyond the budget no pattern counts as denied');
    assert.match(cache.specError(other) ?? '', /spec\.denyTools denies all of it/);
  });
});
