import assert from 'node:assert/strict';
import { it } from 'node:test';
import { sha256 } from '../../../../src/lib/canonical.ts';
import { readToolRecords } from '../../../../src/nats/tasks/task-records.ts';
import { AGENTS, type MessageClient, parsed } from '../../../support/gateway/message-client.ts';
import { pollValue } from '../../../support/poll.ts';
import { ownScheduleTests } from './own-schedules.ts';
import { toolAuditRequestTests } from './tool-audit-requests.ts';

/** What users do about the tools and the schedules of an agent. */
export function agentToolTests(open: () => MessageClient): void {
  toolAuditRequestTests(open);
  ownScheduleTests(open);

  it('a user has a tool verified again that the agent lost, and neither a pod nor another tool is accepted', async () => {
    const messages = open();
    const { fixture, one, userToken } = messages;
    const agent = await messages.createReadyAgent('loser');
    const path = `${AGENTS}/loser/reactivations`;
    const order = (tool: string) =>
      one.call('POST', path, { userToken, key: `order-${tool}`, body: { tool, reason: 'the data was wrong' } });
    assert.equal((await order('csv_rows')).status, 404);
    const entry = { digest: sha256('lost'), tool: 'csv_rows', cause: 'Harmful', message: 'figures' };
    const status = { deactivatedTools: [{ ...entry, since: new Date().toISOString() }] };
    await fixture.patchStatus('/apis/temper.dev/v1alpha1/namespaces/team-a/agents/loser', status);
    const accepted = await pollValue(
      'the gateway to know the status',
      () => order('csv_rows'),
      (sent) => sent.status === 200,
    );
    assert.deepEqual(parsed(accepted), { agent: 'loser', tool: 'csv_rows', digest: entry.digest });
    assert.equal((await order('csv_sum')).status, 404);
    const body = { tool: 'csv_rows', reason: 'mine' };
    assert.equal((await one.call('POST', path, { token: agent.token, key: 'pod', body })).status, 401);
    const { orders } = await readToolRecords(await fixture.nats.connect('gateway'), agent.uid);
    assert.deepEqual(
      orders.map(({ digest, reason }) => [digest, reason]),
      [[entry.digest, 'the data was wrong']],
    );
  });
}
