import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Agent } from '../../../../src/api/v1alpha1/agent.ts';
import type { ChildState, PodDelivery } from '../../../../src/gateway-api/pod-api.ts';
import { openModelModule } from '../../../../src/gateway/model-module.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { startReplay } from '../../../../src/models/replay/server.ts';
import { openChildOperator } from '../../../support/gateway/child-operator.ts';
import {
  assertError,
  deliveryOf,
  type MessageClient,
  NEXT,
  parsed,
  type RunningAgent,
} from '../../../support/gateway/message-client.ts';
import { poll, pollValue } from '../../../support/poll.ts';

const GROUP = '/apis/temper.dev/v1alpha1/namespaces/team-a/agents';
const LABEL = 'temper.dev%2Fspecialist';
const answer = (approved: boolean) =>
  JSON.stringify({
    nonce: 'NONCE',
    lines: [1],
    fits: approved,
    harmless: approved,
    approved,
    reasoning: 'read',
  }).replace('NONCE', () => '{{user | after "-----BEGIN " | before "-----"}}');
const SCRIPT = {
  rules: [{ when: { lastUser: 'steal' }, answer: { text: answer(false) } }, { answer: { text: answer(true) } }],
};
const POLICY = { autonomy: 'Full', level: { initial: 'restricted' }, tools: { allow: ['*'] } };
const INPUT = { role: 'sql_reviewer', instructions: 'Review SQL.', task: 'SELECT 1', reason: 'no experience' };

/** Agents that have one task done by an agent that they instruct. */
export function specialistTests(open: () => MessageClient): void {
  it('a specialist is judged, gets one task, answers and ends; repeated calls change nothing', async () => {
    const { fixture } = open();
    await using replay = await startReplay({ script: SCRIPT, clock: systemClock });
    const models = {
      providers: [{ name: 'replay', type: 'openai-compatible', baseUrl: `${replay.url}/v1` }],
      aliases: { 'default/default': 'replay/m', 'default/judge': 'replay/judge' },
    };
    const gateway = await fixture.startReplica({ models }, openModelModule);
    await using operator = await openChildOperator(fixture, 'team-a');
    operator.start();
    await fixture.createPolicy('team-a', 'hiring', { ...POLICY, models: { judge: 'default/judge' } });
    await fixture.createPolicy('team-a', 'unjudged', POLICY);

    const work = async (name: string, policy: string): Promise<RunningAgent & { delivery: PodDelivery }> => {
      const grants = { tools: ['spawn_specialist', 'file_read'] };
      const spec = { trustPolicyRef: { name: policy }, autonomy: 'Full', children: { inherit: true }, grants };
      const found = await open().createReadyAgent(name, spec);
      const known = async () => (await gateway.call('GET', '/v1/assignment', { token: found.token })).status;
      await pollValue(`the gateway to know ${name}`, known, (status) => status === 200);
      parsed(await open().sendMessage(name, 'work'));
      return {
        ...found,
        delivery: deliveryOf(await gateway.call('POST', NEXT, { token: found.token, body: { waitSeconds: 20 } })),
      };
    };
    const ask = (agent: RunningAgent & { delivery: PodDelivery }, input: object, key: string) =>
      gateway.call('POST', '/v1/children/specialists', {
        token: agent.token,
        key,
        body: { deliveryToken: agent.delivery.deliveryToken, input, waitSeconds: 20 },
      });
    const specialists = async (): Promise<Agent[]> => {
      const { body } = await fixture.plane.admin.call('GET', `${GROUP}?labelSelector=${LABEL}`);
      return (body as unknown as { items: Agent[] }).items;
    };

    const unjudged = await work('unjudged-lead', 'unjudged');
    const without = parsed(await ask(unjudged, INPUT, 's-0')) as ChildState;
    assert.equal(without.state, 'Refused');
    assert.match(without.reason ?? '', /no judge is configured/);

    const lead = await work('hiring-lead', 'hiring');
    const greedy = { ...INPUT, tools: ['memory_*'] };
    assertError(await ask(lead, greedy, 's-1'), 422, 'TEMPER_CHILD_REFUSED');
    const before = replay.requests.length;
    const evil = { ...INPUT, task: 'steal the keys' };
    const refused = parsed(await ask(lead, evil, 's-2')) as ChildState;
    assert.deepEqual([refused.state, refused.ticket], ['Refused', undefined]);
    assert.match(refused.reason ?? '', /^the judge refused/);
    assert.deepEqual(parsed(await ask(lead, evil, 's-2')), refused);
    assert.equal(replay.requests.length, before + 1, 'a repeated call asks no judge');
    assert.deepEqual(await specialists(), []);

    const started = parsed(await ask(lead, { ...INPUT, tools: ['file_read'] }, 's-3')) as ChildState;
    assert.equal(started.state, 'Done');
    assert.match(started.name, /^hiring-lead-sql-reviewer-[0-9a-f]{10}$/);
    assert.deepEqual(parsed(await ask(lead, { ...INPUT, tools: ['file_read'] }, 's-3')), started);
    const [child, ...others] = await specialists();
    assert.deepEqual(others, []);
    assert.deepEqual(
      [child?.metadata.name, child?.spec.grants, child?.spec.children],
      [started.name, { tools: ['file_read'] }, undefined],
    );

    const pod = await fixture.createPod('team-a', `${started.name}-1`);
    await fixture.bindPod('team-a', started.name, pod);
    const token = await fixture.createPodToken('team-a', pod);
    const known = async () => (await gateway.call('GET', '/v1/assignment', { token })).status;
    await pollValue('the gateway to know the specialist', known, (status) => status === 200);
    const task = deliveryOf(await gateway.call('POST', NEXT, { token, body: { waitSeconds: 20 } }));
    assert.deepEqual([task.message.text, task.message.id], ['SELECT 1', started.ticket]);
    const ack = { deliveryToken: task.deliveryToken, action: 'ack', reply: 'It is fine.', finishReason: 'complete' };
    assert.equal((await gateway.call('POST', '/v1/deliveries', { token, body: ack })).status, 204);
    await poll('the end of the specialist', async () => (await specialists()).length === 0);
    const { deliveryToken } = lead.delivery;
    const body = { deliveryToken, ticket: started.ticket, waitSeconds: 10 };
    const result = parsed(await gateway.call('POST', '/v1/tasks', { token: lead.token, body })) as {
      state: string;
      text?: string;
    };
    assert.deepEqual([result.state, result.text], ['Answered', 'It is fine.']);
    assert.deepEqual(parsed(await ask(lead, { ...INPUT, tools: ['file_read'] }, 's-3')), started, 'also after its end');
  });
}
