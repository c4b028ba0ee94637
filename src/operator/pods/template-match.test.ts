import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OPERATOR_CONFIG } from '../../../test/support/operator/start-operator.ts';
import { type PodTemplate, podTemplate } from './pod-template.ts';
import { matchesTemplate } from './template-match.ts';

interface Spec {
  containers: { name: string; image: string; args?: string[]; securityContext: Record<string, unknown> }[];
  volumes: Record<string, unknown>[];
  tolerations: object[];
  [field: string]: unknown;
}

const [CLASS] = OPERATOR_CONFIG.sandboxClasses;

function aTemplate(): PodTemplate {
  if (CLASS === undefined) throw new Error('the configuration has no sandbox class');
  return podTemplate(OPERATOR_CONFIG, CLASS);
}

/** The stored spec after `change`. */
function storedAfter(change: (spec: Spec) => void): object {
  const spec = structuredClone(aTemplate().spec) as Spec;
  change(spec);
  return spec;
}

const ADDITIONS: readonly [string, (spec: Spec) => void][] = [
  ['a toleration', (spec) => spec.tolerations.push({ key: 'spot', operator: 'Exists' })],
  ['a sidecar', (spec) => spec.containers.unshift({ name: 'proxy', image: 'mesh:1', securityContext: {} })],
  ['an init container', (spec) => Object.assign(spec, { initContainers: [{ name: 'init', image: 'mesh:1' }] })],
  ['a volume', (spec) => spec.volumes.unshift({ name: 'added', emptyDir: {} })],
  ['a variable', (spec) => Object.assign(spec.containers[0] ?? {}, { env: [{ name: 'REGION', value: 'a' }] })],
];

const CHANGES: readonly [string, (spec: Spec) => void][] = [
  ['another image', (spec) => Object.assign(spec.containers[0] ?? {}, { image: 'other:1' })],
  ['another command', (spec) => Object.assign(spec.containers[1] ?? {}, { command: ['/bin/sh'] })],
  ['other arguments', (spec) => Object.assign(spec.containers[1] ?? {}, { args: ['serve', 'agent'] })],
  ['a privileged container', (spec) => Object.assign(spec.containers[0]?.securityContext ?? {}, { runAsUser: 0 })],
  ['a missing container', (spec) => spec.containers.pop()],
  ['another volume source', (spec) => spec.volumes.splice(0, 1, { name: spec.volumes[0]?.['name'], hostPath: {} })],
  ['a missing volume', (spec) => spec.volumes.pop()],
  ['the network of the host', (spec) => Object.assign(spec, { hostNetwork: true })],
  ['another account', (spec) => Object.assign(spec, { serviceAccountName: 'default' })],
  ['a token for the API server', (spec) => Object.assign(spec, { automountServiceAccountToken: true })],
];

describe('the comparison of a stored pod with its template', () => {
  it('a pod as it was created matches, with the defaults of the API server', () => {
    const stored = storedAfter((spec) => Object.assign(spec, { schedulerName: 'default-scheduler' }));
    assert.equal(matchesTemplate(stored, aTemplate(), true), true);
    assert.equal(matchesTemplate(stored, aTemplate(), false), true);
    assert.equal(matchesTemplate(undefined, aTemplate(), true), false);
  });

  for (const [what, change] of ADDITIONS) {
    it(`a pod to which a webhook added ${what} matches only where its labels are reserved to the operator`, () => {
      assert.equal(matchesTemplate(storedAfter(change), aTemplate(), true), true);
      assert.equal(matchesTemplate(storedAfter(change), aTemplate(), false), false);
    });
  }

  for (const [what, change] of CHANGES) {
    it(`a pod with ${what} does not match`, () => {
      assert.equal(matchesTemplate(storedAfter(change), aTemplate(), true), false);
    });
  }
});
