import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { it } from 'node:test';
import { webhookSignature } from '../../../../src/events/webhook/signature.testing.ts';
import { parseWebhookKeys } from '../../../../src/events/webhook/signature.ts';
import type { ApiResponse } from '../../../cluster/api-client.ts';
import { poll, pollValue } from '../../../support/poll.ts';
import { RELEASE_NAMESPACE } from '../../support/installed-cluster.ts';
import { NAMESPACE, type SampleSetup } from './sample-setup.ts';

const ORDER = { order: 'A-7', address: '1 Anvil Road' };
/** Where the API server forwards requests to the Services of the release. */
const SERVICES = `/api/v1/namespaces/${RELEASE_NAMESPACE}/services`;
const ARCHIVE = `${SERVICES}/https:temper-gateway:8443/proxy/v1/a2a/namespaces/${NAMESPACE}/agents/archive`;
const ORDER_HOOK = `${SERVICES}/https:temper-webhooks:443/proxy/v1/webhooks/${NAMESPACE}/orders/order`;

/** Samples that programs outside of the namespace reach: signed requests, and A2A. */
export function outside(setup: () => SampleSetup): void {
  const createKey = async (): Promise<string> => {
    const key = `whsec_${randomBytes(32).toString('base64')}`;
    const secret = ['create', 'secret', 'generic', 'temper-webhooks', '-n', NAMESPACE];
    await setup().cluster.kubectl(...secret, `--from-literal=orders.order=${key}`);
    return key;
  };

  const sendOrder = (key: string, id: string): Promise<ApiResponse> => {
    const [bytes = Buffer.alloc(0)] = parseWebhookKeys(key);
    const timestamp = Math.floor(Date.now() / 1_000);
    const body = JSON.stringify(ORDER);
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': webhookSignature(bytes, { id, timestamp }, body),
    };
    return setup().cluster.node.admin.call('POST', ORDER_HOOK, { body, headers });
  };

  it('a signed request is a message, and its event is a message for another agent', async () => {
    await using _sample = await setup().start('triggers', 'orders', 'shipping');
    const help = await setup().run('kubectl temper webhook orders order --url https://HOST -n quickstart');
    assert.match(help, /https:\/\/HOST\/v1\/webhooks\/quickstart\/orders\/order/);
    const [key, id] = [await createKey(), randomUUID()];
    const { body } = await pollValue(
      'the gateway to know the key',
      () => sendOrder(key, id),
      ({ status }) => status === 202,
      { intervalMs: 1_000 },
    );
    assert.equal(body['messages'], 1);
    assert.deepEqual(await setup().repliesOf('shipping', 'packing'), ['Pack order A-7.']);
    const shown = await setup().run('kubectl temper trace packing --agent shipping -n quickstart');
    assert.match(shown, /◂ shipping: Pack order A-7\./);
    assert.match(await setup().run('kubectl temper events -n quickstart'), /orders\.complete/);
  });

  it('a program with a token of a caller reads the card of an agent over A2A, and asks it', async () => {
    await using _sample = await setup().start('a2a', 'archive');
    const { cluster } = setup();
    await setup().run('kubectl create serviceaccount web -n default');
    const words = ['create', 'token', 'web', '-n', 'default', '--audience', 'temper-a2a'];
    const headers = { 'temper-token': (await cluster.kubectl(...words)).trim(), 'a2a-version': '1.0' };
    const card = await poll('the card of the agent', async () => {
      const answer = await cluster.node.admin.call('GET', `${ARCHIVE}/.well-known/agent-card.json`, { headers });
      return answer.status === 200 && answer.body;
    });
    assert.equal(card['name'], 'archive');
    const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'Which exports are there?' }] };
    const request = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } };
    const { status, body } = await cluster.node.admin.call('POST', ARCHIVE, { body: request, headers });
    const shown = JSON.stringify(body);
    assert.equal(status, 200, shown);
    assert.match(shown, /"state":"TASK_STATE_COMPLETED"/);
    assert.match(shown, /"text":"There are 6 exports\."/);
  });
}
