import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { stringify } from 'yaml';
import { systemClock } from '../../../src/lib/clock.ts';
import { type ReplayServer, startReplay } from '../../../src/models/replay/server.ts';
import { RoleProcess } from '../../../src/pod/pod.testing.ts';
import { issueTlsIdentity, writeGatewayConfig } from '../../../src/gateway-client/certificates.testing.ts';
import type { SessionStreamLine, UserMessageReceipt } from '../../../src/gateway-api/user-api.ts';
import type { TracesRequest, PodDelivery } from '../../../src/gateway-api/pod-api.ts';
import { GatewayFixture, httpsClient } from '../../support/gateway/gateway-fixture.ts';
import { parsePrometheusText } from '../../support/prometheus-text.ts';
import { type CollectedSpan, TraceCollector } from '../../support/trace-collector.ts';
import { poll, pollValue } from '../../support/poll.ts';
import { freePorts } from '../../cluster/process.ts';

const AGENTS = '/v1/users/namespaces/team-a/agents';
const GATEWAY_NAME = 'temper-gateway.temper-system.svc';
/** Texts that occur only in the user's message, a file and the model's response. */
const CANARIES = { person: 'canary-of-the-person', file: 'canary-of-the-file', model: 'canary-of-the-model' };
const FILE = 'canary-of-an-argument.txt';
const SCRIPT = {
  rules: [
    {
      when: { turn: 1 },
      answer: { text: CANARIES.model, toolCalls: [{ id: 'call-1', name: 'file_read', arguments: { path: FILE } }] },
    },
    { answer: { text: `${CANARIES.model}: done` } },
  ],
};

interface GatewayProcess {
  process: RoleProcess;
  port: number;
  healthPort: number;
  call: ReturnType<typeof httpsClient>;
}

/** Each role is a separate process: two gateways, and the two containers of a pod that uses the second gateway. */
describe('a message through two gateways, NATS, a pod, a model and a tool', { timeout: 600_000 }, () => {
  let fixture: GatewayFixture;
  let collector: TraceCollector;
  let replay: ReplayServer;
  let folder: string;
  let userToken: string;
  let one: GatewayProcess;
  let other: GatewayProcess;
  let podUid: string;
  const roles: RoleProcess[] = [];

  before(async () => {
    [fixture, collector, replay] = await Promise.all([
      GatewayFixture.open(['team-a']),
      TraceCollector.start(),
      startReplay({ script: SCRIPT, clock: systemClock }),
    ]);
    folder = await mkdtemp(join(tmpdir(), 'temper-traces-'));
    await fixture.createPolicy('team-a', 'traced', {
      level: { initial: 'restricted' },
      models: { allow: ['replay/*'] },
    });
    userToken = await fixture.createUserToken('team-a');
    const identity = await issueTlsIdentity(folder, 'first', GATEWAY_NAME);
    [one, other] = await Promise.all([startGateway('one', { ratio: 1 }), startGateway('other', { ratio: 1 })]);
    const spec = { trustPolicyRef: { name: 'traced' }, grants: { tools: ['file_read'] } };
    const { token, pod } = await fixture.createRunningAgent('team-a', 'scout', spec);
    podUid = pod.uid;
    await Promise.all(['run', 'endpoints', 'workspace'].map((name) => mkdir(join(folder, name))));
    await writeFile(join(folder, 'workspace', FILE), CANARIES.file);
    const { authority } = identity;
    const endpoint = { url: `https://127.0.0.1:${other.port}`, name: GATEWAY_NAME, authority, token };
    await writeGatewayConfig(join(folder, 'endpoints'), endpoint);
    const shared = ['--run', join(folder, 'run'), '--workspace', join(folder, 'workspace')];
    const endpoints = ['--endpoints', join(folder, 'endpoints'), '--token', join(folder, 'endpoints', 'token')];
    const agent = startRole('agent', [...shared, ...endpoints]);
    startRole('sandbox', [...shared, '--agent-uid', String(process.getuid?.() ?? 0)]);
    await agent.logged('"ready":true');
  });
  after(async () => {
    await Promise.all(roles.map((running) => running.end('SIGKILL')));
    await Promise.all([fixture, collector, replay].map((part) => part?.[Symbol.asyncDispose]()));
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  function startRole(name: string, options: readonly string[]): RoleProcess {
    const running = new RoleProcess(name, options);
    roles.push(running);
    return running;
  }

  async function startGateway(name: string, tracing: object): Promise<GatewayProcess> {
    const { port, healthPort } = await freePorts('port', 'healthPort');
    const config = {
      ...fixture.replicaConfig(),
      listen: { host: '127.0.0.1', port },
      health: { host: '127.0.0.1', port: healthPort },
      tls: { certificate: join(folder, 'first-tls.crt'), key: join(folder, 'first-tls.key') },
      tracing: { endpoint: collector.endpoint, ...tracing },
      models: {
        providers: [
          {
            name: 'replay',
            type: 'openai',
            baseUrl: `${replay.url}/v1`,
            models: [{ name: 'scripted', inputPrice: 1, outputPrice: 2 }],
          },
        ],
        aliases: { 'default/default': 'replay/scripted' },
      },
    };
    const file = join(folder, `${name}.yaml`);
    await writeFile(file, stringify(config));
    const running = startRole('gateway', ['--config', file]);
    await poll('the readiness of the gateway', async () => {
      const answer = await fetch(`http://127.0.0.1:${healthPort}/readyz`).catch(() => undefined);
      return answer?.status === 200;
    });
    return { process: running, port, healthPort, call: httpsClient(port) };
  }

  async function sendAndFollow(key: string, headers: Record<string, string> = {}): Promise<UserMessageReceipt> {
    const options = { userToken, key, headers, body: { text: CANARIES.person } };
    const sent = await one.call('POST', `${AGENTS}/scout/messages`, options);
    assert.equal(sent.status, 200, sent.text);
    const receipt = JSON.parse(sent.text) as UserMessageReceipt;
    const query = `follow=true&message=${receipt.id}`;
    const followed = await one.call('GET', `${AGENTS}/scout/sessions/${receipt.session}/events?${query}`, {
      userToken,
    });
    const lines = followed.text
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as SessionStreamLine]));
    const last = lines.at(-1);
    assert.equal(last?.kind === 'reply' && last.text, `${CANARIES.model}: done`, followed.text);
    return receipt;
  }

  /** The spans of a trace, once the collector has its last spans. */
  async function spansOf(traceId: string | undefined): Promise<CollectedSpan[]> {
    const own = (): CollectedSpan[] => collector.spans.filter((span) => span.traceId === traceId);
    const names = ['send temper-inbox', 'process temper-inbox', 'send temper-events'];
    await poll(`all spans of trace ${traceId}`, async () =>
      names.every((name) => own().some((span) => span.name === name)),
    );
    return own();
  }

  it('the message is one trace with correct parents, semantic-convention names and no message content', async () => {
    const { traceId, id, session } = await sendAndFollow('key-1');
    const spans = await spansOf(traceId);
    const nameOf = (spanId: string | undefined): string | undefined => {
      const found = spans.find((span) => span.spanId === spanId);
      return found === undefined ? undefined : `${String(found.resource['service.name'])}: ${found.name}`;
    };
    const tree = spans.map((span) => [nameOf(span.spanId), nameOf(span.parentSpanId)].join(' < ')).sort();
    assert.deepEqual(tree, [
      'temper-agent: chat replay/scripted < temper-agent: invoke_agent scout',
      'temper-agent: chat replay/scripted < temper-agent: invoke_agent scout',
      'temper-agent: execute_tool file_read < temper-agent: invoke_agent scout',
      'temper-agent: invoke_agent scout < temper-agent: process temper-inbox',
      'temper-agent: process temper-inbox < temper-gateway: receive temper-inbox',
      'temper-gateway: chat scripted < temper-agent: chat replay/scripted',
      'temper-gateway: chat scripted < temper-agent: chat replay/scripted',
      'temper-gateway: receive temper-inbox < temper-gateway: send temper-inbox',
      'temper-gateway: send temper-events < temper-agent: process temper-inbox',
      'temper-gateway: send temper-inbox < ',
    ]);
    const attributes = (name: string): Record<string, unknown> =>
      spans.find((span) => nameOf(span.spanId) === name)?.attributes ?? {};
    const messaging = { 'messaging.system': 'nats', 'messaging.message.id': id, 'gen_ai.conversation.id': session };
    const inbox = { ...messaging, 'messaging.destination.name': 'temper-inbox' };
    const operation = (name: string) => ({ 'messaging.operation.name': name, 'messaging.operation.type': name });
    assert.deepEqual(attributes('temper-gateway: send temper-inbox'), { ...inbox, ...operation('send') });
    const root = { 'temper.message.root_id': id };
    assert.deepEqual(attributes('temper-agent: process temper-inbox'), { ...inbox, ...operation('process'), ...root });
    const chat = attributes('temper-gateway: chat scripted');
    assert.equal(chat['gen_ai.operation.name'], 'chat');
    assert.equal(chat['gen_ai.provider.name'], 'replay');
    assert.equal(chat['gen_ai.request.model'], 'scripted');
    assert.ok(Number(chat['gen_ai.usage.output_tokens']) > 0);
    assert.equal(attributes('temper-agent: execute_tool file_read')['gen_ai.tool.name'], 'file_read');
    assert.equal(attributes('temper-agent: invoke_agent scout')['gen_ai.agent.name'], 'scout');
    const resource = spans.find(({ name }) => name === 'invoke_agent scout')?.resource ?? {};
    assert.equal(resource['k8s.pod.uid'], podUid);
    assert.equal(resource['k8s.namespace.name'], 'team-a');
    for (const canary of [...Object.values(CANARIES), FILE]) {
      assert.ok(!collector.bodies.some((body) => body.includes(canary)), `${canary} is in a span`);
    }
  });

  it('the message continues the trace of the user, and an unsampled trace is not recorded', async () => {
    const mine = `00-${'5'.repeat(32)}-${'6'.repeat(16)}`;
    assert.equal((await sendAndFollow('key-2', { traceparent: `${mine}-01` })).traceId, '5'.repeat(32));
    const spans = await spansOf('5'.repeat(32));
    assert.equal(spans.find(({ name }) => name === 'send temper-inbox')?.parentSpanId, '6'.repeat(16));
    const unsampled = mine.replaceAll('5', '7');
    assert.equal((await sendAndFollow('key-3', { traceparent: `${unsampled}-00` })).traceId, '7'.repeat(32));
    // A later trace has arrived, so spans of the earlier trace would have arrived too.
    await spansOf((await sendAndFollow('key-4')).traceId);
    assert.deepEqual(
      collector.spans.filter(({ traceId }) => traceId === '7'.repeat(32)),
      [],
    );
  });

  it('the logs of every role carry trace id, agent, session and message id, and no message content', async () => {
    const { traceId, id, session } = await sendAndFollow('key-5');
    const facts = { traceId, messageId: id, session, agent: 'scout' };
    const agent = roles.find(({ child }) => child.spawnargs.includes('agent'));
    assert.ok(agent !== undefined);
    const about = (log: string): Record<string, unknown>[] =>
      log.split('\n').flatMap((line) => (line.includes(id) ? [JSON.parse(line) as Record<string, unknown>] : []));
    // The pod sends its spans last.
    const routesOf = (log: string): unknown[] => about(log).map(({ route }) => route);
    await poll(
      'the message in the logs',
      async () => agent.log.includes(id) && routesOf(other.process.log).includes('/v1/traces'),
    );
    const logs = { one: one.process.log, other: other.process.log, agent: agent.log };
    const logged = Object.values(logs).map((log) =>
      about(log).filter((line) => !String(line['route']).includes('events')),
    );
    for (const lines of logged) {
      assert.ok(lines.length > 0);
      for (const line of lines) {
        const { traceId: trace, messageId, session: sessionId, agent: agentName } = line;
        assert.deepEqual(
          { traceId: trace, messageId, session: sessionId, agent: agentName },
          facts,
          JSON.stringify(line),
        );
      }
    }
    const routes = routesOf(logs.other);
    for (const route of ['/v1/messages/next', '/v1/models/stream', '/v1/deliveries']) {
      assert.ok(routes.includes(route), `${route} of ${routes.join(', ')}`);
    }
    for (const canary of [...Object.values(CANARIES), FILE]) {
      for (const [name, log] of Object.entries(logs))
        assert.ok(!log.includes(canary), `${canary} is in the log of ${name}`);
    }
  });

  it('the gateways count the message in their metrics', async () => {
    const scrape = async ({ healthPort }: GatewayProcess) =>
      parsePrometheusText(await (await fetch(`http://127.0.0.1:${healthPort}/metrics`)).text());
    const [sent, worked] = await Promise.all([scrape(one), scrape(other)]);
    const value = (families: typeof sent, sample: string): number => families.samples.get(sample) ?? 0;
    const messages = value(sent, 'temper_messages_total{outcome="sent"}');
    assert.ok(messages >= 4);
    for (const outcome of ['delivered', 'answered']) {
      assert.equal(value(worked, `temper_messages_total{outcome="${outcome}"}`), messages);
    }
    const labels = 'provider="replay",model="scripted"';
    assert.equal(value(worked, `temper_model_requests_total{${labels},outcome="ok"}`), 2 * messages);
    assert.ok(value(worked, `temper_model_tokens_total{${labels},direction="output"}`) > 0);
    assert.ok(value(worked, `temper_model_cost_dollars_total{${labels}}`) > 0);
    for (const name of ['temper_message_wait_seconds', 'temper_message_duration_seconds']) {
      assert.equal(value(worked, `${name}_count`), messages);
    }
    assert.ok(value(worked, 'temper_pod_spans_total{outcome="taken"}') > 0);
    assert.equal(value(worked, 'temper_pod_spans_total{outcome="refused"}'), 0);
    assert.equal(value(worked, 'temper_nats_connected'), 1);
    assert.ok(sent.samples.has('temper_dead_letters'));
    for (const { samples } of [sent, worked]) {
      for (const sample of samples.keys())
        assert.doesNotMatch(sample, /scout|canary|msg-|s-[0-9a-f]{24}|agent-uid/, sample);
    }
  });

  it('the gateway rejects spans of another trace, another agent or an unsampled message', async () => {
    const { token } = await fixture.createRunningAgent('team-a', 'forger', { trustPolicyRef: { name: 'traced' } });
    await pollValue(
      'the gateway to know agent forger',
      async () => (await other.call('GET', '/v1/assignment', { token })).status,
      (value) => value === 200,
    );
    const sent = async (key: string, flags: string): Promise<PodDelivery> => {
      const headers = { traceparent: `00-${'8'.repeat(32)}-${'9'.repeat(16)}-${flags}` };
      await one.call('POST', `${AGENTS}/forger/messages`, { userToken, key, headers, body: { text: 'hello' } });
      const answer = await other.call('POST', '/v1/messages/next', { token, body: { waitSeconds: 20 } });
      const delivery = JSON.parse(answer.text) as PodDelivery;
      const body = { deliveryToken: delivery.deliveryToken, action: 'ack', reply: '', finishReason: 'complete' };
      await other.call('POST', '/v1/deliveries', { token, key: `${key}-end`, body });
      return delivery;
    };
    const { deliveryToken } = await sent('forger-1', '01');
    const unrecorded = await sent('forger-2', '00');
    const now = Math.floor(Date.now() / 1_000);
    const report = (changes: object, under = deliveryToken): TracesRequest => ({
      deliveryToken: under,
      spans: [
        {
          traceId: '8'.repeat(32),
          spanId: 'a'.repeat(16),
          name: 'chat gpt',
          kind: 'CLIENT',
          start: [now - 1, 0],
          end: [now, 0],
          failed: false,
          attributes: { 'gen_ai.operation.name': 'chat', 'gen_ai.agent.name': 'scout', prompt: CANARIES.person },
          ...changes,
        },
      ],
    });
    const postSpans = async (body: object): Promise<number> =>
      (await other.call('POST', '/v1/traces', { token, key: 'spans', body })).status;
    assert.equal(await postSpans(report({})), 204);
    assert.equal(await postSpans(report({ traceId: 'b'.repeat(32) })), 400);
    assert.equal(await postSpans(report({}, unrecorded.deliveryToken)), 400);
    assert.equal(await postSpans(report({ attributes: { 'gen_ai.operation.name': 'pwn' } })), 400);
    assert.equal(await postSpans(report({ events: [] })), 400);
    assert.equal(
      await postSpans(
        report(
          {},
          deliveryToken.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
        ),
      ),
      403,
    );
    const many = { ...report({}), spans: Array.from({ length: 200 }, () => report({}).spans[0]) };
    const answers: number[] = [];
    for (let calls = 0; calls < 12; calls += 1) answers.push(await postSpans(many));
    assert.ok(answers.includes(429), answers.join());
    const ours = (span: CollectedSpan): boolean => span.spanId === 'a'.repeat(16);
    await poll('the accepted span', async () => collector.spans.some(ours));
    const found = collector.spans.find(ours);
    assert.equal(found?.resource['gen_ai.agent.name'], 'forger');
    assert.equal(found.attributes['gen_ai.agent.name'], 'forger');
    assert.ok(!('prompt' in found.attributes));
    assert.ok(!collector.spans.some(({ traceId }) => traceId === 'b'.repeat(32)));
  });
});
