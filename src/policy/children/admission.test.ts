import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { anAgentSpec } from '../policy.testing.ts';
import { admitChild, type ChildFacts, type ChildRequest } from './admission.ts';
import { childName, childPrefix } from './child-name.ts';

const WORKER = anAgentSpec({ grants: { tools: ['*'], network: ['**:*'] }, children: { template: true } });

function refusal(request: ChildRequest, change: Partial<ChildFacts> = {}): string | undefined {
  const admission = admitChild(request, factsOf(change));
  return 'refused' in admission ? admission.refused : undefined;
}

function factsOf(change: Partial<ChildFacts> = {}): ChildFacts {
  const parent = { name: 'lead', spec: anAgentSpec({ grants: { tools: ['file_read'] } }) };
  return { parent, policy: {}, template: { name: 'worker', spec: WORKER }, children: 0, total: 0, ...change };
}

describe('the admission of a child', () => {
  it('a manifest within the parent is admitted with the restrictions of the parent', () => {
    const parent = { name: 'lead', spec: anAgentSpec({ grants: { tools: ['file_*'] }, denyTools: ['file_write'] }) };
    const spec = anAgentSpec({ grants: { tools: ['file_read'] } });
    const admission = admitChild({ spec }, factsOf({ parent }));
    assert.ok('spec' in admission);
    assert.deepEqual(admission.spec.denyTools, ['file_write']);
    assert.deepEqual(admission.spec.idle, { scaleToZeroAfter: '10m' });
  });

  it('a manifest beyond the parent is refused with every field', () => {
    const spec = anAgentSpec({ grants: { tools: ['*'], network: ['*'] } });
    assert.match(refusal({ spec }) ?? '', /spec\.grants\.tools\[0\] "\*" exceeds .*spec\.grants\.network\[0\] "\*"/);
  });

  it('a manifest that is looser than the policy is refused where the parent leaves the field open', () => {
    const policy: TrustPolicySpec = { autonomy: 'Supervised', constraints: { network: 'None', files: 'Workspace' } };
    const constraints = { network: 'Open' as const, files: 'Full' as const };
    const spec = anAgentSpec({ autonomy: 'Full', constraints });
    assert.equal(
      refusal({ spec }, { policy }),
      [
        'autonomy "Full" exceeds policy "standard" (autonomy is Supervised; an agent may only be stricter); narrow the grant or extend the policy',
        'constraints.files "Full" exceeds policy "standard" (constraints.files is Workspace; an agent may only be stricter); narrow the grant or extend the policy',
        'constraints.network "Open" exceeds policy "standard" (constraints.network is None; an agent may only be stricter); narrow the grant or extend the policy',
      ].join('; '),
    );
    const within = anAgentSpec({ autonomy: 'Locked', constraints: { network: 'None' } });
    assert.equal(refusal({ spec: within }, { policy }), undefined);
    assert.equal(refusal({ spec: anAgentSpec() }, { policy }), undefined, 'the policy decides what all leave open');
  });

  it('an approval for an action that the policy does not register is refused, without hidden characters', () => {
    const spec = anAgentSpec({ constraints: { requireApproval: ['example.com/ops:run', 'a\u200bb'] } });
    const refused = refusal({ spec }) ?? '';
    assert.match(refused, /requireApproval\[0\] "example\.com\/ops:run" is not a registered action type/);
    assert.ok(!refused.includes('\u200b'), refused);
  });

  it('a copy of a template is not compared with the policy of its parent, which its user decided about', () => {
    const policy: TrustPolicySpec = { constraints: { network: 'None' } };
    assert.equal(refusal({ template: 'worker' }, { policy }), undefined);
  });

  it('a copy of a template may have more than its parent, and is no template itself', () => {
    const admission = admitChild({ template: 'worker' }, factsOf());
    assert.ok('spec' in admission);
    assert.deepEqual([admission.spec.grants, admission.spec.children], [WORKER.grants, undefined]);
  });

  it('an agent that no user marked as a template is refused, and so are an absent one and the agent itself', () => {
    const unmarked = { name: 'worker', spec: anAgentSpec() };
    assert.match(refusal({ template: 'worker' }, { template: unmarked }) ?? '', /not a template/);
    assert.match(refusal({ template: 'worker' }, { template: undefined }) ?? '', /not a template/);
    const own = { name: 'lead', spec: WORKER };
    assert.match(refusal({ template: 'lead' }, { template: own }) ?? '', /copies of itself/);
  });

  it('the children of an agent and of a policy are limited', () => {
    assert.match(refusal({ template: 'worker' }, { children: 10 }) ?? '', /children\.perAgent .* allows 10/);
    assert.match(refusal({ template: 'worker' }, { total: 100 }) ?? '', /children\.total allows 100/);
    const policy = { children: { perAgent: 2, total: 3 } };
    assert.equal(refusal({ template: 'worker' }, { policy, children: 1, total: 2 }), undefined);
    assert.match(refusal({ template: 'worker' }, { policy, children: 2 }) ?? '', /allows 2/);
    assert.match(refusal({ template: 'worker' }, { policy, total: 3 }) ?? '', /allows 3/);
  });

  it('the name of a child starts with its parent, is short enough, and is the same for the same request', () => {
    const long = 'a'.repeat(63);
    const name = childName(long, long, 'key');
    assert.ok(name.length <= 63 && name.startsWith(childPrefix(long)), name);
    assert.equal(childName('lead', 'log-reader', 'key'), childName('lead', 'log-reader', 'key'));
    assert.notEqual(childName('lead', 'log-reader', 'key'), childName('lead', 'log-reader', 'other'));
    assert.match(childName('lead', 'log-reader', 'key'), /^lead-log-reader-[0-9a-f]{10}$/);
  });
});
