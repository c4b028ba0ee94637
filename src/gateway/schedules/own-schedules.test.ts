import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_SCHEDULES_PER_NAMESPACE, type OwnSchedule } from '../../schedule/agent-schedule.ts';
import type { AgentSchedules, ScheduleOwner } from '../../schedule/agent-schedules.ts';
import { assertWithinNamespace, keepWithinNamespace } from './own-schedules.ts';

function schedule(id: string): OwnSchedule {
  const createdAt = '2026-01-01T00:00:00Z';
  return { id, name: id, times: '0 9 * * *', timeZone: 'UTC', message: 'x', runsPerHour: 1, createdAt };
}

const owner = (uid: string): ScheduleOwner => ({ uid, name: uid, namespace: 'team-a' });

/** A namespace in which another agent has so many schedules. */
function aNamespace(others: number) {
  const documents = new Map<string, AgentSchedules>();
  const own = Array.from({ length: others }, (_, index) => schedule(`other-${index}`));
  documents.set('other', { agent: owner('other'), own });
  const read = (agent: ScheduleOwner) => documents.get(agent.uid) ?? { agent, own: [] };
  const agentSchedules = {
    ofNamespace: async () => [...documents.values()],
    update: async (agent: ScheduleOwner, change: (before: AgentSchedules) => AgentSchedules) => {
      const after = change(read(agent));
      documents.set(agent.uid, after);
      return after;
    },
  };
  const deps = { agentSchedules: agentSchedules as never };
  return {
    deps,
    count: () => [...documents.values()].reduce((sum, each) => sum + each.own.length, 0),
    store: (uid: string) =>
      agentSchedules.update(owner(uid), (before) => ({ ...before, own: [...before.own, schedule(`own-${uid}`)] })),
  };
}

describe('the schedules of a namespace', () => {
  it('a schedule that another gateway made one too many is taken back', async () => {
    const { deps, store, count } = aNamespace(MAX_SCHEDULES_PER_NAMESPACE - 1);
    const refused = { code: 'TEMPER_QUOTA_EXCEEDED' };
    const agents = ['a', 'b', 'c'];
    for (const _ of agents) await assertWithinNamespace('team-a', deps);
    for (const uid of agents) await store(uid);
    await assert.rejects(keepWithinNamespace(owner('a'), 'own-a', deps), refused);
    await assert.rejects(keepWithinNamespace(owner('b'), 'own-b', deps), refused);
    await keepWithinNamespace(owner('c'), 'own-c', deps);
    assert.equal(count(), MAX_SCHEDULES_PER_NAMESPACE);
    await assert.rejects(assertWithinNamespace('team-a', deps), refused);
  });
});
