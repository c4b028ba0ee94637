import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RegisteredTool } from '../types.ts';
import { aSharedTool } from '../tempering.testing.ts';
import { plannedRuns } from './reverification-plan.ts';

const OWNER = { agent: 'analyst', namespace: 'team-a' };

function calling(name: string, { artifact, digest }: RegisteredTool): RegisteredTool {
  const steps = [{ name: 'first', tool: `${artifact.name}@${digest}`, inputMapping: '{}' }];
  return aSharedTool(name, { implementation: { mode: 'Compose', steps } });
}

function namesOf(tools: readonly RegisteredTool[]): string[] {
  const never = (): number => 0;
  return plannedRuns({ tools, owner: OWNER, everyMs: 1, verifiedAt: never, retryAt: never }).map(({ tool }) => tool);
}

describe('plannedRuns', () => {
  it('a composed tool is left out while a tool that it calls, also through a step, is out of service', () => {
    const step = { ...aSharedTool('step'), active: true };
    const direct = { ...calling('direct', step), active: true };
    const indirect = { ...calling('indirect', direct), active: true };
    assert.deepEqual(namesOf([indirect, direct, step]).toSorted(), ['direct', 'indirect', 'step']);
    assert.deepEqual(namesOf([indirect, direct, { ...step, active: false }]), []);
    assert.deepEqual(namesOf([indirect, { ...direct, active: false }, step]), ['step']);
  });
});
