import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { priorityRank } from './priority.ts';

describe('the rank of the priority of an agent', () => {
  it('an agent without a priority has the rank of Normal, below High and above Low', () => {
    assert.equal(priorityRank({}, {}), priorityRank({ priority: 'Normal' }, {}));
    assert.ok(priorityRank({ priority: 'Low' }, {}) < priorityRank({}, {}));
    assert.ok(priorityRank({ priority: 'High' }, { maxPriority: 'Critical' }) > priorityRank({}, {}));
  });

  it('an agent has no higher rank than its policy allows, which is Normal unless it says more', () => {
    assert.equal(priorityRank({ priority: 'Critical' }, {}), priorityRank({}, {}));
    assert.equal(priorityRank({ priority: 'Critical' }, undefined), priorityRank({}, {}));
    assert.equal(
      priorityRank({ priority: 'Critical' }, { maxPriority: 'High' }),
      priorityRank({ priority: 'High' }, { maxPriority: 'High' }),
    );
    assert.equal(
      priorityRank({}, { maxPriority: 'Low' }),
      priorityRank({ priority: 'Low' }, {}),
      'the policy may slow all down',
    );
  });

  it('a value that is no priority has the lowest rank', () => {
    assert.equal(priorityRank({ priority: 'Urgent' as never }, {}), 0);
  });
});
