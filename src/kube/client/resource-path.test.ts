import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { apiVersionOf, resourceType } from './resource-path.ts';

describe('a resource type', () => {
  it('a resource type of the core group has no group', () => {
    assert.deepEqual(resourceType('v1', 'pods', 'Pod'), {
      group: '',
      version: 'v1',
      plural: 'pods',
      kind: 'Pod',
      namespaced: true,
    });
  });

  it('a resource type of a named group gives its apiVersion back', () => {
    const bindings = resourceType('rbac.authorization.k8s.io/v1', 'clusterrolebindings', 'ClusterRoleBinding', false);
    assert.equal(bindings.group, 'rbac.authorization.k8s.io');
    assert.equal(bindings.namespaced, false);
    assert.equal(apiVersionOf(bindings), 'rbac.authorization.k8s.io/v1');
  });
});
