import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createSubscriptions } from '../../../../src/nats/events/subscriptions.ts';
import { createNatsInbox } from '../../../../src/nats/inbox/inbox.ts';
import type { ModelGatewayFixture, ModelGatewayReplica } from '../../../support/gateway/model-gateway-fixture.ts';
import { aCandidate } from '../../../support/gateway/review-answers.ts';

interface ForgeSetup {
  readonly fixture: ModelGatewayFixture;
  readonly replicas: readonly ModelGatewayReplica[];
}

const TIMEOUT_MS = 20_000;

/** The events of tools that gateways register. The policies `standard` and `strict` have judges that accept and refuse. */
export function forgedEventTests(open: () => ForgeSetup): void {
  it('an accepted tool is one event of its chain, however often it is submitted, and a refused one is none', async () => {
    const { fixture, replicas } = open();
    const forge = { enabled: true, modes: ['Sandbox' as const] };
    fixture.setAgent('author', { forge });
    fixture.setAgent('careless', { forge }, 'strict');
    const uid = fixture.setAgent('watcher', { grants: { events: { subscribe: ['temper.tool.*'] } } });
    const bus = await fixture.nats.connect('gateway');
    const subscription = {
      subject: 'temper.tool.forged',
      message: '{{event.agent}} {{event.tool}} {{event.digest}} {{source}}',
      session: 's-watcher',
      expiresAt: new Date(Date.now() + 600_000).toISOString(),
    };
    await createSubscriptions(bus).add({ uid, namespace: 'team-a' }, 'forged', subscription);
    const candidate = aCandidate('double');
    const submit = async (agent: string, replica: ModelGatewayReplica | undefined): Promise<boolean> => {
      const body = { deliveryToken: fixture.deliveryToken(agent), candidate, authorModel: 'replay/judge' };
      const answer = await (replica ?? assert.fail()).call('POST', '/v1/forge/review', { agent, body });
      assert.equal(answer.status, 200, answer.text);
      return (JSON.parse(answer.text) as { accepted: boolean }).accepted;
    };
    for (const replica of replicas) assert.equal(await submit('author', replica), true);
    assert.equal(await submit('careless', replicas[0]), false);
    const inbox = createNatsInbox(bus);
    assert.deepEqual(await inbox.depth(uid), { pending: 1, inFlight: 0 });
    const { message } = (await inbox.fetchNext(uid, TIMEOUT_MS, AbortSignal.timeout(TIMEOUT_MS))) ?? assert.fail();
    assert.equal(message.text, `author double ${candidate.digest} Platform`);
    assert.deepEqual(
      [message.source, message.session, message.root, message.depth],
      ['Trigger', 's-watcher', 'root-1', 1],
    );
  });
}
