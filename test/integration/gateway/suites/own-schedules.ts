import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { OwnScheduleList, PodDelivery } from '../../../../src/gateway-api/pod-api.ts';
import type { TriggeredRun, UserScheduleList } from '../../../../src/gateway-api/user-api.ts';
import { createAgentScheduleStore } from '../../../../src/nats/schedules/agent-schedule-store.ts';
import { createSessionStore } from '../../../../src/nats/sessions/session-store.ts';
import {
  AGENTS,
  assertError,
  type MessageClient,
  parsed,
  type RunningAgent,
} from '../../../support/gateway/message-client.ts';

const TOOLS = ['schedule_create', 'schedule_delete', 'schedule_list'];
const PERMISSIVE = { autonomy: 'Full', tools: { allow: ['*'] } };
const DAILY = { name: 'daily', times: '0 9 * * *', message: 'Report.' };

/** Schedules that agents make, and what users decide about schedules. */
export function ownScheduleTests(open: () => MessageClient): void {
  let names = 0;

  async function planner(spec: object = {}, policy: object = {}): Promise<RunningAgent & { name: string }> {
    const { fixture } = open();
    names += 1;
    const [name, policyName] = [`planner-${names}`, `planning-${names}`];
    await fixture.createPolicy('team-a', policyName, { ...PERMISSIVE, ...policy });
    const full = { trustPolicyRef: { name: policyName }, grants: { tools: TOOLS, schedules: 5 }, ...spec };
    return { ...(await open().createReadyAgent(name, full)), name };
  }

  async function work(agent: RunningAgent & { name: string }, session?: string): Promise<PodDelivery> {
    parsed(await open().sendMessage(agent.name, 'plan', session));
    return open().next(agent);
  }

  const post = (agent: RunningAgent, path: string, body: object, key = 'k-1', gateway = open().one) =>
    gateway.call('POST', path, { token: agent.token, key, body });
  const create = (
    agent: RunningAgent,
    { deliveryToken }: PodDelivery,
    input: object,
    key = 'k-1',
    gateway = open().one,
  ) => post(agent, '/v1/schedules', { deliveryToken, input }, key, gateway);
  const list = async (agent: RunningAgent, { deliveryToken }: PodDelivery) =>
    (parsed(await post(agent, '/v1/schedules/list', { deliveryToken })) as OwnScheduleList).schedules;
  const asUser = (agent: string, action: string, body: object, key: string) =>
    open().other.call('POST', `${AGENTS}/${agent}/schedules/${action}`, { userToken: open().userToken, key, body });
  const userList = async (agent: string) => {
    const path = `/v1/users/namespaces/team-a/schedules?agent=${agent}`;
    const found = parsed(await open().one.call('GET', path, { userToken: open().userToken })) as UserScheduleList;
    return found.schedules;
  };

  it('an agent makes a schedule once per call, lists it at any replica, and deletes it', async () => {
    const agent = await planner();
    const delivery = await work(agent);
    const first = parsed(await create(agent, delivery, DAILY)) as { nextRun: string };
    assert.match(first.nextRun, /T09:00:00\.000Z$/);
    assert.deepEqual(parsed(await create(agent, delivery, DAILY, 'k-1', open().other)), first);
    assertError(await create(agent, delivery, DAILY, 'k-2'), 422, 'TEMPER_TOOL_INPUT_INVALID');
    const [listed, ...others] = await list(agent, delivery);
    assert.deepEqual(others, []);
    assert.deepEqual(
      [listed?.name, listed?.times, listed?.message, listed?.stopped],
      ['daily', '0 9 * * *', 'Report.', undefined],
    );
    const remove = (name: string, key: string) =>
      post(agent, '/v1/schedules/delete', { deliveryToken: delivery.deliveryToken, name }, key);
    assert.equal((await remove('daily', 'd-1')).status, 204);
    assertError(await remove('daily', 'd-2'), 404, 'TEMPER_NOT_FOUND');
    assert.deepEqual(await list(agent, delivery), []);
  });

  it('a pod that skips its own checks makes no schedule that grant, policy or chain do not allow', async () => {
    const without = await planner({ grants: { tools: TOOLS } });
    assertError(await create(without, await work(without), DAILY), 403, 'TEMPER_POLICY_DENIED');
    const busy = await planner({}, { schedules: { runsPerHour: 10 } });
    const delivery = await work(busy);
    const refused = await create(busy, delivery, { ...DAILY, times: 'every 5m' });
    assertError(refused, 403, 'TEMPER_POLICY_DENIED');
    assert.match(refused.text, /12 runs in one hour/);
    assertError(await create(busy, delivery, { ...DAILY, times: 'every 5s' }, 'k-2'), 422, 'TEMPER_TOOL_INPUT_INVALID');
    const parallel = Array.from({ length: 10 }, (_, index) =>
      create(
        busy,
        delivery,
        { ...DAILY, name: `n-${index}` },
        `p-${index}`,
        index % 2 === 0 ? open().one : open().other,
      ),
    );
    await Promise.all(parallel);
    assert.ok((await list(busy, delivery)).filter(({ stopped }) => stopped === undefined).length <= 5);
  });

  it('a tainted session makes no schedule, and where the policy permits it the schedule is tainted', async () => {
    const connection = await open().fixture.nats.connect('gateway');
    for (const [policy, status] of [
      [{}, 403],
      [{ tainted: { deny: [] } }, 200],
    ] as const) {
      const agent = await planner({}, policy);
      const delivery = await work(agent, 's-tainted');
      const item = { role: 'user', text: 'plan' } as const;
      await createSessionStore(connection, agent.uid).append('s-tainted', 0, [item], { tainted: true });
      assert.equal((await create(agent, delivery, DAILY)).status, status);
      const owner = { uid: agent.uid, name: agent.name, namespace: 'team-a' };
      const { own } = await createAgentScheduleStore(connection).read(owner);
      assert.deepEqual(
        own.map(({ tainted }) => tainted),
        status === 200 ? [true] : [],
      );
      if (status !== 200) continue;
      parsed(await asUser(agent.name, 'trigger', { schedule: 'daily', by: 'ada' }, 't-1'));
      assert.equal((await open().next(agent)).message.tainted, true);
    }
  });

  it('the agents of a namespace have at most 500 schedules together', async () => {
    const store = createAgentScheduleStore(await open().fixture.nats.connect('gateway'));
    const neighbour = (index: number) => ({
      uid: `neighbour-${index}`,
      name: `neighbour-${index}`,
      namespace: 'team-a',
    });
    const full = (agent: ReturnType<typeof neighbour>, count: number) =>
      store.update(agent, () => ({
        agent,
        own: Array.from({ length: count }, (_, index) => ({
          ...DAILY,
          id: `own-${index}`,
          timeZone: 'UTC',
          runsPerHour: 1,
          createdAt: new Date().toISOString(),
        })),
      }));
    for (let index = 0; index < 10; index += 1) await full(neighbour(index), 50);
    const agent = await planner();
    const delivery = await work(agent);
    assertError(await create(agent, delivery, DAILY), 429, 'TEMPER_QUOTA_EXCEEDED');
    for (let index = 0; index < 10; index += 1) await full(neighbour(index), 0);
    assert.equal((await create(agent, delivery, DAILY)).status, 200);
  });

  it('a user starts a run once per request, and pauses and resumes schedules with a reason', async () => {
    const schedule = { mode: 'Periodic', cron: '0 9 * * 1', message: 'Weekly report.' };
    const agent = await planner({ schedule });
    const delivery = await work(agent);
    parsed(await create(agent, delivery, DAILY));
    parsed(
      await open().postDelivery(agent, {
        deliveryToken: delivery.deliveryToken,
        action: 'ack',
        reply: 'ok',
        finishReason: 'complete',
      }),
      204,
    );
    const run = parsed(await asUser(agent.name, 'trigger', { by: 'ada' }, 't-1')) as TriggeredRun;
    assert.deepEqual(parsed(await asUser(agent.name, 'trigger', { by: 'ada' }, 't-1')), { ...run, duplicate: true });
    const { message } = await open().next(agent);
    assert.deepEqual(
      [message.id, message.source, message.text, message.root, message.session],
      [run.id, 'Schedule', 'Weekly report.', run.id, run.session],
    );
    parsed(await asUser(agent.name, 'pause', { by: 'ada', reason: 'holidays' }, 'p-1'), 204);
    parsed(await asUser(agent.name, 'pause', { schedule: 'daily', by: 'ada', reason: 'too many' }, 'p-2'), 204);
    const shown = await userList(agent.name);
    assert.deepEqual(
      shown.map(({ schedule: own, times, paused }) => [own, times, paused?.by, paused?.reason]),
      [
        [undefined, '0 9 * * 1', 'ada', 'holidays'],
        ['daily', '0 9 * * *', 'ada', 'too many'],
      ],
    );
    parsed(await asUser(agent.name, 'resume', { by: 'ada' }, 'r-1'), 204);
    assert.deepEqual(
      (await userList(agent.name)).map(({ paused }) => paused?.by),
      [undefined, 'ada'],
    );
    assertError(
      await asUser(agent.name, 'pause', { schedule: 'weekly', by: 'ada', reason: 'x' }, 'p-3'),
      404,
      'TEMPER_NOT_FOUND',
    );
    const reactive = await planner();
    assertError(await asUser(reactive.name, 'trigger', { by: 'ada' }, 't-2'), 404, 'TEMPER_NOT_FOUND');
    const path = `${AGENTS}/${agent.name}/schedules/pause`;
    const body = { by: 'me', reason: 'x' };
    assert.equal((await open().one.call('POST', path, { token: agent.token, key: 'x', body })).status, 401);
  });
}
