import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { promisify } from 'node:util';
import { signedRequest } from '../../../../src/cli/cluster/events/webhook-help.ts';
import { webhookSignature } from '../../../../src/events/webhook/signature.testing.ts';
import { parseWebhookKeys } from '../../../../src/events/webhook/signature.ts';
import { createNatsInbox } from '../../../../src/nats/inbox/inbox.ts';
import { type HttpResponse, httpsClient } from '../../../support/gateway/gateway-fixture.ts';
import { type MessageClient, parsed } from '../../../support/gateway/message-client.ts';
import { pollValue } from '../../../support/poll.ts';

const KEY = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const OTHER = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
const PATH = '/v1/webhooks/team-a/hooked/order';

interface Request {
  id?: string;
  seconds?: number;
  key?: string;
  path?: string;
  data?: object;
}

/** Requests from outside. `open` gives the client of two replicas, the first of which serves webhooks. */
export function webhookTests(open: () => MessageClient): void {
  const seconds = (): number => Math.floor(Date.now() / 1_000);

  function send({
    id = 'msg_1',
    seconds: timestamp = seconds(),
    key = KEY,
    path = PATH,
    data = { order: 'A-7' },
  }: Request) {
    const [bytes = Buffer.alloc(0)] = parseWebhookKeys(key);
    const signature = webhookSignature(bytes, { id, timestamp }, JSON.stringify(data));
    const headers = { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signature };
    return httpsClient(open().one.webhookPort ?? 0)('POST', path, { headers, body: data });
  }
  const shown = ({ status, text }: HttpResponse): string => `${status} ${text}`;

  it('a signed request is one message, and a repeated one is the same', async () => {
    const { fixture } = open();
    const trigger = { name: 'order', webhook: {}, message: 'Order {{event.order}} ({{subject}}).', session: 'orders' };
    const plain = { name: 'plain', subject: 'a.b', message: 'x' };
    const hooked = await open().createReadyAgent('hooked', {
      schedule: { mode: 'Proactive', triggers: [trigger, plain] },
    });
    const data = { 'hooked.order': `${OTHER}\n${KEY}`, 'hooked.plain': KEY };
    const encoded = Object.fromEntries(
      Object.entries(data).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
    );
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'temper-webhooks' }, data: encoded };
    await fixture.create('/api/v1/namespaces/team-a/secrets', secret);
    const accepted = await pollValue(
      'the gateway to know the key',
      () => send({}),
      ({ status }) => status === 202,
      { intervalMs: 500 },
    );
    const receipt = parsed(accepted, 202) as { id: string; messages: number };
    assert.equal(receipt.messages, 1);
    assert.deepEqual(parsed(await send({}), 202), receipt);
    assert.deepEqual((parsed(await send({ id: 'msg_2', key: OTHER }), 202) as { messages: number }).messages, 1);
    const inbox = createNatsInbox(await fixture.nats.connect('gateway'));
    assert.equal((await inbox.depth(hooked.uid)).pending, 2);
    const { message } = await open().next(hooked);
    const { text, source, session, depth, root, id } = message;
    assert.deepEqual([text, source, session], ['Order A-7 (webhook.order).', 'Trigger', 'orders']);
    assert.deepEqual([depth, root], [0, id]);
    const history = await open().other.call('GET', '/v1/users/namespaces/team-a/events', {
      userToken: open().userToken,
    });
    const events = parsed(history) as { id: string; excerpt: string; source: string; tainted: boolean }[];
    const { excerpt, source: from, tainted } = events.find((event) => event.id === receipt.id) ?? {};
    assert.deepEqual([excerpt, from, tainted], ['{"order":"A-7"}', 'Webhook', true]);
  });

  it('an unknown webhook and a wrong signature have one answer, and nothing else is served there', async () => {
    const wrong = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
    const answers = [
      await send({ id: 'msg_3', key: wrong }),
      await send({ id: 'msg_4', seconds: seconds() - 400 }),
      await send({ id: 'msg_5', seconds: seconds() + 400 }),
      await send({ id: 'bad id' }),
      await send({ id: 'msg_6', path: PATH.replace('order', 'plain') }),
      await send({ id: 'msg_7', path: PATH.replace('order', 'none') }),
      await send({ id: 'msg_8', path: PATH.replace('hooked', 'none') }),
      await send({ id: 'msg_9', path: PATH.replace('team-a', 'none') }),
    ];
    const [first = '', ...others] = answers.map(shown);
    assert.match(first, /^404 .*TEMPER_NOT_FOUND/);
    assert.deepEqual(new Set(others), new Set([first]));
    const call = httpsClient(open().one.webhookPort ?? 0);
    const { userToken } = open();
    const path = '/v1/users/namespaces/team-a/top';
    assert.equal((await call('GET', path, { userToken })).status, 404);
    assert.equal((await call('POST', PATH, { body: 'x'.repeat(40_000) })).status, 413);
    assert.equal((await open().one.call('POST', PATH, { body: {} })).status, 404, 'pods and users reach no webhook');
  });

  it('the printed request of kubectl temper webhook is accepted', async () => {
    const folder = join(open().fixture.folder, 'programs');
    await mkdir(folder);
    const encoded = Buffer.from(`${KEY}\n`).toString('base64');
    await writeFile(join(folder, 'kubectl'), `#!/bin/sh\nprintf %s '${encoded}'\n`);
    await writeFile(
      join(folder, 'curl'),
      '#!/bin/sh\nexec /usr/bin/env -u TEMPER_PATH PATH="$TEMPER_PATH" curl -k "$@"\n',
    );
    for (const name of ['kubectl', 'curl']) await chmod(join(folder, name), 0o755);
    const url = `https://127.0.0.1:${open().one.webhookPort}`;
    const script = signedRequest({ namespace: 'team-a', agent: 'hooked', trigger: 'order', url });
    const environment = { PATH: `${folder}:${process.env['PATH']}`, TEMPER_PATH: process.env['PATH'] };
    const { stdout } = await promisify(execFile)('bash', ['-ec', script], { env: environment });
    assert.match(stdout, /"messages":1/);
  });
}
