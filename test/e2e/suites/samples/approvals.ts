import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { ApprovalRequest } from '../../../../src/api/v1alpha1/approvalrequest.ts';
import type { KubeObject } from '../../../../src/kube/informer/store.ts';
import { poll } from '../../../support/poll.ts';
import { NAMESPACE, type SampleSetup } from './sample-setup.ts';

/** The sample whose calls wait for an approver. */
export function approvals(setup: () => SampleSetup): void {
  const waiting = async (): Promise<string | undefined> => {
    const printed = await setup().cluster.kubectl('get', 'approvalrequests', '-n', NAMESPACE, '-o', 'json');
    const { items } = JSON.parse(printed) as { items: (KubeObject & ApprovalRequest)[] };
    const found = items.find(({ spec, status }) => spec.agent.name === 'clerk' && status?.decision === undefined);
    return found?.metadata.name;
  };

  const approve = async (): Promise<void> => {
    const request = await poll('the request of clerk', waiting, { timeoutMs: 120_000 });
    const listed = await setup().run('kubectl temper requests -n quickstart');
    assert.ok(listed.includes(request), listed);
    const values = { REQUEST: request };
    await setup().run('kubectl temper approve REQUEST --reason "the note is right" -n quickstart', values);
  };

  it('a call waits for an approver, and the agent answers after the approval', async () => {
    await using _sample = await setup().start('approvals', 'clerk');
    const question = 'kubectl temper send clerk "Note that the figures of April are final." --follow -n quickstart';
    const [printed] = await Promise.all([setup().run(question), approve()]);
    assert.match(printed, /waits for an approver/);
    assert.match(printed, /◂ clerk: The note is in notes\/april\.md\.\n$/);
  });
}
