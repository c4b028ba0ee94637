import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import { Screen } from '../../../src/cli/transcript/screen.ts';
import { Transcript } from '../../../src/cli/transcript/transcript.ts';
import { openModelModule } from '../../../src/gateway/model-module.ts';
import type { AgentSpec } from '../../../src/api/v1alpha1/agent.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { type ReplayServer, startReplay } from '../../../src/models/replay/server.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import { createPendingCalls, type PendingCalls } from '../../../src/nats/pending-calls.ts';
import { createNatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { sourceKeysText } from '../../../src/nats/sources/source-keys.ts';
import { createSessionStore } from '../../../src/nats/sessions/session-store.ts';
import { RoleProcess } from '../../../src/pod/pod.testing.ts';
import { issueTlsIdentity, writeGatewayConfig } from '../../../src/gateway-client/certificates.testing.ts';
import type {
  SessionStreamLine,
  SessionToolSummary,
  UsageBreakdown,
  UserMessageReceipt,
} from '../../../src/gateway-api/user-api.ts';
import type { RegisteredTool } from '../../../src/tempering/types.ts';
import type { AgentEvent } from '../../../src/tools/events.ts';
import { GatewayFixture, type HttpResponse, type GatewayReplica } from '../../support/gateway/gateway-fixture.ts';
import { poll } from '../../support/poll.ts';
import { TraceCollector } from '../../support/trace-collector.ts';
import { type ClientCallSetup, clientCallTests } from './suites/client-calls.ts';
import { mcpConformanceTests } from './suites/mcp-conformance.ts';
import { MEETING_SESSIONS, parallelSessionTests, startMeetingModel } from './suites/parallel-sessions.ts';
import { type HeldModel, runningCallTests, startHeldModel } from './suites/running-calls.ts';
import { NESTED_SCRIPT, nestedAgentTests } from './suites/nested-agents.ts';
import { withheldSourceTests, WITHHELD_SCRIPT } from './suites/withheld-sources.ts';

const QUICKSTART = new URL('../../../manifests/quickstart/', import.meta.url);
const NAME = 'temper-gateway.temper-system.svc';
const AGENT = '/v1/users/namespaces/team-a/agents/analyst';
const OBJECTS = '/apis/temper.dev/v1alpha1/namespaces/team-a';
const APRIL =
  'The folder data holds our orders, one CSV file a month. How many orders were paid in April, and what were they worth?';
const GATES = [
  'shape',
  'static',
  'schemas',
  'build',
  'tests',
  'output-schema',
  'resources',
  'policy',
  'judge',
  'registration',
];

function parsed({ text, status }: HttpResponse): unknown {
  assert.equal(status, 200, text);
  return JSON.parse(text);
}

describe('an agent pod behind two gateways', { timeout: 600_000 }, () => {
  let fixture: GatewayFixture;
  let replay: ReplayServer;
  let withheld: ReplayServer;
  let nested: ReplayServer;
  let meeting: Awaited<ReturnType<typeof startMeetingModel>>;
  let held: HeldModel;
  let collector: TraceCollector;
  let endpoint: { url: string; name: string; authority: string };
  let one: GatewayReplica;
  let other: GatewayReplica;
  let userToken: string;
  let agentUid: string;
  let policyName: string;
  let sandbox: RoleProcess;
  let token: string;
  let keys = 0;
  const roles: RoleProcess[] = [];
  const at = (...parts: string[]): string => join(fixture.folder, ...parts);

  before(async () => {
    fixture = await GatewayFixture.open(['team-a']);
    replay = await startReplay({ script: new URL('replay.yaml', QUICKSTART).pathname, clock: systemClock });
    await Promise.all(['run', 'endpoints', 'keys', 'workspace'].map((name) => mkdir(at(name))));
    await cp(new URL('data/', QUICKSTART), at('workspace/data'), { recursive: true });
    await cp(new URL('samples/', QUICKSTART), at('workspace/samples'), { recursive: true });
    const { authority } = await issueTlsIdentity(at('keys'), 'gateway', NAME);
    withheld = await startReplay({ script: WITHHELD_SCRIPT, clock: systemClock });
    nested = await startReplay({ script: NESTED_SCRIPT, clock: systemClock });
    meeting = await startMeetingModel();
    held = await startHeldModel();
    collector = await TraceCollector.start();
    const sourceKeys = [{ id: 'first', createdAt: new Date(), key: randomBytes(32) }];
    await writeFile(at('source-keys.json'), sourceKeysText(sourceKeys));
    const config = {
      sourceKeys: at('source-keys.json'),
      tracing: { endpoint: collector.endpoint, ratio: 1 },
      tls: { certificate: at('keys/gateway-tls.crt'), key: at('keys/gateway-tls.key') },
      models: {
        providers: [
          { name: 'replay', type: 'openai', baseUrl: `${replay.url}/v1` },
          { name: 'meeting', type: 'openai', baseUrl: meeting.url },
          { name: 'held', type: 'openai', baseUrl: held.url },
          { name: 'withheld', type: 'openai', baseUrl: `${withheld.url}/v1` },
          { name: 'nested', type: 'openai', baseUrl: `${nested.url}/v1` },
        ],
        aliases: {
          'default/default': 'replay/scripted',
          'default/judge': 'replay/judge',
          'default/meeting': 'meeting/scripted',
          'default/held': 'held/scripted',
          'default/nested': 'nested/scripted',
          'default/keeper': 'withheld/scripted',
          'default/keeper-judge': 'withheld/judge',
        },
      },
    };
    [one, other] = await Promise.all([
      fixture.startReplica(config, openModelModule),
      fixture.startReplica(config, openModelModule),
    ]);
    for (const [file, collection] of [
      ['policy.yaml', 'trustpolicies'],
      ['agent.yaml', 'agents'],
    ]) {
      const object = parse(await readFile(new URL(file ?? '', QUICKSTART), 'utf8')) as object;
      const { metadata } = await fixture.create(`${OBJECTS}/${collection}`, object);
      const { uid, name } = metadata as { uid: string; name: string };
      if (collection === 'trustpolicies') policyName = name;
      agentUid = uid;
    }
    const pod = await fixture.createPod('team-a', 'analyst-1');
    await fixture.bindPod('team-a', 'analyst', pod);
    token = await fixture.createPodToken('team-a', pod);
    userToken = await fixture.createUserToken('team-a');
    endpoint = { url: `https://127.0.0.1:${one.port}`, name: NAME, authority };
    await writeGatewayConfig(at('endpoints'), { ...endpoint, token });
    sandbox = start('sandbox', '--agent-uid', String(process.getuid?.() ?? 0));
  });
  after(async () => {
    await Promise.all(roles.map((role) => role.end('SIGKILL')));
    await replay?.[Symbol.asyncDispose]();
    await withheld?.[Symbol.asyncDispose]();
    await nested?.[Symbol.asyncDispose]();
    await meeting?.[Symbol.asyncDispose]();
    await held?.[Symbol.asyncDispose]();
    await fixture?.[Symbol.asyncDispose]();
    await collector?.[Symbol.asyncDispose]();
  });

  function start(role: 'agent' | 'sandbox', ...options: string[]): RoleProcess {
    const endpoints = role === 'agent' ? ['--endpoints', at('endpoints'), '--token', at('endpoints/token')] : [];
    const started = new RoleProcess(role, [
      '--run',
      at('run'),
      '--workspace',
      at('workspace'),
      ...endpoints,
      ...options,
    ]);
    roles.push(started);
    return started;
  }

  async function send(text: string, session?: string): Promise<UserMessageReceipt> {
    keys += 1;
    return parsed(
      await one.call('POST', `${AGENT}/messages`, {
        userToken,
        key: `k-${keys}`,
        body: { text, ...(session === undefined ? {} : { session }) },
      }),
    ) as UserMessageReceipt;
  }

  async function follow({ id, session }: UserMessageReceipt): Promise<SessionStreamLine[]> {
    const path = `${AGENT}/sessions/${session}/events?follow=true&message=${id}`;
    const { text } = await other.call('GET', path, { userToken });
    return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as SessionStreamLine]));
  }

  const toolsOf = async (session: string): Promise<RegisteredTool[]> =>
    parsed(await other.call('GET', `/v1/sessions/${session}/tools`, { token })) as RegisteredTool[];

  async function sessionWithTool(name: string): Promise<RegisteredTool & { id: string }> {
    const sessions = parsed(await one.call('GET', `${AGENT}/sessions`, { userToken })) as { session: string }[];
    for (const { session } of sessions) {
      const tool = (await toolsOf(session)).find(({ artifact }) => artifact.name === name);
      if (tool !== undefined) return { ...tool, id: session };
    }
    assert.fail(`none of the ${sessions.length} sessions has the tool ${name}`);
  }

  const eventsOf = (lines: readonly SessionStreamLine[]): AgentEvent[] =>
    lines.flatMap((line) => (line.kind === 'event' ? [line.event] : []));

  it('a follower receives forge, gates, verdict, tool use and reply once and in order', async () => {
    const agent = start('agent');
    const receipt = await send(APRIL);
    const lines = await follow(receipt);
    const last = lines.at(-1);
    assert.ok(last?.kind === 'reply' && /paid/i.test(last.text), JSON.stringify(last));
    const events = eventsOf(lines);
    const aboutRows = events.flatMap((event) => {
      if (event.type === 'forge-gate' && event.tool === 'csv_rows') return [event.result.gate];
      return 'tool' in event && event.tool === 'csv_rows' && event.type.startsWith('forge') ? [event.type] : [];
    });
    assert.deepEqual(aboutRows, ['forge-start', ...GATES, 'forge-accepted']);
    const accepted = events.flatMap((event) => (event.type === 'forge-accepted' ? [event.tool] : []));
    assert.equal(new Set(accepted).size, accepted.length);
    const used = events.find((event) => event.type === 'tool-call' && accepted.includes(event.tool));
    assert.ok(used?.type === 'tool-call');
    const place = (type: string, tool: string): number =>
      events.findIndex((event) => event.type === type && 'tool' in event && event.tool === tool);
    assert.ok(place('forge-accepted', used.tool) < place('tool-call', used.tool));
    const shown: string[] = [];
    const transcript = new Transcript('analyst', new Screen({ out: (line) => shown.push(line), colour: false }));
    for (const event of events) transcript.show(event);
    const transcriptText = shown.join('');
    assert.match(
      transcriptText,
      /forges +csv_rows[^]*tests \d\/\d ×2 ✓[^]*policy ✓ {2}judge 0\.\d\d ✓ {2}registration Session ✓\n +→ csv_rows@/,
    );
    const records = await createNatsAudit(await fixture.nats.connect('gateway')).all('team-a', 1_000);
    const digests = (action: string, evidence: string): string[] =>
      records.filter((found) => found.action === action && found.evidence === evidence).map(({ subject }) => subject);
    const registered = digests('tool.accepted', 'observed');
    assert.deepEqual(
      digests('tool.used', 'reported').filter((digest) => !registered.includes(digest)),
      [],
    );
    const tools = parsed(await one.call('GET', `${AGENT}/tools`, { userToken })) as SessionToolSummary[];
    assert.deepEqual(tools.map(({ name }) => name).toSorted(), accepted.toSorted());
    const found = tools.find(({ name }) => name === used.tool);
    assert.ok(found !== undefined && found.uses > 0);
    assert.equal(found.uses, digests('tool.used', 'reported').filter((digest) => digest === found.digest).length);
    assert.equal(await agent.end('SIGTERM'), 0, agent.log);
  });

  it('a message that is redelivered after its pod was killed is appended once', async () => {
    const agent = start('agent');
    const before = fixture.logLines.length;
    const receipt = await send(APRIL);
    const appended = async (): Promise<boolean> =>
      fixture.logLines.slice(before).some((line) => line.includes('"/v1/sessions/:session/items"'));
    await poll('an appended session item', appended);
    assert.equal(await agent.end('SIGKILL'), null);
    const bus = await fixture.nats.connect('gateway');
    assert.equal(
      await createNatsInbox(bus).redeliver(agentUid),
      1,
      'the operator releases the message of a deleted pod',
    );
    const again = start('agent');
    const lines = await follow(receipt);
    const last = lines.at(-1);
    assert.ok(last?.kind === 'reply' && last.finishReason === 'complete', JSON.stringify(last));
    assert.equal(lines.filter(({ kind }) => kind !== 'event').length, 1);
    const { items } = await createSessionStore(bus, agentUid).load(receipt.session);
    const said = items.filter(({ role }) => role === 'user');
    assert.deepEqual(said, [{ role: 'user', text: APRIL, message: receipt.id, origin: 'User' }]);
    const accepted = eventsOf(lines).flatMap((event) => (event.type === 'forge-accepted' ? [event.digest] : []));
    assert.deepEqual(accepted, [...new Set(accepted)], 'nothing is accepted twice');
    assert.equal(await again.end('SIGTERM'), 0, again.log);
  });

  const setRules = (rules: object): Promise<void> => setPolicy({ rules });

  /** Replaces members of the agent's policy. */
  async function setPolicy(change: object): Promise<void> {
    const path = `${OBJECTS}/trustpolicies/${policyName}`;
    const { body } = await fixture.plane.admin.call('GET', path);
    const object = { ...body, spec: { ...(body['spec'] as object), ...change } };
    assert.equal((await fixture.plane.admin.call('PUT', path, { body: object })).status, 200);
  }

  /** Approves every request of the agent that is pending; returns their number. */
  async function approvePending(calls: PendingCalls): Promise<number> {
    const pending = (await calls.of(agentUid)).filter(({ decision }) => decision === undefined);
    for (const { request, nonce, agent, tool, argumentsDigest, callId } of pending) {
      const subject = { call: { agent, agentUid, tool, argumentsDigest, callId } };
      const spec = { decision: 'Approve', nonce, approvedBy: { username: 'alice' }, subject };
      const object = { apiVersion: 'temper.dev/v1alpha1', kind: 'Approval', metadata: { name: request }, spec };
      await fixture.plane.admin.call('POST', `${OBJECTS}/approvals`, { body: object });
    }
    return pending.length;
  }

  it('a pod that is killed while its turn is parked makes each approved call once, after the approval', async () => {
    await setRules({ requireApproval: ['code:create'] });
    const calls = createPendingCalls(await fixture.nats.connect('gateway'));
    const agent = start('agent');
    const receipt = await send(APRIL);
    const inbox = createNatsInbox(await fixture.nats.connect('gateway'));
    await poll('the parked message', async () => (await inbox.parked(agentUid)).length === 1);
    assert.equal(await agent.end('SIGKILL'), null);
    assert.equal((await inbox.depth(agentUid)).pending, 0, 'a parked message keeps no pod awake');
    const again = start('agent');
    const following = follow(receipt);
    let isDone = false;
    const done = following.finally(() => (isDone = true));
    await poll('the reply', async () => {
      await approvePending(calls);
      return isDone;
    });
    const lines = await done;
    const last = lines.at(-1);
    assert.ok(last?.kind === 'reply' && /paid/i.test(last.text), JSON.stringify(last));
    const approved = (await calls.of(agentUid)).filter(({ message }) => message === receipt.id);
    assert.ok(approved.length > 0 && approved.every(({ used }) => used !== undefined), JSON.stringify(approved));
    const results = eventsOf(lines).flatMap((event) => (event.type === 'tool-result' ? [event] : []));
    assert.equal(new Set(results.map(({ id }) => id)).size, results.length, 'no call has two results');
    assert.ok(results.every(({ code }) => code !== 'TEMPER_APPROVAL_USED'));
    assert.equal(await again.end('SIGTERM'), 0, again.log);
    await setRules({});
  });

  const clientCalls = (): ClientCallSetup => ({
    fixture,
    one,
    other,
    userToken,
    agentUid,
    sandbox,
    start: () => start('agent'),
    setPolicy: (change) => setPolicy({ rules: {}, tools: {}, ...change }),
    approvePending,
  });
  clientCallTests(clientCalls);
  mcpConformanceTests(clientCalls);

  it('the gateway delivers no tool that a user or the operator deactivated', async () => {
    const { id, artifact, digest } = await sessionWithTool('csv_rows');
    const isDelivered = async (): Promise<boolean> => (await toolsOf(id)).some((found) => found.digest === digest);
    const path = `${OBJECTS}/emergenttools`;
    const head = { apiVersion: 'temper.dev/v1alpha1', kind: 'EmergentTool', metadata: { name: 'csv-rows' } };
    await fixture.create(path, { ...head, spec: { artifact, digest, tier: 'Agent' } });
    const condition = { type: 'Active', lastTransitionTime: new Date().toISOString(), message: 'by alice' };
    await fixture.patchStatus(`${path}/csv-rows`, {
      active: false,
      conditions: [{ ...condition, status: 'False', reason: 'Demoted' }],
    });
    await poll('the tool to be demoted', async () => !(await isDelivered()));
    await fixture.patchStatus(`${path}/csv-rows`, {
      active: true,
      conditions: [{ ...condition, status: 'True', reason: 'Verified' }],
    });
    await poll('the tool to be active', isDelivered);
    const agent = `${OBJECTS}/agents/${AGENT.split('/').at(-1)}`;
    const since = new Date().toISOString();
    const lost = { digest, tool: 'csv_rows', cause: 'Harmful', message: '8 of its 8 tasks ended badly', since };
    await fixture.patchStatus(agent, { deactivatedTools: [lost] });
    await poll('the tool to leave the agent', async () => !(await isDelivered()));
    const reactivatedAt = new Date(Date.now() + 1_000).toISOString();
    await fixture.patchStatus(agent, { deactivatedTools: [{ ...lost, reactivatedAt }] });
    await poll('the tool to return', isDelivered);
    await fixture.patchStatus(`${path}/csv-rows`, {
      active: false,
      conditions: [{ ...condition, status: 'False', reason: 'AwaitingApproval' }],
    });
    const promotion = { tool: 'csv_rows', digest, tier: 'Agent' };
    await fixture.create(`${OBJECTS}/approvals`, {
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'Approval',
      metadata: { name: 'no-more' },
      spec: { decision: 'Revoke', nonce: 'a'.repeat(32), approvedBy: { username: 'alice' }, subject: { promotion } },
    });
    await poll('the tool to be revoked', async () => !(await isDelivered()));
  });

  async function changeAgent(change: (spec: AgentSpec) => Partial<AgentSpec>): Promise<void> {
    const path = `${OBJECTS}/agents/analyst`;
    const { body } = await fixture.plane.admin.call('GET', path);
    const spec = body['spec'] as AgentSpec;
    const changed = { ...body, spec: { ...spec, ...change(spec) } };
    assert.equal((await fixture.plane.admin.call('PUT', path, { body: changed })).status, 200);
  }

  nestedAgentTests(() => ({
    fixture,
    agentUid,
    prepare: () =>
      changeAgent(({ model, grants }) => ({
        model: { ...model, primary: 'default/nested' },
        grants: { ...grants, tools: [...(grants?.tools ?? []), 'agent_run'] },
      })),
    start: () => start('agent'),
    send,
    follow,
    charges: async () => {
      const since = new Date(Date.now() - 24 * 3_600_000).toISOString().slice(0, 10);
      const path = `${AGENT}/charges?by=Root&since=${since}`;
      return parsed(await one.call('GET', path, { userToken })) as UsageBreakdown;
    },
  }));

  parallelSessionTests(() => ({
    fixture,
    agentUid,
    prepare: () =>
      changeAgent(({ model, limits }) => ({
        model: { ...model, primary: 'default/meeting' },
        limits: { ...limits, concurrency: MEETING_SESSIONS },
      })),
    start: () => start('agent'),
    send,
    follow,
  }));

  runningCallTests(() => ({
    fixture,
    model: held,
    async prepare(runningCalls) {
      const end = runningCalls === undefined ? {} : { runningCalls };
      await setPolicy({ autonomy: 'Full', forge: { apis: [], domains: [], ...end } });
      await changeAgent(({ model, grants }) => ({
        model: { ...model, primary: 'default/held' },
        grants: { ...grants, tools: [...new Set([...(grants?.tools ?? []), 'generate_text'])] },
      }));
    },
    toolNames: async () => {
      const answer = await one.call('GET', '/v1/sessions/s-listed/tools', { token });
      return (parsed(answer) as RegisteredTool[]).map(({ artifact }) => artifact.name);
    },
    start: () => start('agent'),
    send,
    follow,
  }));

  withheldSourceTests(() => ({
    fixture,
    replica: one,
    endpoint,
    userToken,
    collector,
    start(role) {
      roles.push(role);
      return role;
    },
  }));
});
