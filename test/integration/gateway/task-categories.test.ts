import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { DELIVERY_TOKEN_HEADER, type PodDelivery } from '../../../src/gateway-api/pod-api.ts';
import type { TrustReport } from '../../../src/gateway-api/user-api.ts';
import { openModelModule } from '../../../src/gateway/model-module.ts';
import { GatewayFixture } from '../../support/gateway/gateway-fixture.ts';
import { AGENTS, MessageClient, parsed, receiptOf, type RunningAgent } from '../../support/gateway/message-client.ts';

const STRATEGY = {
  type: 'PerCategory',
  minRatings: 1,
  categories: ['memory', 'communication', 'other', 'database'].map((category) => ({ category, minTasks: 1 })),
};
const GRANTS = { tools: ['*'], memory: { read: ['notes-*'], write: ['notes-*'] } };
const DONE = { action: 'ack', reply: 'done', finishReason: 'complete' };

describe('the tool categories of tasks, through two gateway replicas', () => {
  let fixture: GatewayFixture;
  let messages: MessageClient;

  before(async () => {
    fixture = await GatewayFixture.open(['team-a']);
    const userToken = await fixture.createUserToken('team-a');
    const [one, other] = await Promise.all([
      fixture.startReplica({}, openModelModule),
      fixture.startReplica({}, openModelModule),
    ]);
    messages = new MessageClient({ fixture, one, other, userToken });
  });
  after(async () => {
    await fixture?.[Symbol.asyncDispose]();
  });

  async function aNoter(name: string, spec: object = {}): Promise<RunningAgent> {
    await fixture.createPolicy('team-a', `by-category-${name}`, {
      strategy: STRATEGY,
      autonomy: 'Full',
      tools: { allow: ['event_*'] },
    });
    return messages.createReadyAgent(name, {
      trustPolicyRef: { name: `by-category-${name}` },
      grants: GRANTS,
      ...spec,
    });
  }

  const trustOf = async (name: string): Promise<TrustReport> => {
    const { other, userToken } = messages;
    return parsed(await other.call('GET', `${AGENTS}/${name}/trust`, { userToken })) as TrustReport;
  };
  const memory = ({ token }: RunningAgent, { deliveryToken }: PodDelivery, key: string, value?: string) => {
    const headers = { [DELIVERY_TOKEN_HEADER]: deliveryToken };
    const path = `/v1/memory/${key}`;
    return value === undefined
      ? messages.one.call('GET', path, { token, headers })
      : messages.other.call('PUT', path, { token, headers, key: `set-${key}`, body: { value } });
  };
  const tasksWith = (report: TrustReport) => (report.tasks.categories ?? []).map(({ category }) => category);

  it('the search for the tools that fit a message is no use of a tool', async () => {
    const { one, userToken } = messages;
    const agent = await aNoter('ranker');
    const { id } = receiptOf(await messages.sendMessage('ranker', 'note it', 's-ranked'));
    const delivery = await messages.next(agent);
    const { deliveryToken } = delivery;
    const body = { deliveryToken, query: 'note it', forMessage: true };
    parsed(await one.call('POST', '/v1/discovery/search', { token: agent.token, body }));
    parsed(await memory(agent, delivery, 'notes-1', 'seen'), 204);
    parsed(await messages.postDelivery(agent, { deliveryToken, ...DONE }), 204);
    parsed(await one.call('POST', `${AGENTS}/ranker/ratings`, { userToken, body: { rating: 9, message: id } }));
    assert.deepEqual(tasksWith(await trustOf('ranker')), ['memory']);
  });

  it('the calls that any replica carries give a rated task its categories, without a word of the pod or of the user', async () => {
    const { one, other, userToken } = messages;
    const agent = await aNoter('noter');
    const { id } = receiptOf(await messages.sendMessage('noter', 'note it', 's-noted'));
    const delivery = await messages.next(agent);
    const { deliveryToken } = delivery;
    const { token } = agent;
    parsed(await memory(agent, delivery, 'notes-1', 'seen'), 204);
    parsed(await one.call('POST', '/v1/subscriptions/list', { token, body: { deliveryToken } }));
    parsed(await other.call('POST', '/v1/discovery/search', { token, body: { deliveryToken, query: 'read' } }));
    parsed(await messages.postDelivery(agent, { deliveryToken, ...DONE }), 204);
    parsed(await one.call('POST', `${AGENTS}/noter/ratings`, { userToken, body: { rating: 9, message: id } }));

    const report = await trustOf('noter');
    const counts = { ended: 1, completed: 1, rated: 1 };
    assert.deepEqual(report.tasks.categories, [
      { category: 'communication', ...counts },
      { category: 'memory', ...counts },
      { category: 'other', ...counts },
    ]);
    const met = report.tracks
      .slice(1)
      .map(({ category, next }) => [
        category,
        next?.requirements.filter(({ rule }) => rule !== 'coolDown').every((requirement) => requirement.met),
      ]);
    assert.deepEqual(met, [
      ['memory', true],
      ['communication', true],
      ['other', true],
      ['database', false],
    ]);
  });

  it('a refused call and a read of the context give a task no category', async () => {
    const agent = await aNoter('context-reader', {
      prompt: { system: 'Read.', context: { memory: ['notes-context'] } },
    });
    receiptOf(await messages.sendMessage('context-reader', 'read it', 's-read'));
    const delivery = await messages.next(agent);
    const { deliveryToken } = delivery;
    assert.equal((await memory(agent, delivery, 'notes-context')).status, 404);
    assert.equal((await memory(agent, delivery, 'other-1', 'x')).status, 403);
    parsed(await messages.postDelivery(agent, { deliveryToken, ...DONE }), 204);
    const report = await trustOf('context-reader');
    assert.deepEqual([report.tasks.ended, tasksWith(report)], [1, []]);
  });
});
