import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { PodDelivery } from '../../../../src/gateway-api/pod-api.ts';
import { QUEUES, subjects } from '../../../../src/nats/jetstream/names.ts';
import { createToolEvidence } from '../../../../src/nats/promotion/evidence.ts';
import type { GatewayFixture, HttpResponse } from '../../../support/gateway/gateway-fixture.ts';
import { KilledGateway } from '../../../support/gateway/killed-gateway.ts';
import { parsed } from '../../../support/gateway/parked-call-setup.ts';
import { pollValue } from '../../../support/poll.ts';
import { addTool } from '../../../support/promotion/prepared-tool.ts';

/** Agents whose reports are interrupted; `make chaos` sets more. */
const TIMES = Number(process.env['KILLS'] ?? 1);
const USED_BEFORE = 3;
/** The second of them is the fifth use, which requests the promotion. */
const USES = 3;
/** The gateway is killed this much later in each report than in the one before. */
const STEP_MS = 9;

/** A gateway that ends while it counts the uses of a tool and requests the promotion. */
export function reportKills(open: () => GatewayFixture): void {
  it('a gateway that is killed in the middle of reports counts each use once, and requests one promotion', async () => {
    const fixture = open();
    const bus = await fixture.nats.connect('gateway');
    const { manager } = await fixture.nats.connect('operator');
    await fixture.createPolicy('team-a', 'reporting', { level: { initial: 'restricted' } });
    for (let time = 0; time < TIMES; time += 1) {
      const name = `reporting-${time}`;
      const { token, uid } = await fixture.createRunningAgent('team-a', name, {
        trustPolicyRef: { name: 'reporting' },
        forge: { enabled: true, modes: ['Sandbox'] },
      });
      const { tool } = await addTool(bus, { name, uid }, { uses: USED_BEFORE });
      await using gateway = new KilledGateway(fixture);
      await gateway.replace();
      const post = (path: string, body: object, key: string): Promise<HttpResponse> =>
        gateway.current.call('POST', path, { token, body, key });
      await pollValue(
        `the gateway to know agent ${name}`,
        async () => (await gateway.current.call('GET', '/v1/assignment', { token })).status,
        (status) => status === 200,
      );
      const userToken = await fixture.createUserToken('team-a');
      for (let index = 0; index < USES; index += 1) {
        const path = `/v1/users/namespaces/team-a/agents/${name}/messages`;
        const body = { text: 'use it', session: 's1' };
        parsed(await gateway.current.call('POST', path, { userToken, key: `${name}-${index}`, body }));
        const next = await post('/v1/messages/next', { waitSeconds: 20 }, '');
        const { deliveryToken, message } = parsed(next) as PodDelivery;
        const use = {
          agent: name,
          namespace: 'team-a',
          session: 's1',
          digest: tool.digest,
          evidence: 'reported',
          rootMessage: message.root,
          input: { value: 100 + index },
          succeeded: true,
          milliseconds: 1,
          time: new Date().toISOString(),
        };
        const report = () => post('/v1/reports', { deliveryToken, uses: [use] }, `report-${index}`);
        parsed(await gateway.interrupted(report, (time * USES + index) * STEP_MS), 204);
        const outcome = { deliveryToken, action: 'ack', reply: 'used', finishReason: 'complete' };
        parsed(await post('/v1/deliveries', outcome, ''), 204);
      }
      const used = { digest: tool.digest, namespace: 'team-a' };
      const { totalUses, rootMessages } = await createToolEvidence(bus).statistics(uid, used);
      assert.deepEqual([totalUses, rootMessages], [USED_BEFORE + USES, USED_BEFORE + USES]);
      const filter = { subjects_filter: subjects.promotions(uid) };
      const { state } = await manager.streams.info(QUEUES.promotions.stream, filter);
      assert.deepEqual(state.subjects, { [subjects.promotions(uid)]: 1 });
    }
  });
}
