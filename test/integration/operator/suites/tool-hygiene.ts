import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createTaskRecords, type TaskRecords } from '../../../../src/nats/tasks/task-records.ts';
import { reasonOf } from '../../../../src/operator/conditions.ts';
import type { StoredAgent } from '../../../../src/operator/kube/types.ts';
import { digestOf } from '../../../../src/lib/canonical.ts';
import type { Digest } from '../../../../src/lib/canonical.ts';
import { pollValue } from '../../../support/poll.ts';
import { addTool, type PreparedTool } from '../../../support/promotion/prepared-tool.ts';
import { honestOutputs } from '../../../support/promotion/simulated-verifier.ts';
import { doubled, type PromotionFixture, REVIEWERS } from '../../../support/promotion/promotion-fixture.ts';

/** Tools that leave the service of one agent, by its records in NATS. */
export function toolHygiene(open: () => PromotionFixture): void {
  const activeReason = async (name: string, digest: Digest): Promise<string | undefined> => {
    const objects = await open().objectsOf(name);
    return reasonOf(objects.find(({ spec }) => spec.digest === digest)?.status?.conditions, 'Active');
  };
  const waitForReason = (name: string, digest: Digest, reason: string) =>
    pollValue(
      `the tool of ${name} to be ${reason}`,
      () => activeReason(name, digest),
      (found) => found === reason,
    );
  const entriesOf = async (
    name: string,
  ): Promise<NonNullable<NonNullable<StoredAgent['status']>['deactivatedTools']>> =>
    (await open().apiServer.getAgent('team-a', name)).status?.deactivatedTools ?? [];
  /** A second tool of the agent, promoted beside its first one. */
  const promoteTriple = async (agent: PreparedTool): Promise<Digest> => {
    const fixture = open();
    const tests = [{ input: '{"value":2}', expectedOutput: '{"result":6}' }];
    const next = await addTool(fixture.gateway, agent, {
      change: {
        artifact: { name: 'triple', description: 'Multiplies a number.', tests },
        use: (index) => ({ output: digestOf({ result: (index + 10) * 3 }) }),
      },
    });
    fixture.behaviour = (work, pod) => (work.artifact.name === 'triple' ? tripled : doubled)(work, pod);
    await promote(next);
    return next.tool.digest;
  };
  const promote = async (prepared: PreparedTool): Promise<void> => {
    await open().request(prepared);
    const record = await open().settled(prepared);
    assert.equal(record?.state, 'Promoted', JSON.stringify(record));
    await waitForReason(prepared.name, prepared.tool.digest, 'Verified');
  };

  it('a tool that spoils the tasks of its agent leaves its service alone, and returns when its tests pass again', async () => {
    const fixture = open();
    const agent = await fixture.prepare();
    const { digest } = agent.tool;
    await promote(agent);
    const tasks = createTaskRecords(fixture.gateway, () => ({ reserve: async () => undefined }));
    await recordTasks(tasks, agent.uid, { count: 20, outcome: 'completed' });
    await recordTasks(tasks, agent.uid, { count: 8, outcome: 'failed', tools: [digest] });
    await waitForReason(agent.name, digest, 'Deactivated');
    const [entry] = await entriesOf(agent.name);
    assert.deepEqual([entry?.digest, entry?.cause], [digest, 'Harmful']);
    assert.match(entry?.message ?? '', /^8 of its 8 tasks ended badly, and 0 of 20 others/);
    await tasks.reactivate(agent.uid, { digest, reason: 'the data was wrong', requestedAt: Date.now() });
    await waitForReason(agent.name, digest, 'Verified');
    const [returned] = await entriesOf(agent.name);
    assert.ok(Date.parse(returned?.reactivatedAt ?? '') > Date.parse(returned?.since ?? ''));
    const actions = (await fixture.decisionsOf(agent.uid)).filter((action) => action.startsWith('tool.'));
    assert.deepEqual(
      actions.filter((action) => action !== 'tool.examined'),
      ['tool.promoted', 'tool.deactivated', 'tool.reactivated'],
    );
  });

  it('the status of an agent names the tools that its tasks use together', async () => {
    const fixture = open();
    const agent = await fixture.prepare({ models: REVIEWERS });
    await promote(agent);
    const together = [agent.tool.digest, await promoteTriple(agent)];
    const tasks = createTaskRecords(fixture.gateway, () => ({ reserve: async () => undefined }));
    await recordTasks(tasks, agent.uid, { count: 3, outcome: 'completed', tools: together });
    const pairsOf = async () => (await fixture.apiServer.getAgent('team-a', agent.name)).status?.toolsUsedTogether;
    const names = [agent.tool.artifact.name, 'triple'].toSorted();
    const [pair] = (await pollValue('the pair', pairsOf, (pairs) => (pairs ?? []).length > 0)) ?? [];
    assert.deepEqual(pair, { tools: names, percent: 100 });
  });

  it('an agent that has its maximum of tools loses the one that the fewest messages used', async () => {
    const fixture = open();
    const forge = { limits: { agentTools: 1, whenFull: 'DeactivateLeastUseful' } };
    const agent = await fixture.prepare({ models: REVIEWERS, forge });
    await promote(agent);
    await promoteTriple(agent);
    await waitForReason(agent.name, agent.tool.digest, 'Deactivated');
    const [entry] = await entriesOf(agent.name);
    assert.equal(entry?.cause, 'LeastUseful');
    assert.match(entry?.message ?? '', /maximum of tools.*\(0\) when "triple" was promoted/);
  });
}

const tripled = honestOutputs(({ value }: { value: number }) => ({ result: value * 3 }));
let recorded = 0;

async function recordTasks(
  tasks: TaskRecords,
  uid: string,
  { count, outcome, tools = [] }: { count: number; outcome: 'completed' | 'failed'; tools?: readonly Digest[] },
): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const message = `msg-hygiene-${(recorded += 1)}`;
    const endedAt = Date.now();
    const calls = tools.map((digest) => ({ digest, calls: 1, failures: 0 }));
    if (calls.length > 0) await tasks.called(uid, { message, deliveries: 1, endedAt }, calls);
    await tasks.end(uid, { message, session: 's1', outcome, deliveries: 1, endedAt });
  }
}
