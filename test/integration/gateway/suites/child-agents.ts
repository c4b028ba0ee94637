import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Agent } from '../../../../src/api/v1alpha1/agent.ts';
import type { ChildState, KnownAgents, PodDelivery } from '../../../../src/gateway-api/pod-api.ts';
import { childName } from '../../../../src/policy/children/child-name.ts';
import { openChildOperator } from '../../../support/gateway/child-operator.ts';
import type { HttpResponse } from '../../../support/gateway/gateway-fixture.ts';
import { assertStatuses, flood } from '../../../support/gateway/neighbours/flood.ts';
import { assertError, type MessageClient, parsed, type RunningAgent } from '../../../support/gateway/message-client.ts';
import { poll, pollValue } from '../../../support/poll.ts';

const GROUP = '/apis/temper.dev/v1alpha1/namespaces/team-a/agents';
const TOOLS = ['agent_spawn', 'agent_kill', 'agent_list', 'agent_message', 'file_*'];
const PERMISSIVE = { autonomy: 'Full', level: { initial: 'restricted' }, tools: { allow: ['*'] } };
const STORM = 200;
/** Fewer than one address may have, because other connections of these tests have the same one. */
const MAX_CONNECTIONS = 48;

/** Agents that start agents. `open` gives the client of two replicas. */
export function childAgentTests(open: () => MessageClient): void {
  let names = 0;

  async function parent(
    spec: object = {},
    policy: object = {},
  ): Promise<RunningAgent & { name: string; policy: string }> {
    const client = open();
    names += 1;
    const [name, policyName] = [`lead-${names}`, `leading-${names}`];
    await client.fixture.createPolicy('team-a', policyName, { ...PERMISSIVE, ...policy });
    const full = {
      trustPolicyRef: { name: policyName },
      autonomy: 'Full',
      children: { inherit: true },
      grants: { tools: TOOLS, spawn: ['worker-*'] },
      ...spec,
    };
    const found = await client.createReadyAgent(name, full);
    return { ...found, name, policy: policyName };
  }

  async function work(agent: { name: string } & RunningAgent): Promise<PodDelivery> {
    const client = open();
    parsed(await client.sendMessage(agent.name, 'lead'));
    return client.next(agent);
  }

  const post = (agent: RunningAgent, path: string, body: object, key = 'k-1', gateway = open().one) =>
    gateway.call('POST', path, { token: agent.token, key, body });
  const spawn = (
    agent: RunningAgent,
    { deliveryToken }: PodDelivery,
    input: object,
    key = 'k-1',
    gateway = open().one,
  ) => post(agent, '/v1/children', { deliveryToken, input, waitSeconds: 20 }, key, gateway);
  const kill = (agent: RunningAgent, { deliveryToken }: PodDelivery, target: string, key = 'end-1') =>
    post(agent, '/v1/children/end', { deliveryToken, agent: target, waitSeconds: 20 }, key);
  const childOf = (response: HttpResponse) => parsed(response) as ChildState;

  async function childrenOf({ uid }: RunningAgent): Promise<Agent[]> {
    const selector = `?labelSelector=temper.dev%2Fparent-agent-uid%3D${uid}`;
    const { body } = await open().fixture.plane.admin.call('GET', `${GROUP}${selector}`);
    return (body as unknown as { items: Agent[] }).items;
  }

  it('an agent starts a child within its own permissions, once per call, and messages, lists and ends it', async () => {
    await using operator = await openChildOperator(open().fixture, 'team-a');
    operator.start();
    const lead = await parent({ denyTools: ['file_write'], quotas: { tokensPerHour: 1_000 } });
    const delivery = await work(lead);
    const input = { name: 'log-reader', prompt: 'Read logs.', tools: ['file_read'] };
    const first = childOf(await spawn(lead, delivery, input));
    assert.deepEqual(first, { name: first.name, state: 'Done' });
    assert.match(first.name, new RegExp(`^${lead.name}-log-reader-[0-9a-f]{10}$`));
    assert.deepEqual(childOf(await spawn(lead, delivery, input, 'k-1', open().other)), first);
    const [child, ...others] = await childrenOf(lead);
    assert.deepEqual(others, []);
    assert.deepEqual(
      [child?.spec.denyTools, child?.spec.quotas, child?.spec.grants, child?.spec.trustPolicyRef.name],
      [['file_write'], { tokensPerHour: 1_000 }, { tools: ['file_read'] }, lead.policy],
    );
    const owners = (child?.metadata as { ownerReferences?: { uid: string }[] } | undefined)?.ownerReferences;
    assert.deepEqual(
      owners?.map(({ uid }) => uid),
      [lead.uid],
    );

    const draft = { to: first.name, session: 's', text: 'read' };
    const { deliveryToken } = delivery;
    parsed(await post(lead, '/v1/messages', { deliveryToken, draft, ask: {} }, 'm-1'));
    const known = parsed(await post(lead, '/v1/agents/list', { deliveryToken })) as KnownAgents;
    assert.deepEqual(known, { agents: [{ name: first.name, relation: 'Child', suspended: false }], complete: true });

    assert.deepEqual(childOf(await kill(lead, delivery, first.name)), { name: first.name, state: 'Done' });
    await poll('the end of the child', async () => (await childrenOf(lead)).length === 0);
  });

  it('a child that asks for more than its parent has or its policy is refused with every field', async () => {
    const lead = await parent();
    const delivery = await work(lead);
    const spec = { grants: { network: ['*'], shell: ['*'] }, limits: { turns: 500 }, forge: { enabled: true } };
    const refused = await spawn(lead, delivery, { name: 'greedy', prompt: 'x', tools: ['*'], spec });
    assertError(refused, 422, 'TEMPER_CHILD_REFUSED');
    for (const field of ['grants.tools', 'grants.network', 'grants.shell', 'forge.enabled', 'limits.turns'])
      assert.ok(refused.text.includes(field), field);
    const semi = { autonomy: 'Semi', rules: { allow: ['org:hire'] }, constraints: { network: 'None' } };
    const strict = await parent({ autonomy: undefined }, semi);
    const looser = { autonomy: 'Full', constraints: { network: 'Open' } };
    const exceeding = await spawn(strict, await work(strict), { name: 'looser', prompt: 'x', spec: looser });
    assertError(exceeding, 422, 'TEMPER_CHILD_REFUSED');
    for (const field of ['autonomy "Full" exceeds policy', 'constraints.network "Open" exceeds policy'])
      assert.ok(exceeding.text.replaceAll('\\"', '"').includes(field), exceeding.text);
    const invalid = { name: 'x', prompt: 'x', spec: { limits: { turns: 'many' } } };
    assertError(await spawn(lead, delivery, invalid, 'k-2'), 422, 'TEMPER_TOOL_INPUT_INVALID');
    const huge = { name: 'x', prompt: 'x'.repeat(17_000) };
    assertError(await spawn(lead, delivery, huge, 'k-3'), 422, 'TEMPER_TOOL_INPUT_INVALID');
    assert.deepEqual(await childrenOf(lead), []);
  });

  it('an agent copies only templates that a user marked and that its grants name', async () => {
    const client = open();
    await using operator = await openChildOperator(client.fixture, 'team-a');
    operator.start();
    const lead = await parent({ children: {} });
    const worker = { trustPolicyRef: { name: lead.policy }, grants: { tools: ['*'] } };
    const marked = { ...worker, children: { template: true } };
    await client.createReadyAgent(`worker-csv-${names}`, marked);
    await client.createReadyAgent(`worker-plain-${names}`, worker);
    await client.createReadyAgent(`other-${names}`, marked);
    const delivery = await work(lead);
    const copy = (template: string, key: string) => spawn(lead, delivery, { name: 'copy', template }, key);
    assertError(await copy(`worker-plain-${names}`, 'k-1'), 422, 'TEMPER_CHILD_REFUSED');
    assertError(await copy(`other-${names}`, 'k-2'), 403, 'TEMPER_POLICY_DENIED');
    assertError(await spawn(lead, delivery, { name: 'own', prompt: 'x' }, 'k-3'), 403, 'TEMPER_POLICY_DENIED');
    assert.equal(childOf(await copy(`worker-csv-${names}`, 'k-4')).state, 'Done');
    const [child] = await childrenOf(lead);
    assert.deepEqual([child?.spec.grants, child?.spec.children], [{ tools: ['*'] }, undefined]);
  });

  it('200 requests, 48 at a time, start as many children as the policy permits', async () => {
    await using operator = await openChildOperator(open().fixture, 'team-a');
    operator.start();
    const lead = await parent({}, { children: { perAgent: 3 } });
    const delivery = await work(lead);
    const { deliveryToken } = delivery;
    const body = { deliveryToken, input: { name: 'n', prompt: 'x' }, waitSeconds: 5 };
    const start = (index: number) => post(lead, '/v1/children', body, `storm-${index}`);
    assertStatuses(await flood(STORM, start, MAX_CONNECTIONS), [200, 422, 429], [200]);
    await poll('the operator to end the requests', async () => (await childrenOf(lead)).length === 3);
    const again = Array.from({ length: 10 }, (_, index) =>
      spawn(lead, delivery, { name: 'n', prompt: 'x' }, `late-${index}`),
    );
    const ended = await Promise.all(again);
    assert.ok(
      ended.every(({ status, text }) => status !== 200 || (JSON.parse(text) as ChildState).state === 'Refused'),
    );
    assert.equal((await childrenOf(lead)).length, 3);
  });

  it('a request of which an operator stopped at any step starts one child, and never takes over the object of a user', async () => {
    const client = open();
    await using operator = await openChildOperator(client.fixture, 'team-a');
    const lead = await parent();
    const delivery = await work(lead);
    const start = (name: string, key: string) =>
      post(
        lead,
        '/v1/children',
        {
          deliveryToken: delivery.deliveryToken,
          input: { name, prompt: 'x' },
          waitSeconds: 0.01,
        },
        key,
      );
    assert.equal(childOf(await start('one', 'k-1')).state, 'Requested');
    const stops = { end: () => Promise.reject(new Error('the operator stopped')) };
    for (let times = 0; times < 3; times += 1) await assert.rejects(operator.round(stops), /the operator stopped/);
    await operator.round();
    assert.equal(childOf(await start('one', 'k-1')).state, 'Done');
    assert.equal((await childrenOf(lead)).length, 1);

    const squatted = childName(lead.name, 'two', `${lead.uid}/k-2`);
    await client.fixture.createAgent('team-a', squatted, { trustPolicyRef: { name: lead.policy } });
    childOf(await start('two', 'k-2'));
    await operator.round();
    const { state, reason } = childOf(await start('two', 'k-2'));
    assert.equal(state, 'Refused');
    assert.match(reason ?? '', /exists already/);
    assertError(await kill(lead, delivery, squatted), 403, 'TEMPER_POLICY_DENIED');
  });

  it('children end with their parent, and get no message while it is suspended', async () => {
    const client = open();
    await using operator = await openChildOperator(client.fixture, 'team-a');
    operator.start();
    const lead = await parent();
    const { name } = childOf(await spawn(lead, await work(lead), { name: 'one', prompt: 'x', tools: ['file_read'] }));
    const pod = await client.fixture.createPod('team-a', `${name}-1`);
    await client.fixture.bindPod('team-a', name, pod);
    const token = await client.fixture.createPodToken('team-a', pod);
    const isSuspended = async (): Promise<boolean | undefined> => {
      const { status, text } = await client.one.call('GET', '/v1/assignment', { token });
      return status === 200 ? (JSON.parse(text) as { suspended: boolean }).suspended : undefined;
    };
    await pollValue('the child to run', isSuspended, (value) => value === false);
    await client.fixture.patchAgent('team-a', lead.name, { spec: { suspend: true } });
    await pollValue('the child to be suspended', isSuspended, (value) => value === true);
    await client.fixture.plane.admin.call('DELETE', `${GROUP}/${lead.name}`);
    await poll('the end of the child', async () => (await childrenOf(lead)).length === 0);
  });
}
