import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { createDecider } from '../decider.ts';
import { aSnapshot, aTool } from '../policy.testing.ts';
import { allowedSchedules, scheduleRequest } from '../schedules.ts';
import type { PolicyRequest } from '../types.ts';

interface Of {
  agent?: Partial<AgentSpec>;
  policy?: TrustPolicySpec;
  generation?: number;
  tainted?: boolean;
}

const granted = (schedules: number) => ({ grants: { tools: ['*'], schedules } });

function deciderOf({ generation = 0, agent = granted(50), ...change }: Of = {}) {
  return createDecider({ ...aSnapshot({ agent, ...change }), generation });
}

function outcome(request: PolicyRequest, of: Of = {}): string {
  const { effect, rule } = deciderOf(of).decide(request);
  return `${effect} ${rule}`;
}

const FIRST = scheduleRequest([], 1);

describe('schedules that agents make', () => {
  it('an agent makes schedules only with a grant, and as many as it names', () => {
    assert.equal(outcome(FIRST, { agent: { grants: { tools: ['*'] } } }), 'Deny grant.schedules');
    assert.equal(outcome(FIRST), 'Allow grant.schedules');
    assert.equal(outcome(scheduleRequest([{ runsPerHour: 1 }], 1), { agent: granted(1) }), 'Deny grant.schedules');
  });

  it('the policy limits their number and their runs in one hour, 60 when it says nothing', () => {
    assert.equal(outcome(FIRST, { policy: { schedules: { perAgent: 0 } } }), 'Deny policy.schedules');
    assert.equal(outcome(scheduleRequest([], 60)), 'Allow grant.schedules');
    assert.equal(outcome(scheduleRequest([{ runsPerHour: 60 }], 1)), 'Deny policy.schedules.rate');
    const policy = { schedules: { runsPerHour: 120 } };
    assert.equal(outcome(scheduleRequest([{ runsPerHour: 60 }], 60), { policy }), 'Allow grant.schedules');
  });

  it('a child agent, an agent that works for another one, and a tainted session make none', () => {
    assert.equal(outcome(FIRST, { generation: 1 }), 'Deny schedules.child');
    assert.equal(outcome(scheduleRequest([], 1, 1)), 'Deny schedules.chain');
    assert.equal(outcome(FIRST, { tainted: true }), 'Deny tainted.schedule');
    assert.equal(outcome(FIRST, { tainted: true, policy: { tainted: { deny: [] } } }), 'Allow grant.schedules');
    assert.equal(outcome(FIRST, { agent: { ...granted(5), mode: 'Assist' } }), 'Deny mode');
    assert.equal(outcome(FIRST, { policy: { suspend: true } }), 'Deny suspend.policy');
  });

  it('a tainted session makes a schedule only where tainted.deny has neither the schedule nor the message of the tool', () => {
    const tool = aTool({ name: 'schedule_create', category: 'communication', action: 'comms:internal' });
    const tainted = (deny: ('schedule' | 'message')[]) => {
      const options = { tainted: true, agent: granted(5), policy: { tainted: { deny } } };
      const decider = createDecider(aSnapshot(options));
      return [decider.decide(tool).effect, decider.decide(FIRST).effect];
    };
    assert.deepEqual(tainted([]), ['Allow', 'Allow']);
    assert.deepEqual(tainted(['schedule']), ['Allow', 'Deny']);
    assert.deepEqual(tainted(['message']), ['Deny', 'Allow']);
  });

  it('the grant opens the category of the tools at every level', () => {
    const tool = aTool({ name: 'schedule_create', category: 'communication', action: 'comms:internal' });
    const of = (schedules: number) => createDecider(aSnapshot({ agent: granted(schedules), level: 'sandboxed' }));
    assert.equal(of(1).decide(tool).effect, 'Allow');
    assert.equal(of(0).decide(tool).rule, 'level.category');
  });

  it('the oldest schedules stay allowed, and one that is too much takes no place of a later one', () => {
    const own = [
      { id: 'a', runsPerHour: 40 },
      { id: 'b', runsPerHour: 40 },
      { id: 'c', runsPerHour: 20 },
    ];
    assert.deepEqual([...allowedSchedules(deciderOf(), own)], ['a', 'c']);
    assert.deepEqual([...allowedSchedules(deciderOf({ agent: granted(1) }), own)], ['a']);
    assert.deepEqual([...allowedSchedules(deciderOf({ generation: 1 }), own)], []);
  });
});
