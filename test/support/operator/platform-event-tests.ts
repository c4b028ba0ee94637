import assert from 'node:assert/strict';
import { it } from 'node:test';
import { TYPES } from '../../../src/operator/kube/types.ts';
import { createAcceptedEvents } from '../../../src/nats/events/accepted-events.ts';
import { createTriggerFires } from '../../../src/nats/events/trigger-fires.ts';
import { createObservedObjects } from '../../../src/nats/events/observed-objects.ts';
import { createSubscriptions } from '../../../src/nats/events/subscriptions.ts';
import { buildAgent, buildTrustPolicy } from '../builders.ts';
import { newUid } from '../nats/nats-fixture.ts';
import type { OperatorNatsFixture } from '../nats/operator-nats-fixture.ts';
import { pollValue } from '../poll.ts';
import { NEVER_ABORTED } from '../stubs.ts';

const AGENTS = 6;

/** Tests of the events of objects, for the suite of an operator that is connected to NATS and serves namespace team-a. No gateway takes them. */
export function platformEventTests(fixture: () => OperatorNatsFixture): void {
  it('each change of many agents is announced once, while operators end and begin, and none that left meanwhile is missed', async () => {
    const { apiServer } = fixture();
    const { client } = apiServer;
    const gateway = await fixture().connectGateway();
    const names = Array.from({ length: AGENTS }, (_, index) => `observed-${index}`);
    const announced = async (subject: string): Promise<string[]> => {
      const open = await createAcceptedEvents(gateway).open();
      const found = open.filter(({ event }) => event.subject === subject && names.includes(event.agent));
      return found.map(({ event }) => event.agent).toSorted();
    };
    const all = (subject: string) =>
      pollValue(
        `${subject} of every agent`,
        () => announced(subject),
        (agents) => new Set(agents).size === AGENTS,
      );
    // Without a listener the changes of Agents are not announced.
    const owner = { uid: newUid(), namespace: 'team-a' };
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const subscription = { subject: 'temper.agent.*', message: 'x', session: 's-1', expiresAt };
    await createSubscriptions(gateway).add(owner, 'observer', subscription);
    await apiServer.apply(buildTrustPolicy('team-a', {}, 'observed'));
    const spec = (suspend: boolean) => ({ trustPolicyRef: { name: 'observed' }, suspend });
    await Promise.all(names.map((name) => apiServer.apply(buildAgent('team-a', name, spec(false)))));
    await all('temper.agent.running');

    await Promise.all(names.map((name) => apiServer.apply(buildAgent('team-a', name, spec(true)))));
    const first = fixture().operator;
    fixture().operator = await fixture().startOperator();
    await first[Symbol.asyncDispose]();
    await all('temper.agent.suspended');

    await fixture().operator[Symbol.asyncDispose]();
    for (const name of names) await client.delete(TYPES.agents, { namespace: 'team-a', name }, {}, NEVER_ABORTED);
    fixture().operator = await fixture().startOperator();
    await all('temper.agent.terminated');
    for (const subject of ['temper.agent.running', 'temper.agent.suspended', 'temper.agent.terminated'])
      assert.deepEqual(await announced(subject), names.toSorted(), subject);
    await pollValue(
      'the end of the records',
      () => createObservedObjects(gateway).all(),
      (records) => !records.some(({ object }) => names.includes(object.name)),
    );
  });

  it('the status of an agent has what its triggers did', async () => {
    const { apiServer } = fixture();
    const triggers = [
      { name: 'paid', subject: 'orders.paid', message: '{{event}}' },
      { name: 'lost', subject: 'orders.lost', message: '{{event}}' },
    ];
    const spec = { trustPolicyRef: { name: 'observed' }, schedule: { mode: 'Proactive', triggers } };
    await apiServer.apply(buildAgent('team-a', 'triggered', spec));
    const { metadata } = await apiServer.waitForAgent('team-a', 'triggered', 'exists', () => true);
    const fires = createTriggerFires(await fixture().connectGateway());
    await fires.fire(metadata.uid, 'paid', { maxFiresPerHour: 5, cooldownMs: 0 }, 'evt-1');
    await fires.refuse(metadata.uid, 'paid', 'Full');
    let edits = 0;
    const { status } = await pollValue(
      'the numbers of the triggers',
      async () => {
        // Numbers alone are written every five minutes, and an edit of the spec at once.
        const system = `You are edited ${(edits += 1)} times.`;
        const at = { namespace: 'team-a', name: 'triggered' };
        await apiServer.client.patch(TYPES.agents, at, { spec: { prompt: { system } } }, NEVER_ABORTED);
        return apiServer.getAgent('team-a', 'triggered');
      },
      (agent) => agent.status?.triggers?.some(({ refused }) => refused > 0) === true,
      { intervalMs: 500 },
    );
    assert.deepEqual(
      status?.triggers?.map(({ name, fires: fired, refused, lastRefusal }) => [
        name,
        fired,
        refused,
        lastRefusal?.reason,
      ]),
      [
        ['paid', 1, 1, 'Full'],
        ['lost', 0, 0, undefined],
      ],
    );
  });
}
