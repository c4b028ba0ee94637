import assert from 'node:assert/strict';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { AgentSpec } from '../../../src/api/v1alpha1/agent.ts';
import type { ToolArtifact } from '../../../src/api/v1alpha1/emergenttool.ts';
import { openModelModule } from '../../../src/gateway/model-module.ts';
import type { SessionStreamLine, UserMessageReceipt } from '../../../src/gateway-api/user-api.ts';
import { issueTlsIdentity, writeGatewayConfig } from '../../../src/gateway-client/certificates.testing.ts';
import { openSessionRegistry, type SessionRegistry } from '../../../src/nats/sessions/session-registry.ts';
import { RoleProcess } from '../../../src/pod/pod.testing.ts';
import { sessionTool } from '../../../src/tempering/registry/registered-tool.ts';
import { aCaller, anAcceptance, anArtifact } from '../../../src/tempering/tempering.testing.ts';
import type { AgentEvent } from '../../../src/tools/events.ts';
import { startEmbeddingServer } from '../../support/embedding-server.ts';
import { type GatewayReplica, GatewayFixture } from '../../support/gateway/gateway-fixture.ts';
import { ScriptedModel, type ScriptedCall } from '../../support/gateway/scripted-model.ts';
import { pollValue } from '../../support/poll.ts';

const NAME = 'temper-gateway.temper-system.svc';
const NAMESPACE = 'team-a';
const OBJECTS = `/apis/temper.dev/v1alpha1/namespaces/${NAMESPACE}`;
const EXPLORERS = ['discover_capabilities', 'list_tools', 'load_tool', 'load_tool_resource'];
const MODEL = { name: 'scripted', contextWindow: 128_000, inputPrice: 0, outputPrice: 0 };
const LONG = '🦦'.repeat(10_000);

/** A pod that runs, and what a message to its agent caused. */
interface Pod {
  uid: string;
  send(text: string, calls: readonly ScriptedCall[]): Promise<AgentEvent[]>;
}

describe('discovery of an agent pod', { timeout: 600_000 }, () => {
  let fixture: GatewayFixture;
  let model: ScriptedModel;
  let gateway: GatewayReplica;
  let registry: SessionRegistry;
  let authority: string;
  let userToken: string;
  let keys = 0;
  const roles: RoleProcess[] = [];
  const at = (...parts: string[]): string => join(fixture.folder, ...parts);

  before(async () => {
    fixture = await GatewayFixture.open([NAMESPACE]);
    model = await ScriptedModel.start();
    await mkdir(at('keys'));
    ({ authority } = await issueTlsIdentity(at('keys'), 'gateway', NAME));
    gateway = await startGateway();
    registry = openSessionRegistry(await fixture.nats.connect('gateway'));
    userToken = await fixture.createUserToken(NAMESPACE);
    await fixture.createPolicy(NAMESPACE, 'exploring', {
      level: { initial: 'standard' },
      autonomy: 'Full',
      models: { allow: ['model/*'] },
      egress: { allow: ['*.example.com'] },
    });
    await createSkill('otters', {
      examples: ['count otters'],
      resources: [{ path: 'references/long.md', text: LONG }],
    });
    await createSkill('foreign', { source: 'oci://registry.example.com/skill:1' });
  });
  after(async () => {
    await Promise.all(roles.map((role) => role.end('SIGKILL')));
    await model?.[Symbol.asyncDispose]();
    await fixture?.[Symbol.asyncDispose]();
  });

  /** `more`: of the configuration of its models. */
  function startGateway({ providers = [], ...more }: { providers?: object[]; discovery?: object } = {}) {
    const own = { name: 'model', type: 'openai-compatible', baseUrl: model.url, models: [MODEL] };
    return fixture.startReplica(
      {
        hasEgress: true,
        tls: { certificate: at('keys/gateway-tls.crt'), key: at('keys/gateway-tls.key') },
        models: { providers: [own, ...providers], aliases: { 'default/default': 'model/scripted' }, ...more },
      },
      openModelModule,
    );
  }

  async function createSkill(name: string, more: object): Promise<void> {
    const spec = { type: 'Skill', description: `How ${name} are counted.`, content: `Count ${name} at dawn.`, ...more };
    const object = { apiVersion: 'temper.dev/v1alpha1', kind: 'Capability', metadata: { name }, spec };
    await fixture.create(`${OBJECTS}/capabilities`, object);
  }

  /** Starts the containers of a pod of a new agent. The caller ends it. */
  async function startPod(
    name: string,
    spec: Partial<AgentSpec> = {},
    replica = gateway,
  ): Promise<Pod & AsyncDisposable> {
    const { uid, token } = await fixture.createRunningAgent(NAMESPACE, name, {
      trustPolicyRef: { name: 'exploring' },
      grants: { tools: ['file_read', 'text_search'], network: ['rates.example.com'] },
      forge: { enabled: true, modes: ['Sandbox'] },
      ...spec,
    });
    await pollValue(
      'the skills in the assignment',
      async () => (await replica.call('GET', '/v1/assignment?wait=0', { token })).text,
      (text) => (JSON.parse(text) as { skills?: unknown }).skills !== undefined,
    );
    const folder = await mkdtemp(at(`${name}-`));
    const [endpoints, run, workspace] = ['endpoints', 'run', 'workspace'].map((part) => join(folder, part));
    for (const path of [endpoints, run, workspace]) await mkdir(path ?? '');
    await writeFile(join(workspace ?? '', 'n.txt'), '21 otters');
    const endpoint = { url: `https://127.0.0.1:${replica.port}`, name: NAME, authority, token };
    await writeGatewayConfig(endpoints ?? '', endpoint);
    const shared = ['--run', run ?? '', '--workspace', workspace ?? ''];
    const own = [
      new RoleProcess('sandbox', ['--agent-uid', String(process.getuid?.() ?? 0), ...shared]),
      new RoleProcess('agent', ['--endpoints', endpoints ?? '', '--token', join(endpoints ?? '', 'token'), ...shared]),
    ];
    roles.push(...own);
    const path = `/v1/users/namespaces/${NAMESPACE}/agents/${name}`;
    return {
      uid,
      send: (text, calls) => answered(path, text, calls),
      [Symbol.asyncDispose]: async () => void (await Promise.all(own.map((role) => role.end('SIGKILL')))),
    };
  }

  async function answered(path: string, text: string, calls: readonly ScriptedCall[]): Promise<AgentEvent[]> {
    model.play(calls);
    keys += 1;
    const body = { text, session: 's-1' };
    const sent = await gateway.call('POST', `${path}/messages`, { userToken, key: `k-${keys}`, body });
    assert.equal(sent.status, 200, sent.text);
    const { id } = JSON.parse(sent.text) as UserMessageReceipt;
    const events = `${path}/sessions/s-1/events?follow=true&message=${id}`;
    const followed = await gateway.call('GET', events, { userToken });
    const lines = followed.text.split('\n').filter((line) => line !== '');
    const all = lines.map((line) => JSON.parse(line) as SessionStreamLine);
    const last = all.at(-1);
    assert.ok(last?.kind === 'reply' && last.text === 'done', followed.text);
    return all.flatMap((line) => (line.kind === 'event' ? [line.event] : []));
  }

  /** Adds a tool to the session of the agent, of which the gateway sends no word to the pod. */
  async function addTool(agent: string, uid: string, artifact: ToolArtifact): Promise<void> {
    const caller = aCaller({ agent, namespace: NAMESPACE, session: 's-1' });
    await registry.register(uid, sessionTool(anAcceptance(artifact), caller, new Date().toISOString()), () => []);
  }

  const discover = (query: string, before?: () => Promise<void>): ScriptedCall => ({
    name: 'discover_capabilities',
    input: { query },
    ...(before === undefined ? {} : { before }),
  });
  const load = (name: string): ScriptedCall => ({ name: 'load_tool', input: { name } });
  const resource = (name: string, path: string, offset = 0): ScriptedCall => ({
    name: 'load_tool_resource',
    input: { name, resource: path, ...(offset === 0 ? {} : { offset }) },
  });
  const isTainted = (events: readonly AgentEvent[]): boolean =>
    events.some((event) => event.type === 'warning' && event.code === 'session-tainted');
  const parsed = (index: number) => JSON.parse(model.results[index] ?? 'null');

  it('a tool that joined the session during the message is a hit of a search, and its call in the same message works', async () => {
    await using pod = await startPod('finder');
    const doubles = anArtifact('wombat_double', { description: 'Doubles a wombat.' });
    const join = () => addTool('finder', pod.uid, doubles);
    await pod.send('double 21', [discover('double a wombat', join), { name: 'wombat_double', input: { value: 21 } }]);
    const [first, second] = model.offered;
    assert.ok(first?.includes('discover_capabilities') && !first.includes('wombat_double'), String(first));
    assert.ok(second?.includes('wombat_double'), String(second));
    const [found] = parsed(0).capabilities;
    assert.deepEqual([found.id, found.kind, found.available], ['emergent-tool:wombat_double', 'emergent-tool', true]);
    assert.match(model.results[1] ?? '', /42/);

    const requires = { apis: ['fetch' as const], domains: ['rates.example.com'], paths: [] };
    const fetching = anArtifact('numbat_rate', { description: 'Fetches the rate of a numbat.', requires });
    await pod.send('rate 4', [
      discover('rate of a numbat', () => addTool('finder', pod.uid, fetching)),
      { name: 'numbat_rate', input: { value: 4 } },
    ]);
    assert.equal(parsed(0).capabilities[0].available, true, 'the release has egress, and the policy permits the host');
    assert.match(model.results[1] ?? '', /8/);
  });

  it('a pod finds a skill, loads its text and the parts of its resource, and an imported one taints the session', async () => {
    await using pod = await startPod('reader');
    const events = await pod.send('count the otters', [
      discover('how otters are counted'),
      load('skill:otters'),
      resource('otters', 'references/long.md'),
      resource('otters', 'references/long.md', 16_000),
      resource('otters', 'nothing.md'),
      load('yaks'),
    ]);
    const [found] = parsed(0).capabilities;
    assert.deepEqual([found.id, found.available, found.note], ['skill:otters', true, undefined]);
    const { skill, instructions, examples, resources } = parsed(1);
    assert.deepEqual([skill, instructions], ['otters', 'Count otters at dawn.']);
    assert.deepEqual([examples, resources], [['count otters'], ['references/long.md']]);
    assert.equal(parsed(2).nextOffset, 16_000);
    assert.equal(parsed(3).nextOffset, undefined);
    assert.equal(`${parsed(2).content}${parsed(3).content}`, LONG);
    assert.match(model.results[4] ?? '', /no resource .*nothing\.md.*it has references\/long\.md/);
    assert.match(model.results[5] ?? '', /TEMPER_TOOL_NOT_FOUND.*yaks/);
    assert.equal(isTainted(events), false);
    assert.equal(isTainted(await pod.send('and the foreign ones', [load('foreign')])), true);
    assert.equal(parsed(0).instructions, 'Count foreign at dawn.');
  });

  it('with spec.disclosure Explore, requests of a pod have the explorers and what the model found or loaded', async () => {
    await using pod = await startPod('explorer', { disclosure: { mode: 'Explore' } });
    const doubles = anArtifact('quoll_double', { description: 'Doubles a quoll.' });
    await pod.send('what do you have?', [
      load('file_read'),
      { name: 'file_read', input: { path: 'n.txt' } },
      discover('double a quoll', () => addTool('explorer', pod.uid, doubles)),
      { name: 'quoll_double', input: { value: 21 } },
      load('otters'),
      resource('otters', 'references/long.md'),
      { name: 'list_tools', input: {} },
    ]);
    assert.match(model.prompt, /further tools.*file_read/s);
    const [first, second, , fourth] = model.offered;
    assert.deepEqual(first, EXPLORERS);
    assert.deepEqual(second, [...EXPLORERS, 'file_read'].toSorted());
    assert.deepEqual(fourth, [...EXPLORERS, 'file_read', 'quoll_double'].toSorted());
    assert.equal(parsed(0).loaded, 'file_read');
    assert.match(model.results[1] ?? '', /21 otters/);
    assert.match(model.results[3] ?? '', /42/);
    assert.equal(parsed(4).instructions, 'Count otters at dawn.');
    assert.ok(LONG.startsWith(parsed(5).content) && parsed(5).content !== '');
    assert.match(model.results[6] ?? '', /quoll_double/);
  });

  it('with spec.disclosure Semantic, the first request of a pod has the tools that fit the message, also forged ones', async () => {
    await using pod = await startPod('fitter', { disclosure: { mode: 'Semantic' } });
    const doubles = anArtifact('bilby_double', { description: 'Doubles a bilby.' });
    await pod.send('read the file n.txt', [discover('double a bilby', () => addTool('fitter', pod.uid, doubles))]);
    const [first, second] = model.offered;
    assert.ok(first?.includes('file_read') && !first.includes('bilby_double'), String(first));
    assert.ok(second?.includes('bilby_double'), String(second));
    await addTool('fitter', pod.uid, anArtifact('potoroo_double', { description: 'Doubles a potoroo.' }));
    await pod.send('double a potoroo', [{ name: 'potoroo_double', input: { value: 21 } }, load('otters')]);
    assert.ok(model.offered[0]?.includes('potoroo_double'), String(model.offered[0]));
    assert.match(model.results[0] ?? '', /42/);
    assert.equal(parsed(1).instructions, 'Count otters at dawn.');
  });

  it('with an embedder the tools that fit a message fit it by meaning too, after one request per message', async () => {
    await using embedder = await startEmbeddingServer();
    const replica = await startGateway({
      providers: [{ name: 'tei', type: 'openai-compatible', baseUrl: embedder.url }],
      discovery: { embedder: 'tei/concepts' },
    });
    await using pod = await startPod('forecaster', { disclosure: { mode: 'Semantic' } }, replica);
    const asked = (text: string): number => embedder.requests.filter((texts) => texts.includes(text)).length;
    await addTool('forecaster', pod.uid, anArtifact('numbat_bulletin', { description: 'Whether rain is near.' }));
    await pod.send('do I need an umbrella', [{ name: 'numbat_bulletin', input: { value: 21 } }]);
    assert.ok(model.offered[0]?.includes('numbat_bulletin'), String(model.offered[0]));
    assert.equal(asked('do I need an umbrella'), 1);
    embedder.status = 500;
    await pod.send('read the file n.txt of a forecast', []);
    assert.ok(asked('read the file n.txt of a forecast') > 0);
    assert.ok(model.offered[0]?.includes('file_read'), 'words alone count when the embedder fails');
    await replica.stop();
  });
});
