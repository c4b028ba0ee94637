import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { OwnSchedule } from '../../schedule/agent-schedule.ts';
import type { AgentSchedules } from '../../schedule/agent-schedules.ts';
import { aPolicy, anAgent } from '../agent/observed.testing.ts';
import { ScheduleIndex } from './schedule-index.ts';

const AGENTS = 11;
const EACH = 50;

function schedulesOf(agent: number, count: number, namespace = anAgent().metadata.namespace): AgentSchedules {
  const own = Array.from({ length: count }, (_, index): OwnSchedule => {
    const createdAt = new Date(Date.UTC(2026, 0, 1, 0, agent, index)).toISOString();
    return {
      id: `own-${index}`,
      name: `s-${index}`,
      times: '0 9 * * *',
      timeZone: 'UTC',
      message: 'x',
      runsPerHour: 1,
      createdAt,
    };
  });
  return { agent: { uid: `u-${agent}`, name: `a-${agent}`, namespace }, own };
}

async function indexOf(all: AgentSchedules[]) {
  let changed = all;
  let sequence = 1;
  const index = new ScheduleIndex({ changes: async () => ({ changed, sequence }), revision: async () => sequence });
  const change = async (next: AgentSchedules[]): Promise<void> => {
    changed = next;
    sequence += 1;
    await index.round(() => undefined);
  };
  await index.round(() => undefined);
  const isAllowed = (agent: number, id: string): boolean => {
    const base = anAgent();
    const metadata = { ...base.metadata, uid: `u-${agent}`, name: `a-${agent}` };
    const stored = { ...base, metadata, spec: { ...base.spec, grants: { schedules: EACH } } };
    const policy = aPolicy();
    const unlimited = { ...policy, spec: { ...policy.spec, schedules: { runsPerHour: 1_000 } } };
    return index.isAllowed(stored, unlimited, id);
  };
  return { index, change, isAllowed };
}

describe('the schedules of a namespace in the operator', () => {
  it('beyond 500 the newest ones do not run, and run again when older ones are gone', async () => {
    const all = Array.from({ length: AGENTS }, (_, agent) => schedulesOf(agent, agent === AGENTS - 1 ? 2 : EACH));
    const { index, change, isAllowed } = await indexOf([...all, schedulesOf(99, EACH, 'another')]);
    assert.deepEqual([isAllowed(0, 'own-0'), isAllowed(9, 'own-49')], [true, true]);
    assert.deepEqual([isAllowed(10, 'own-0'), isAllowed(10, 'own-1')], [false, false]);
    await change([schedulesOf(0, EACH - 1)]);
    assert.deepEqual([isAllowed(10, 'own-0'), isAllowed(10, 'own-1')], [true, false]);
    index.forget('u-1');
    assert.ok(isAllowed(10, 'own-1'), 'the schedules of a deleted agent do not count');
  });
});
