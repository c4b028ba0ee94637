import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createRecordSessionStore } from '../../../src/agent/session/session-store.ts';
import { webhookSignature } from '../../../src/events/webhook/signature.testing.ts';
import { parseWebhookKeys } from '../../../src/events/webhook/signature.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { fileRecordStore } from '../../../src/lib/file-record-store.ts';
import { poll } from '../../support/poll.ts';
import { plainEnvironment, temper } from '../command.ts';
import { openProject, type Project } from '../project.ts';
import { type ServedRun, serveRun } from './served-run.ts';

const MANIFESTS = `apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: p}
spec: {level: {initial: standard}, autonomy: Full}
---
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: hooked}
spec:
  trustPolicyRef: {name: p}
  model: {primary: default/default}
  prompt: {system: "You are hooked."}
  schedule:
    mode: Proactive
    triggers:
      - {name: order, webhook: {}, message: "Order {{event.order}}.", session: orders}
      - {name: other, webhook: {}, message: "Other."}
`;
const SCRIPT = `rules:
  - answer: {text: "Done."}
`;
const KEYS = join(plainEnvironment()['XDG_CONFIG_HOME'] ?? '', 'temper/webhook-keys.yaml');

const serve = (project: Project): Promise<ServedRun> =>
  serveRun(project, ['--webhooks', '0'], /webhooks at (\S+?)\/v1\//);

interface Sent {
  id?: string;
  key?: Uint8Array;
  path?: string;
  body?: string;
  seconds?: number;
}

async function send(url: string, { id = 'msg_1', key, path = 'default/hooked/order', body, seconds }: Sent) {
  const [stored = Buffer.alloc(0)] = parseWebhookKeys((await readFile(KEYS, 'utf8')).replaceAll(/^.*: /gm, ''));
  const text = body ?? '{"order":"A-7"}';
  const timestamp = seconds ?? Math.floor(Date.now() / 1_000);
  const signature = webhookSignature(key ?? stored, { id, timestamp }, text);
  const headers = { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signature };
  const response = await fetch(`${url}/v1/webhooks/${path}`, { method: 'POST', headers, body: text });
  return `${response.status} ${await response.text()}`;
}

async function messagesOf({ path }: Project): Promise<string[]> {
  const store = createRecordSessionStore(fileRecordStore(join(path, '.temper')), systemClock, {
    agent: 'hooked',
    namespace: 'default',
  });
  const { items } = await store.load('orders');
  return items.flatMap((item) => (item.role === 'user' || item.role === 'assistant' ? [item.text] : []));
}

describe('webhooks of temper run', () => {
  let project: Project;
  let served: ServedRun;

  before(async () => {
    project = await openProject({ manifests: MANIFESTS, script: SCRIPT }, 'json');
    const { stdout, stderr } = await temper(['webhook', 'hooked', 'order', '--url', 'http://127.0.0.1:1'], {
      cwd: project.path,
    });
    const create = stdout.slice(0, stdout.indexOf('# Receive'));
    await promisify(execFile)('bash', ['-ec', create], { env: plainEnvironment() });
    assert.match(await readFile(KEYS, 'utf8'), /^default\/hooked\.order: whsec_/, stderr);
    served = await serve(project);
  });
  after(async () => {
    await served[Symbol.asyncDispose]();
    await project[Symbol.asyncDispose]();
  });

  it('the printed request gives the agent one message, and a repeated id the same one', async () => {
    assert.match(served.notes(), /webhook-keys\.yaml has no key for default\/hooked\.other/);
    const { stdout } = await temper(['webhook', 'hooked', 'order', '--url', served.url], { cwd: project.path });
    const script = stdout.slice(stdout.indexOf('file=')).replace(/^\(umask.*$/m, '');
    const printed = await promisify(execFile)('bash', ['-ec', script], { env: plainEnvironment() });
    assert.match(printed.stdout, /^\{"id":"evt-[0-9a-f]{32}","messages":1\}$/);
    const first = await send(served.url, {});
    assert.match(first, /^202 .*"messages":1/);
    assert.equal(await send(served.url, {}), first);
    await poll('both answers', async () => (await messagesOf(project)).length === 4);
    assert.deepEqual(await messagesOf(project), ['Order A-7.', 'Done.', 'Order A-7.', 'Done.']);
  });

  it('requests that are not signed by the key of the path have one answer', async () => {
    const refused = [
      await send(served.url, { id: 'msg_2', key: Buffer.alloc(32, 1) }),
      await send(served.url, { id: 'msg_2', path: 'default/hooked/other' }),
      await send(served.url, { id: 'msg_2', path: 'default/unknown/order' }),
      await send(served.url, { id: 'msg_2', seconds: Math.floor(Date.now() / 1_000) - 400 }),
    ];
    assert.deepEqual(new Set(refused).size, 1, refused.join('\n'));
    assert.match(refused[0] ?? '', /^404 .*TEMPER_NOT_FOUND/);
    for (const path of ['', 'default/hooked/order/x', '../healthz', 'default/hooked/UPPER'])
      assert.match(await send(served.url, { id: 'msg_2', path }), /^404 /, path);
    assert.match(await send(served.url, { id: 'msg_3', body: 'no json' }), /^400 .*TEMPER_REQUEST_INVALID/);
    assert.match(await send(served.url, { id: 'msg_4', body: `"${'x'.repeat(40_000)}"` }), /^413 /);
    assert.equal((await fetch(`${served.url}/v1/webhooks/default/hooked/order`)).status, 404);
  });

  it('a request that was accepted outlives a kill of the process, and is known to the next one; an interrupt ends the server', async () => {
    const accepted = await send(served.url, { id: 'msg_5', body: '{"order":"B-1"}' });
    await served.end('SIGKILL');
    served = await serve(project);
    assert.equal(await send(served.url, { id: 'msg_5', body: '{"order":"B-1"}' }), accepted);
    await poll('the answer', async () => (await messagesOf(project)).slice(-2).join(' ') === 'Order B-1. Done.');
    assert.equal(await served.end('SIGINT'), 130);
    await assert.rejects(send(served.url, {}), 'the port is closed');
  });

  it('webhooks without --serve, a used port and keys that others can read are refused', async () => {
    const idle = await project.run('--webhooks', '0', '-m', 'x').ended;
    assert.equal(idle.code, 2);
    assert.match(idle.stderr, /--webhooks works with --serve only/);
    served = await serve(project);
    const state = ['--state', join(project.path, 'second')];
    const used = await project.run('--serve', '--webhooks', new URL(served.url).port, ...state).ended;
    assert.equal(used.code, 2);
    assert.match(used.stderr, /EADDRINUSE.*name another port/);
    await chmod(KEYS, 0o644);
    const open = await project.run('--serve', '--webhooks', '0', ...state).ended;
    assert.equal(open.code, 1, open.stderr);
    assert.match(open.stderr, /only its user can read and write; chmod go= it/);
  });
});
