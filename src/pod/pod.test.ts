import assert from 'node:assert/strict';
import { access } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { aMessage } from '../remote/inbox.testing.ts';
import { PodBench, quickstartAssignment } from './pod.testing.ts';

const APRIL =
  'The folder data holds our orders, one CSV file a month. How many orders were paid in April, and what were they worth?';
const LIMIT = { timeout: 120_000 };

async function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

describe('a pod', LIMIT, () => {
  it('waits until it is bound, then forges, is judged, uses the tool in the same turn and answers', async () => {
    await using bench = await PodBench.open();
    const { gateway } = bench;
    const agent = bench.agent();
    const sandbox = bench.sandbox();
    await sandbox.said('connected to the agent');
    assert.equal(await isThere(bench.at('run/agent/ready')), false, 'a warm pod is not ready');
    const end = gateway.inbox.add(aMessage({ text: APRIL }));
    assert.equal(gateway.inbox.deliveries, 0);
    await gateway.assign(await quickstartAssignment());
    const answer = await end;
    assert.ok(answer.action === 'ack', JSON.stringify(answer));
    assert.match(answer.reply, /paid/i);
    assert.equal(answer.ending, 'complete');
    assert.ok(await isThere(bench.at('run/agent/ready')));
    const types = gateway.events.map(({ type }) => type);
    for (const type of ['message-received', 'tool-call', 'forge-gate', 'forge-accepted', 'session-end']) {
      assert.ok(types.includes(type as never), `${type} in ${types.join(' ')}`);
    }
    assert.ok(gateway.uses.some(({ evidence, succeeded }) => evidence === 'claimed' && succeeded));
    assert.ok(gateway.audit.every(({ evidence }) => evidence === 'claimed'));
    assert.ok(gateway.audit.some(({ action }) => action === 'tool.called'));
    assert.equal(await agent.end('SIGTERM'), 0, agent.log);
    assert.equal(await sandbox.end('SIGTERM'), 0, sandbox.log);
    assert.equal(await isThere(bench.at('run/agent/ready')), false);
  });
});
