import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Condition } from '../../../api/v1alpha1/common.ts';
import { systemClock } from '../../../lib/clock.ts';
import type { ConditionEvent } from '../../conditions.ts';
import { DelayedEvents } from './delayed-events.ts';

const MISSING: ConditionEvent = {
  type: 'Warning',
  reason: 'TrustPolicyNotFound',
  message: 'policy "p" does not exist',
};
const RUNNING: ConditionEvent = { type: 'Normal', reason: 'Running', message: 'runs' };

function aReadyCondition({ reason, message }: ConditionEvent): Condition[] {
  return [{ type: 'Ready', status: 'False', lastTransitionTime: '2031-05-05T10:00:00Z', reason, message }];
}

function aFixture() {
  const time = { now: 0 };
  const events = new DelayedEvents({ ...systemClock, monotonic: () => time.now });
  return { time, events };
}

describe('the delayed Events of an agent', () => {
  it('delayed Events do not include a missing policy that is created within the grace period', () => {
    const { time, events } = aFixture();
    assert.deepEqual(events.due('u', aReadyCondition(MISSING), [MISSING]), []);
    time.now = 1_000;
    assert.deepEqual(events.due('u', aReadyCondition(RUNNING), [RUNNING]), [RUNNING]);
    time.now = 10_000;
    assert.deepEqual(events.due('u', aReadyCondition(RUNNING), []), []);
    assert.equal(events.remainingMs('u'), undefined);
  });

  it('delayed Events include a policy that stays missing once, with the latest message, when the grace period ends', () => {
    const { time, events } = aFixture();
    events.due('u', aReadyCondition(MISSING), [MISSING]);
    assert.equal(events.remainingMs('u'), 5_000);
    time.now = 4_999;
    assert.deepEqual(events.due('u', aReadyCondition(MISSING), []), []);
    time.now = 5_000;
    const renamed = { ...MISSING, message: 'policy "q" does not exist' };
    assert.deepEqual(events.due('u', aReadyCondition(renamed), []), [renamed]);
    time.now = 20_000;
    assert.deepEqual(events.due('u', aReadyCondition(renamed), []), []);
  });

  it('delayed Events start a new grace period when the policy is deleted again', () => {
    const { time, events } = aFixture();
    events.due('u', aReadyCondition(MISSING), [MISSING]);
    events.due('u', aReadyCondition(RUNNING), [RUNNING]);
    time.now = 60_000;
    assert.deepEqual(events.due('u', aReadyCondition(MISSING), [MISSING]), []);
    assert.equal(events.remainingMs('u'), 5_000);
  });

  it('Events of other reasons are recorded at once', () => {
    const denied: ConditionEvent = { type: 'Warning', reason: 'GrantDenied', message: 'm' };
    const { events } = aFixture();
    assert.deepEqual(events.due('u', aReadyCondition(denied), [denied]), [denied]);
  });

  it('delayed Events are dropped with the agent', () => {
    const { events } = aFixture();
    events.due('u', aReadyCondition(MISSING), [MISSING]);
    events.forget('u');
    assert.equal(events.remainingMs('u'), undefined);
  });
});
