import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { digestOf } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import type { PlainObject } from '../kube/types.ts';
import { admissionAge } from './admission-age.ts';

const NAMES = ['temper-approvals', 'temper-contributors', 'temper-reserved'];
const EXPECTED = Object.fromEntries(NAMES.map((name) => [name, 'installed']));

function object(name: string, creationTimestamp: string, spec: object, change: object = {}): PlainObject {
  const annotations = { 'temper.dev/admission-policy-digest': digestOf(spec as Json) };
  return { metadata: { name, creationTimestamp, annotations }, spec: { ...spec, ...change } } as unknown as PlainObject;
}

function installed(second: number, change: { without?: string; policy?: object; binding?: object } = {}) {
  const time = (index: number) => new Date(Date.UTC(2031, 0, 1, 0, 0, index === 1 ? second : 0)).toISOString();
  const present = NAMES.filter((name) => name !== change.without);
  return {
    policies: present.map((name, index) => object(name, time(index), { failurePolicy: 'Fail' }, change.policy)),
    bindings: present.map((name) =>
      object(name, time(0), { policyName: name, validationActions: ['Deny'] }, change.binding),
    ),
  };
}

describe('the age of the admission policies', () => {
  it('Approvals count from ten seconds after the newest policy or binding on', () => {
    assert.deepEqual(admissionAge(installed(5), EXPECTED), { since: new Date(Date.UTC(2031, 0, 1, 0, 0, 15)) });
    assert.deepEqual(admissionAge(installed(40), EXPECTED), { since: new Date(Date.UTC(2031, 0, 1, 0, 0, 50)) });
  });

  it('no Approval counts while a policy or binding is missing, changed or not expected', () => {
    for (const without of NAMES) assert.ok('problem' in admissionAge(installed(0, { without }), EXPECTED), without);
    assert.ok('problem' in admissionAge(installed(0, { policy: { failurePolicy: 'Ignore' } }), EXPECTED));
    assert.ok('problem' in admissionAge(installed(0, { binding: { validationActions: ['Audit'] } }), EXPECTED));
    assert.ok('problem' in admissionAge(installed(0), undefined));
    assert.ok('problem' in admissionAge(installed(0), { 'temper-approvals': 'installed' }));
  });
});
