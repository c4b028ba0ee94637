import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { memoryRecordStore } from '../../lib/record-store.ts';
import { aCaller, anAcceptance, anArtifact, aRegistry, aVerdict, createFakeClock } from '../tempering.testing.ts';
import type { Registry } from './registry.ts';

const OWNER = { agent: 'analyst', namespace: 'team-a' };
const LIMITS = { sessionTools: 10, agentTools: 50 };
const TOOL = anAcceptance();

const names = (registry: Registry, agent = OWNER.agent): string[] =>
  registry.resolve(agent, OWNER.namespace, 's-1').map(({ artifact }) => artifact.name);

async function share(registry: Registry): Promise<void> {
  const order = {
    digest: TOOL.digest,
    owner: OWNER,
    verdicts: [aVerdict()],
    actor: 'user/kim',
    limits: LIMITS,
    sourceWithheld: false,
  };
  await registry.promote({ ...order, to: 'Agent' });
  await registry.promote({ ...order, to: 'Shared' });
}

describe('the deactivation of a tool for one agent', () => {
  it('a deactivated tool leaves the views of its agent at once, and its reason survives a restart', async () => {
    const records = memoryRecordStore();
    const registry = await aRegistry(records);
    await registry.register(TOOL, aCaller());
    const done = registry.deactivate(TOOL.digest, OWNER, '9 of its 9 tasks ended badly');
    assert.deepEqual(names(registry), []);
    await done;
    const again = await aRegistry(records);
    assert.deepEqual(names(again), []);
    assert.equal(again.get(TOOL.digest)?.inactiveReason, 'deactivated: 9 of its 9 tasks ended badly');
    assert.equal(again.deactivation(TOOL.digest, OWNER)?.reason, '9 of its 9 tasks ended badly');
  });

  it('its agent cannot forge the same digest again, and can forge another version', async () => {
    const registry = await aRegistry();
    await registry.register(TOOL, aCaller());
    await registry.deactivate(TOOL.digest, OWNER, 'bad');
    await assert.rejects(registry.register(TOOL, aCaller({ session: 's-2' })), { code: 'TEMPER_TOOL_DEMOTED' });
    await registry.register(anAcceptance(anArtifact('double', { description: 'Doubles it.' })), aCaller());
    assert.deepEqual(names(registry), ['double']);
  });

  it('another agent keeps a Shared tool', async () => {
    const registry = await aRegistry();
    await registry.register(TOOL, aCaller());
    await share(registry);
    await registry.deactivate(TOOL.digest, OWNER, 'bad');
    assert.deepEqual([names(registry), names(registry, 'other')], [[], ['double']]);
    await registry.reactivate(TOOL.digest, OWNER, { reason: 'fixed', actor: 'user/kim', limits: LIMITS });
    assert.deepEqual(names(registry), ['double']);
  });

  it('a reactivated tool is active again, also after a restart, and earlier tasks do not count', async () => {
    const records = memoryRecordStore();
    const clock = createFakeClock();
    const registry = await aRegistry(records, clock);
    await registry.register(TOOL, aCaller());
    await registry.deactivate(TOOL.digest, OWNER, 'bad');
    await registry.reactivate(TOOL.digest, OWNER, { reason: 'fixed', actor: 'user/kim', limits: LIMITS });
    for (const opened of [registry, await aRegistry(records, clock)]) {
      assert.deepEqual(names(opened), ['double']);
      assert.equal(opened.reactivatedAt(TOOL.digest, OWNER), clock.now().getTime());
    }
  });

  it('a tool whose name another version has taken, and a demoted tool, are not reactivated', async () => {
    const registry = await aRegistry();
    const order = { reason: 'fixed', actor: 'user/kim', limits: LIMITS };
    await registry.register(TOOL, aCaller());
    await registry.deactivate(TOOL.digest, OWNER, 'bad');
    await registry.register(anAcceptance(anArtifact('double', { description: 'Doubles it.' })), aCaller());
    await assert.rejects(registry.reactivate(TOOL.digest, OWNER, order), { code: 'TEMPER_FORGE_NAME_TAKEN' });
    await registry.demote(TOOL.digest, 'wrong', 'user/kim');
    await assert.rejects(registry.reactivate(TOOL.digest, OWNER, order), { code: 'TEMPER_TOOL_DEMOTED' });
    const other = anAcceptance(anArtifact('other'));
    await assert.rejects(registry.reactivate(other.digest, OWNER, order), { code: 'TEMPER_NOT_FOUND' });
  });
});
