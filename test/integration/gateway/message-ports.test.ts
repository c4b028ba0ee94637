import { after, before } from 'node:test';
import { RemoteBus } from '../../../src/gateway-client/bus.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { ulids } from '../../../src/lib/ids.ts';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { createNatsInbox, type NatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { InboxReceiver, InboxSender } from '../../../src/nats/inbox/message-ports.ts';
import { messagesContract, type PortRules } from '../../contracts/messages.ts';
import { ModelGatewayFixture, type ModelGatewayReplica } from '../../support/gateway/model-gateway-fixture.ts';
import { pollAssertion } from '../../support/poll.ts';
import { newMessage, newUid } from '../../support/nats/nats-fixture.ts';

/** Messages per inbox; `topology.ts` sets the limit. */
const INBOX_MESSAGES = 1_000;
const BATCH = 100;

let fixture: ModelGatewayFixture;
let connection: JetStreamConnection;
const replicas = new Map<PortRules, Promise<ModelGatewayReplica>>();
let agents = 0;

before(async () => {
  fixture = await ModelGatewayFixture.open({ rules: [{ answer: { text: '' } }] });
  connection = await fixture.nats.connect('gateway');
  fixture.setPolicy('standard', {});
});
after(() => fixture[Symbol.asyncDispose]());

/** Each publication is idempotent, so one that a busy machine timed out is repeated. */
async function fill(inbox: NatsInbox, agentUid: string): Promise<void> {
  for (let first = 0; first < INBOX_MESSAGES; first += BATCH) {
    const keys = Array.from({ length: BATCH }, (_, index) => `${agentUid} ${first + index}`);
    const publish = (key: string) => inbox.publish(agentUid, { uid: 'user', key }, newMessage('x'));
    await pollAssertion('the messages to be stored', () => Promise.all(keys.map(publish)));
  }
}

messagesContract('NATS', async (rules) => {
  const inbox = createNatsInbox(connection, rules);
  const agentUid = newUid();
  const deadline = new Date(Date.now() + 3_600_000).toISOString();
  const sender = new InboxSender({
    inbox,
    clock: systemClock,
    from: { uid: newUid(), name: 'writer' },
    chain: { root: 'root-1', depth: 1, deadline },
    receiverUid: () => agentUid,
  });
  const receiver = new InboxReceiver(inbox, agentUid, systemClock);
  return { sender, receiver, to: 'reader', fillInbox: () => fill(inbox, agentUid) };
});

messagesContract('gateway client', async (rules) => {
  const replica = await (replicas.get(rules) ?? startReplica(rules));
  const [from, to] = [`writer-${(agents += 1)}`, `reader-${agents}`];
  fixture.setAgent(from, { autonomy: 'Full', grants: { tools: ['agent_send'], messages: [to] } });
  const agentUid = fixture.setAgent(to);
  const busOf = async (agent: string): Promise<RemoteBus> => {
    const client = await fixture.connect(agent, replica);
    const deliveryToken = () => fixture.deliveryToken(agent);
    return new RemoteBus({ client, clock: systemClock, ids: ulids, deliveryToken });
  };
  const [sender, receiver] = await Promise.all([busOf(from), busOf(to)]);
  return { sender, receiver, to, fillInbox: () => fill(createNatsInbox(connection), agentUid) };
});

function startReplica(rules: PortRules): Promise<ModelGatewayReplica> {
  const started = fixture.startReplica(
    { providers: [{ name: 'replay', type: 'openai', baseUrl: `${fixture.replay.url}/v1` }] },
    rules,
  );
  replicas.set(rules, started);
  return started;
}
