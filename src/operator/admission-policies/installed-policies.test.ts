import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { digestOf } from '../../lib/canonical.ts';
import type { PlainObject } from '../kube/types.ts';
import { POLICY_DIGEST_ANNOTATION, installedPoliciesError, installedPoliciesVersion } from './installed-policies.ts';

const SPEC = { failurePolicy: 'Fail', validations: [{ expression: 'false' }] };
const BINDING = { policyName: 'temper-namespace-protection', validationActions: ['Deny'] };

function policyObject(
  spec: Record<string, unknown>,
  digest: string = digestOf(JSON.parse(JSON.stringify(spec))),
): PlainObject {
  return {
    metadata: {
      name: 'temper-namespace-protection',
      uid: 'u',
      resourceVersion: '1',
      annotations: { [POLICY_DIGEST_ANNOTATION]: digest },
    },
    spec,
  };
}

const EXPECTED = { 'temper-namespace-protection': digestOf(SPEC) };
const GOOD = { policies: [policyObject(SPEC)], bindings: [policyObject(BINDING)] };

describe('installedPoliciesError', () => {
  it('installedPoliciesError is undefined when each policy and binding is unchanged', () => {
    assert.equal(installedPoliciesError(GOOD, EXPECTED), undefined);
  });

  const weak = { ...SPEC, failurePolicy: 'Ignore' };
  for (const [what, installed, problem] of [
    ['a policy is missing', { ...GOOD, policies: [] }, /Policy "temper-namespace-protection" does not exist/],
    ['a binding is missing', { ...GOOD, bindings: [] }, /Binding "temper-namespace-protection" does not exist/],
    ['a policy was edited', { ...GOOD, policies: [policyObject(weak, digestOf(SPEC))] }, /was changed/],
    ['a policy and its digest annotation were edited', { ...GOOD, policies: [policyObject(weak)] }, /another version/],
    [
      'a binding only warns',
      { ...GOOD, bindings: [policyObject({ ...BINDING, validationActions: ['Warn'] })] },
      /does not deny in all namespaces/,
    ],
    [
      'a binding excludes namespaces',
      { ...GOOD, bindings: [policyObject({ ...BINDING, matchResources: { namespaceSelector: {} } })] },
      /does not deny in all namespaces/,
    ],
  ] as const) {
    it(`installedPoliciesError is set when ${what}`, () =>
      assert.match(installedPoliciesError(installed, EXPECTED) ?? '', problem));
  }

  it('installedPoliciesError accepts unchanged policies of another release, and rejects changed ones', () => {
    const installed = { 'temper-namespace-protection': 'installed' };
    const otherSpec = { ...SPEC, validations: [{ expression: 'true' }] };
    assert.equal(installedPoliciesError({ ...GOOD, policies: [policyObject(otherSpec)] }, installed), undefined);
    const changed = { ...GOOD, policies: [policyObject(weak, digestOf(SPEC))] };
    assert.match(installedPoliciesError(changed, installed) ?? '', /was changed/);
    assert.match(installedPoliciesError({ ...GOOD, policies: [] }, installed) ?? '', /does not exist/);
  });

  it('installedPoliciesError has a version that changes with any policy', () => {
    const [policy] = GOOD.policies;
    const changed = {
      ...GOOD,
      policies: [{ ...policy, metadata: { ...policy?.metadata, name: 'x', resourceVersion: '2' } }],
    };
    assert.notEqual(installedPoliciesVersion(GOOD), installedPoliciesVersion(changed));
  });
});
