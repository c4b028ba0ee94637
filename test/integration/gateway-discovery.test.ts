import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { ToolArtifact } from '../../src/api/v1alpha1/emergenttool.ts';
import { forgedEntry } from '../../src/discovery/entry.ts';
import type { DiscoveryAnswer } from '../../src/discovery/port.ts';
import { createForgedTool } from '../../src/forge/forged-tool.ts';
import { createLeases } from '../../src/gateway/lease.ts';
import { openModelParts } from '../../src/gateway/model-parts.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createSupervisor } from '../../src/sandbox/supervisor.ts';
import { artifactDigest } from '../../src/tempering/documents.ts';
import { objectName } from '../../src/tempering/object-name.ts';
import { anArtifact } from '../../src/tempering/testing.ts';
import type { RegisteredTool } from '../../src/tempering/types.ts';
import { toolRequest } from '../../src/tools/authorize.ts';
import { deniedHostCalls } from '../../src/tools/host-calls.ts';
import { createSchemaCompiler } from '../../src/tools/schemas.ts';
import { eventually, GatewayHouse, type Replica } from './gateway-house.ts';

const NAMESPACE = 'team-a';
const TEMPER = '/apis/temper.dev/v1alpha1/namespaces';

describe('discovery through the gateway', { timeout: 240_000 }, () => {
  let house: GatewayHouse;
  let gateway: Replica;
  let analyst: Caller;
  let clerk: Caller;
  interface Caller {
    name: string;
    uid: string;
    token: string;
    lease: string;
  }

  before(async () => {
    house = await GatewayHouse.open([NAMESPACE, 'team-b']);
    await house.policy(NAMESPACE, 'restricted', { level: { initial: 'restricted' } });
    gateway = await house.replica({}, openModelParts);
    const forging = { forge: { enabled: true, modes: ['Sandbox', 'Compose'] }, trustPolicyRef: { name: 'restricted' } };
    analyst = await aCaller('analyst', { ...forging, grants: { tools: ['file_read', 'exchange_*'] } });
    clerk = await aCaller('clerk', { trustPolicyRef: { name: 'restricted' }, grants: { tools: ['file_list'] } });
  });
  after(async () => {
    await house?.[Symbol.asyncDispose]();
  });

  async function aCaller(name: string, spec: object): Promise<Caller> {
    const { uid, pod, token } = await house.runningAgent(NAMESPACE, name, spec);
    const key = await readFile(join(house.folder, 'lease.key'));
    const lease = createLeases(() => [key]).sign({
      agentUid: uid,
      agent: name,
      namespace: NAMESPACE,
      podUid: pod.uid,
      message: 'message-1',
      session: 's-1',
      root: 'root-1',
      depth: 0,
      deadline: new Date(Date.now() + 600_000).toISOString(),
      at: { streamSequence: 1, consumerSequence: 1, deliveries: 1 },
    });
    await eventually(async () => (await ask({ name, uid, token, lease }, { query: 'x' })).status === 200);
    return { name, uid, token, lease };
  }

  function ask({ token, lease }: Caller, body: object) {
    return gateway.call('POST', '/v1/discovery/search', { token, body: { lease, ...body } });
  }

  async function found(caller: Caller, query: string, more: object = {}): Promise<DiscoveryAnswer['capabilities']> {
    const { status, text } = await ask(caller, { query, ...more });
    assert.equal(status, 200, text);
    return (JSON.parse(text) as DiscoveryAnswer).capabilities;
  }

  async function ids(caller: Caller, query: string, more: object = {}): Promise<string[]> {
    return (await found(caller, query, more)).map(({ id }) => id);
  }

  async function capability(name: string, spec: object, namespace = NAMESPACE): Promise<void> {
    const object = { apiVersion: 'temper.dev/v1alpha1', kind: 'Capability', metadata: { name }, spec };
    await house.made(`${TEMPER}/${namespace}/capabilities`, object);
  }

  /** An EmergentTool as a promotion leaves it; the answer is its name. */
  async function emergentTool(
    artifact: ToolArtifact,
    {
      agent,
      namespace = NAMESPACE,
      digest = artifactDigest(artifact),
      name,
    }: {
      agent?: string;
      namespace?: string;
      digest?: ReturnType<typeof artifactDigest>;
      name?: string;
    } = {},
  ): Promise<string> {
    const tier = agent === undefined ? 'Shared' : 'Agent';
    const named = name ?? objectName(artifact.name, tier, `${namespace}/${agent ?? ''}`, digest);
    const path = `${TEMPER}/${namespace}/emergenttools`;
    await house.made(path, {
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'EmergentTool',
      metadata: { name: named, ...(agent === undefined ? {} : { labels: { 'temper.dev/agent': agent } }) },
      spec: { artifact, digest, tier, contributors: ['agent/analyst'] },
    });
    await setActive(named, true, namespace);
    return named;
  }

  async function setActive(name: string, active: boolean, namespace = NAMESPACE): Promise<void> {
    const path = `${TEMPER}/${namespace}/emergenttools/${name}`;
    const { body: object } = await house.plane.admin.call('GET', path);
    const { status } = await house.plane.admin.call('PUT', `${path}/status`, {
      body: { ...object, status: { active } },
    });
    assert.equal(status, 200);
  }

  async function given({ token }: Caller, session = 's-1'): Promise<RegisteredTool[]> {
    const { status, text } = await gateway.call('GET', `/v1/sessions/${session}/tools`, { token });
    assert.equal(status, 200, text);
    return JSON.parse(text) as RegisteredTool[];
  }

  it('shows an agent what it may call and nothing else', async () => {
    assert.deepEqual(await ids(analyst, 'read or list a file'), ['tool:file_read', 'tool:forge_tool']);
    assert.deepEqual(await ids(clerk, 'read or list a file, or forge a tool'), ['tool:file_list']);
  });

  it('shows the catalogue of the namespace with why a thing is not available, as it changes', async () => {
    const tool = { name: 'exchange_rate', category: 'web', inputSchema: { type: 'object' } };
    const description = 'The rate between two currencies on a day.';
    await capability('exchange-rate', { type: 'Tool', description, requiredSecrets: ['rates'], tool });
    await capability('other', { type: 'Skill', description: 'How currencies are rounded.' }, 'team-b');
    await capability('report', {
      type: 'Skill',
      description: 'How a currency report is written.',
      category: 'Reporting',
    });
    await eventually(async () => (await ids(analyst, 'currencies')).length === 2);
    const [rate, report] = await found(analyst, 'exchange rate of currencies');
    assert.equal(rate?.id, 'tool:exchange_rate');
    assert.equal(rate.available, false);
    assert.equal(rate.note, '[not available: needs connection rates; calls of it are not carried out yet]');
    assert.equal(report?.id, 'skill:report');
    assert.deepEqual(
      await ids(clerk, 'currencies'),
      ['skill:report'],
      'it may not call the tool, so it is not told of it',
    );
    assert.deepEqual(await ids(analyst, 'currencies', { category: 'reporting' }), ['skill:report']);
    assert.deepEqual(await ids(analyst, 'currencies', { kind: 'tool' }), ['tool:exchange_rate']);
    await house.plane.admin.call('DELETE', `${TEMPER}/${NAMESPACE}/capabilities/report`);
    await eventually(async () => (await ids(clerk, 'currencies')).length === 0);
  });

  it('gives a tool of tier Agent to its agent alone, whole, and it runs; taken out of service it is gone', async () => {
    const artifact = anArtifact('double_it', { description: 'Doubles a number.' });
    const name = await emergentTool(artifact, { agent: 'analyst' });
    await eventually(async () => (await ids(analyst, 'double a number')).length === 1);
    const [line] = await found(analyst, 'double a number');
    assert.deepEqual([line?.id, line?.available], ['emergent-tool:double_it', true]);
    assert.deepEqual(await ids(clerk, 'double a number'), []);
    assert.deepEqual(await given(clerk), []);
    const [tool] = await given(analyst);
    assert.ok(tool !== undefined);
    assert.deepEqual([tool.tier, tool.digest, tool.owner.agent], ['Agent', artifactDigest(artifact), 'analyst']);
    await using sandbox = await createSupervisor({ clock: systemClock });
    const forged = createForgedTool(tool.artifact, tool.digest, tool.tier, {
      sandbox,
      clock: systemClock,
      schemas: createSchemaCompiler(),
      hostCalls: () => deniedHostCalls,
      describe: () => undefined,
    });
    assert.deepEqual(forgedEntry(artifact, false).request, toolRequest(forged.descriptor), 'asked about alike');
    const context = { agent: 'analyst', namespace: NAMESPACE, session: 's-1', rootMessage: 'r', stack: [] };
    const op = { signal: new AbortController().signal, deadline: systemClock.monotonic() + 60_000, key: 'k' };
    const invoke = (): Promise<never> => Promise.reject(new Error('it calls nothing'));
    assert.deepEqual(await forged.call({ value: 21 }, { ...context, op, invoke }), { result: 42 });
    await setActive(name, false);
    await eventually(async () => (await given(analyst)).length === 0);
    assert.deepEqual(await ids(analyst, 'double a number'), []);
  });

  it('gives no tool whose object is not named for the agent its label says, or has not its digest', async () => {
    const stolen = anArtifact('stolen_tool', { description: 'A zebra of another agent.' });
    const digest = artifactDigest(stolen);
    const name = objectName('stolen_tool', 'Agent', `${NAMESPACE}/clerk`, digest);
    await emergentTool(stolen, { agent: 'analyst', name });
    const wrong = anArtifact('wrong_tool', { description: 'A zebra with a false digest.' });
    await emergentTool(wrong, { agent: 'analyst', digest: artifactDigest(stolen) });
    await eventually(async () => (await ids(analyst, 'zebra')).length === 1);
    const [line] = await found(analyst, 'zebra');
    assert.deepEqual([line?.id, line?.available], ['emergent-tool:wrong_tool', false]);
    assert.match(line?.note ?? '', /not available: it does not have its digest/);
    assert.deepEqual(await given(analyst), []);
  });

  it('gives a Shared tool to all who may call forged tools, and says what keeps one from running', async () => {
    const requires = { apis: ['fetch' as const], domains: ['example.com'], paths: [] };
    await emergentTool(anArtifact('giraffe_sum', { description: 'Sums up a giraffe.' }));
    await emergentTool(anArtifact('giraffe_rates', { description: 'Fetches a giraffe.', requires }));
    await eventually(async () => (await given(analyst)).length === 2);
    const lines = new Map((await found(analyst, 'giraffe')).map((line) => [line.name, line]));
    assert.equal(lines.get('giraffe_sum')?.available, true);
    assert.equal(
      lines.get('giraffe_rates')?.note,
      '[not available: it fetches, and pods have no way out of the cluster yet]',
    );
    assert.deepEqual(await ids(clerk, 'giraffe'), [], 'it may not call forged tools');
  });

  it('takes nothing but a small closed body under the lease of the pod that calls', async () => {
    const refused = async (body: object, caller = analyst) => (await ask(caller, body)).status;
    assert.equal(await refused({}), 400);
    assert.equal(await refused({ query: '' }), 400);
    assert.equal(await refused({ query: 'x'.repeat(401) }), 400);
    assert.equal(await refused({ query: 'x', namespace: 'team-b' }), 400);
    assert.equal(await refused({ query: 'x', kind: 'x'.repeat(20_000) }), 413);
    assert.equal(await refused({ query: 'x', lease: clerk.lease }), 403);
    assert.equal((await gateway.call('POST', '/v1/discovery/search', { body: { query: 'x' } })).status, 401);
    const hostile = '\u0000\u202e(((((a+)+)+)+$'.repeat(20).slice(0, 400);
    assert.equal(await refused({ query: hostile }), 200);
  });
});
