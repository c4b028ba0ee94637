import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describeNotInForce, entryOf, type FieldNotInForce, fieldsNotInForce } from './not-in-force.ts';

const TABLE: FieldNotInForce[] = [
  { kind: 'Capability', field: 'spec.backend.later', where: 'run', reason: 'a run calls it' },
  { kind: 'Agent', field: 'spec.triggers[].later', where: 'cluster', plan: 'wait' },
  { kind: 'Agent', field: 'spec.later', where: 'everywhere', plan: 'do more' },
];

describe('fields that are not in force', () => {
  it('the fields of a spec that are not in force are found also within lists, each with its own words', () => {
    const described = (kind: 'Agent' | 'Capability', spec: object) =>
      fieldsNotInForce(kind, spec, TABLE).map(describeNotInForce);
    assert.deepEqual(described('Capability', { backend: { later: {} } }), [
      'spec.backend.later has an effect only on a cluster: a run calls it',
    ]);
    assert.deepEqual(described('Agent', { triggers: [{}, { later: 1 }], later: false }), [
      'spec.triggers[].later has no effect on a cluster yet; it will wait',
      'spec.later has no effect yet; it will do more',
    ]);
    assert.deepEqual(described('Agent', { backend: { later: {} }, triggers: [{}], later: null }), []);
  });

  it('an entry covers its field and the fields below it', () => {
    const covered = (field: string) => entryOf('Capability', field, TABLE)?.field;
    assert.equal(covered('spec.backend.later'), 'spec.backend.later');
    assert.equal(covered('spec.backend.later.url'), 'spec.backend.later');
    assert.equal(covered('spec.backend.later[].url'), 'spec.backend.later');
    assert.equal(covered('spec.backend.laterOn'), undefined);
    assert.equal(entryOf('Agent', 'spec.backend.later', TABLE), undefined);
  });
});
