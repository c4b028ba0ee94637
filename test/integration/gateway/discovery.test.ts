import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { forgedEntry } from '../../../src/discovery/entry.ts';
import type { DiscoveryResult } from '../../../src/discovery/port.ts';
import { createForgedTool } from '../../../src/forge/forged-tool.ts';
import { createDeliveryTokens } from '../../../src/gateway/delivery/token.ts';
import { openModelModule } from '../../../src/gateway/model-module.ts';
import type { DatabaseService } from '../../../src/gateway/services/config.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createSupervisor } from '../../../src/sandbox/supervisor.ts';
import { artifactDigest } from '../../../src/tempering/registry/serialization.ts';
import { objectName } from '../../../src/tempering/registry/object-name.ts';
import { anArtifact } from '../../../src/tempering/tempering.testing.ts';
import type { RegisteredTool } from '../../../src/tempering/types.ts';
import { toolRequest } from '../../../src/tools/authorize.ts';
import { deniedHostCalls } from '../../../src/tools/host/host-calls.ts';
import { createSchemaCompiler } from '../../../src/tools/json-schema/compiler.ts';
import { lostToolContract } from '../../contracts/discovery.ts';
import { EmergentTools } from '../../support/gateway/emergent-tools.ts';
import { GatewayFixture, type GatewayReplica } from '../../support/gateway/gateway-fixture.ts';
import { poll, pollValue } from '../../support/poll.ts';
import { parsePrometheusText } from '../../support/prometheus-text.ts';
import { callOptions } from '../../support/call-options.ts';

const NAMESPACE = 'team-a';
const TEMPER = '/apis/temper.dev/v1alpha1/namespaces';
const CONNECTIONS = [
  { name: 'wiki', hosts: ['wiki.example.com:443'], namespaces: [NAMESPACE], credentialFile: '/none' },
  { name: 'payroll', hosts: ['pay.example.com:443'], namespaces: ['team-b'], credentialFile: '/none' },
];
const SEARCH = { type: 'SearXNG', url: 'http://searxng.tools.svc:8080/', private: true } as const;
const SALES: DatabaseService = {
  name: 'sales',
  type: 'PostgreSQL',
  description: 'orders of all wombats',
  host: 'db.example.com',
  database: 'sales',
  user: 'reader',
  namespaces: [NAMESPACE],
  passwordFile: '/none',
};

describe('discovery through the gateway', { timeout: 600_000 }, () => {
  let fixture: GatewayFixture;
  let gateway: GatewayReplica;
  /** Without an egress proxy, services and connections. */
  let bare: GatewayReplica;
  let analyst: Caller;
  let clerk: Caller;
  let tools: EmergentTools;
  interface Caller {
    name: string;
    uid: string;
    token: string;
    deliveryToken: string;
  }

  before(async () => {
    fixture = await GatewayFixture.open([NAMESPACE, 'team-b']);
    tools = new EmergentTools(fixture, NAMESPACE);
    await fixture.createPolicy(NAMESPACE, 'restricted', { level: { initial: 'restricted' } });
    const change = { hasEgress: true, connections: CONNECTIONS, webSearch: SEARCH, databases: [SALES] };
    [gateway, bare] = await Promise.all([
      fixture.startReplica(change, openModelModule),
      fixture.startReplica({}, openModelModule),
    ]);
    const forging = { forge: { enabled: true, modes: ['Sandbox', 'Compose'] }, trustPolicyRef: { name: 'restricted' } };
    analyst = await aCaller('analyst', { ...forging, grants: { tools: ['file_read', 'exchange_*'] } });
    clerk = await aCaller('clerk', { trustPolicyRef: { name: 'restricted' }, grants: { tools: ['file_list'] } });
  });
  after(async () => {
    await fixture?.[Symbol.asyncDispose]();
  });

  async function aCaller(name: string, spec: object): Promise<Caller> {
    const { uid, pod, token } = await fixture.createRunningAgent(NAMESPACE, name, spec);
    const key = await readFile(join(fixture.folder, 'delivery-token.key'));
    const deliveryToken = createDeliveryTokens(() => [key]).sign({
      agentUid: uid,
      agent: name,
      namespace: NAMESPACE,
      podUid: pod.uid,
      message: 'message-1',
      session: 's-1',
      root: 'root-1',
      depth: 0,
      deadline: new Date(Date.now() + 600_000).toISOString(),
      at: { streamSequence: 1, deliveries: 1 },
    });
    for (const replica of [gateway, bare])
      await pollValue(
        `the gateway to know agent ${name}`,
        async () => (await postSearch({ name, uid, token, deliveryToken }, { query: 'x' }, replica)).status,
        (value) => value === 200,
      );
    return { name, uid, token, deliveryToken };
  }

  function postSearch({ token, deliveryToken }: Caller, body: object, at = gateway) {
    return at.call('POST', '/v1/discovery/search', { token, body: { deliveryToken, ...body } });
  }

  async function search(
    caller: Caller,
    query: string,
    more: object = {},
    at = gateway,
  ): Promise<DiscoveryResult['capabilities']> {
    const { status, text } = await postSearch(caller, { query, ...more }, at);
    assert.equal(status, 200, text);
    return (JSON.parse(text) as DiscoveryResult).capabilities;
  }

  async function searchIds(caller: Caller, query: string, more: object = {}): Promise<string[]> {
    return (await search(caller, query, more)).map(({ id }) => id);
  }

  async function capability(name: string, spec: object, namespace = NAMESPACE): Promise<void> {
    const object = { apiVersion: 'temper.dev/v1alpha1', kind: 'Capability', metadata: { name }, spec };
    await fixture.create(`${TEMPER}/${namespace}/capabilities`, object);
  }

  async function sessionTools({ token }: Caller, session = 's-1'): Promise<RegisteredTool[]> {
    const { status, text } = await gateway.call('GET', `/v1/sessions/${session}/tools`, { token });
    assert.equal(status, 200, text);
    return JSON.parse(text) as RegisteredTool[];
  }

  it('a search returns only tools that the agent may call', async () => {
    assert.deepEqual(await searchIds(analyst, 'read or list a file'), ['tool:file_read', 'tool:forge_tool']);
    assert.deepEqual(await searchIds(clerk, 'read or list a file, or forge a tool'), ['tool:file_list']);
  });

  it('a search follows the links of a Capability to what the agent may call', async () => {
    await capability('badgers', {
      type: 'Skill',
      description: 'How badgers are counted.',
      requiredTools: ['file_read'],
      edges: [{ type: 'ComposedWith', target: 'tool:file_list' }],
    });
    await pollValue(
      'the Capability in the catalog',
      () => searchIds(analyst, 'badger'),
      (ids) => ids.includes('skill:badgers'),
    );
    assert.deepEqual(await searchIds(analyst, 'badger'), ['skill:badgers', 'tool:file_read']);
    assert.deepEqual(await searchIds(clerk, 'badger'), ['skill:badgers', 'tool:file_list']);
  });

  it('a pod loads the text and the resources of a skill of its namespace, and an imported one taints the session', async () => {
    const load = ({ token, deliveryToken }: Caller, name: string) =>
      gateway.call('POST', '/v1/skills/load', { token, body: { deliveryToken, name } });
    const resource = ({ token, deliveryToken }: Caller, path: string) =>
      gateway.call('POST', '/v1/skills/resource', { token, body: { deliveryToken, name: 'otters', path, offset: 0 } });
    const tainted = async ({ token, deliveryToken }: Caller): Promise<unknown> => {
      const { text } = await gateway.call('GET', '/v1/sessions/s-1', {
        token,
        headers: { 'temper-delivery-token': deliveryToken },
      });
      return (JSON.parse(text) as { tainted?: boolean }).tainted;
    };
    // An agent of its own, because nothing lifts the mark of a session.
    const editor = await aCaller('editor', { trustPolicyRef: { name: 'restricted' } });
    assert.equal((await load(editor, 'otters')).status, 404);
    await capability('otters', {
      type: 'Skill',
      description: 'How otters are counted.',
      content: 'Count at dawn.',
      examples: ['count otters'],
      resources: [{ path: 'references/rivers.md', text: 'The Oder.' }],
    });
    const loaded = await pollValue(
      'the skill',
      () => load(editor, 'otters'),
      ({ status }) => status === 200,
    );
    assert.deepEqual(JSON.parse(loaded.text), {
      name: 'otters',
      instructions: 'Count at dawn.',
      examples: ['count otters'],
      resources: ['references/rivers.md'],
    });
    assert.deepEqual(JSON.parse((await resource(editor, 'references/rivers.md')).text), { text: 'The Oder.' });
    assert.match((await resource(editor, '../secret')).text, /TEMPER_TOOL_INPUT_INVALID.*it has references\/rivers.md/);
    assert.notEqual(await tainted(editor), true);
    await capability('foreign', { type: 'Skill', description: 'd', content: 'Obey.', source: 'oci://example.com/x:1' });
    await pollValue(
      'the imported skill',
      () => load(editor, 'foreign'),
      ({ status }) => status === 200,
    );
    assert.equal(await tainted(editor), true);
    for (const name of ['otters', 'foreign'])
      await fixture.plane.admin.call('DELETE', `${TEMPER}/${NAMESPACE}/capabilities/${name}`);
    await pollValue(
      'the deletion of the skill',
      async () => (await load(editor, 'otters')).status,
      (status) => status === 404,
    );
  });

  it('a search returns Capabilities of the namespace with the reason when they are unavailable, and follows changes', async () => {
    const tool = { name: 'exchange_rate', category: 'web', inputSchema: { type: 'object' } };
    const description = 'The rate between two currencies on a day.';
    await capability('exchange-rate', { type: 'Tool', description, requiredSecrets: ['rates'], tool });
    await capability('other', { type: 'Skill', description: 'How currencies are rounded.' }, 'team-b');
    await capability('report', {
      type: 'Skill',
      description: 'How a currency report is written.',
      category: 'Reporting',
    });
    await pollValue(
      'both Capabilities in the catalog',
      async () => (await searchIds(analyst, 'currencies')).length,
      (value) => value === 2,
    );
    const [rate, report] = await search(analyst, 'exchange rate of currencies');
    assert.equal(rate?.id, 'tool:exchange_rate');
    assert.equal(rate.available, false);
    assert.equal(rate.note, '[not available: needs connection rates; it cannot be called]');
    assert.equal(report?.id, 'skill:report');
    assert.deepEqual(
      await searchIds(clerk, 'currencies'),
      ['skill:report'],
      'clerk may not call the tool, so the search omits it',
    );
    assert.deepEqual(await searchIds(analyst, 'currencies', { category: 'reporting' }), ['skill:report']);
    assert.deepEqual(await searchIds(analyst, 'currencies', { kind: 'tool' }), ['tool:exchange_rate']);
    await fixture.plane.admin.call('DELETE', `${TEMPER}/${NAMESPACE}/capabilities/report`);
    await pollValue(
      'the deletion of the Capability',
      async () => (await searchIds(clerk, 'currencies')).length,
      (value) => value === 0,
    );
  });

  it('a tool of tier Agent is delivered to its agent only, runs, and disappears when it is deactivated', async () => {
    const artifact = anArtifact('double_it', { description: 'Doubles a number.' });
    const name = await tools.create(artifact, { agent: 'analyst' });
    await pollValue(
      'the tool in the catalog',
      async () => (await searchIds(analyst, 'double a number')).length,
      (value) => value === 1,
    );
    const [line] = await search(analyst, 'double a number');
    assert.deepEqual([line?.id, line?.available], ['emergent-tool:double_it', true]);
    assert.deepEqual(await searchIds(clerk, 'double a number'), []);
    assert.deepEqual(await sessionTools(clerk), []);
    const [tool] = await sessionTools(analyst);
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
    assert.deepEqual(forgedEntry(artifact).request, toolRequest(forged.descriptor), 'both requests are equal');
    const context = {
      agent: 'analyst',
      namespace: NAMESPACE,
      session: 's-1',
      rootMessage: 'r',
      stack: [],
      origin: 'Agent' as const,
    };
    const op = callOptions();
    const invoke = (): Promise<never> => Promise.reject(new Error('unexpected call'));
    assert.deepEqual(await forged.call({ value: 21 }, { ...context, op, invoke }), { result: 42 });
    await tools.setActive(name, false);
    await pollValue(
      'the tool to be deactivated',
      async () => (await sessionTools(analyst)).length,
      (value) => value === 0,
    );
    assert.deepEqual(await searchIds(analyst, 'double a number'), []);
  });

  it('an EmergentTool with the name of another agent or a wrong digest is not delivered', async () => {
    const stolen = anArtifact('stolen_tool', { description: 'A zebra of another agent.' });
    const digest = artifactDigest(stolen);
    const name = objectName('stolen_tool', 'Agent', `${NAMESPACE}/clerk`, digest);
    await tools.create(stolen, { agent: 'analyst', name });
    const wrong = anArtifact('wrong_tool', { description: 'A zebra with a false digest.' });
    await tools.create(wrong, { agent: 'analyst', digest: artifactDigest(stolen) });
    await pollValue(
      'the tool in the catalog',
      async () => (await searchIds(analyst, 'zebra')).length,
      (value) => value === 1,
    );
    const [line] = await search(analyst, 'zebra');
    assert.deepEqual([line?.id, line?.available], ['emergent-tool:wrong_tool', false]);
    assert.match(line?.note ?? '', /not available: its artifact does not match its digest/);
    assert.deepEqual(await sessionTools(analyst), []);
  });

  it('a Shared tool is delivered to agents that may call forged tools, and fetch works where the release and the policy let it', async () => {
    const requires = { apis: ['fetch' as const], domains: ['rates.example.com'], paths: [] };
    await tools.create(anArtifact('giraffe_sum', { description: 'Sums up a giraffe.' }));
    await tools.create(anArtifact('giraffe_rates', { description: 'Fetches a giraffe.', requires }));
    await pollValue(
      'both Shared tools',
      async () => (await sessionTools(analyst)).length,
      (value) => value === 2,
    );
    await fixture.createPolicy(NAMESPACE, 'connected', {
      level: { initial: 'restricted' },
      egress: { allow: ['*.example.com'] },
    });
    const traveller = await aCaller('traveller', {
      forge: { enabled: true, modes: ['Sandbox'] },
      trustPolicyRef: { name: 'connected' },
      grants: { network: ['rates.example.com'] },
    });
    const linesOf = async (caller: Caller, at = gateway) =>
      new Map((await search(caller, 'giraffe', {}, at)).map((line) => [line.name, line]));
    for (const caller of [analyst, traveller])
      assert.equal((await linesOf(caller)).get('giraffe_sum')?.available, true);
    const found = (await linesOf(traveller)).get('giraffe_rates');
    assert.deepEqual([found?.available, found?.note], [true, undefined]);
    assert.equal(
      (await linesOf(analyst)).get('giraffe_rates')?.note,
      '[not available: it uses fetch, and this agent may connect to none of its hosts]',
    );
    await pollValue(
      'the tools in the other gateway',
      () => linesOf(traveller, bare),
      ({ size }) => size === 2,
    );
    const offline = await linesOf(traveller, bare);
    assert.equal(
      offline.get('giraffe_rates')?.note,
      '[not available: it uses fetch, and this release runs no egress proxy; an administrator sets egress.enabled]',
    );
    assert.equal(offline.get('giraffe_sum')?.available, true);
    assert.deepEqual(await searchIds(clerk, 'giraffe'), [], 'clerk may not call forged tools');
  });

  it('a search finds the tools of services, and an agent that may not call them finds the same as without services', async () => {
    const grants = { tools: ['web_search', 'sql_query'] };
    await fixture.createPolicy(NAMESPACE, 'served', {
      level: { initial: 'standard' },
      tools: { allow: ['sql_query'] },
    });
    const reader = await aCaller('reader', { trustPolicyRef: { name: 'served' }, grants });
    const found = await search(reader, 'Search the web. Query the database of wombats.');
    const availability = new Map(found.map(({ id, available }) => [id, available]));
    for (const id of ['tool:sql_query', 'tool:web_search']) assert.equal(availability.get(id), true, id);
    // Its words are those of a service too: they must not count for an agent that may not call it.
    await capability('wombat-guide', {
      type: 'Skill',
      description: 'How to search the web for wombats.',
      content: 'x',
    });
    const queries = ['Search the web. Query the database of wombats.', 'wombts', 'sql_query', 'web search', 'orders'];
    const answers = async (caller: Caller, at: GatewayReplica) =>
      Promise.all(queries.map(async (query) => (await postSearch(caller, { query }, at)).text));
    const guide = (at: GatewayReplica) =>
      pollValue(
        'the skill',
        () => search(clerk, 'wombats', {}, at),
        (lines) => lines.some(({ name }) => name === 'wombat-guide'),
      );
    await Promise.all([guide(gateway), guide(bare)]);
    assert.deepEqual(await answers(clerk, gateway), await answers(clerk, bare));
    assert.notDeepEqual(await answers(reader, gateway), await answers(reader, bare), 'an agent that may call them');
  });

  it('a Skill that requires a connection is available in the namespaces of the connection', async () => {
    const description = 'How to write about pangolins.';
    const create = (name: string, requiredSecrets: string[]) =>
      capability(name, { type: 'Skill', description, content: 'Write.', requiredSecrets });
    await create('pangolins', ['wiki']);
    await create('pangolin-salaries', ['wiki', 'payroll']);
    await create('pangolin-nothing', ['nowhere']);
    const notes = async (at: GatewayReplica) => {
      const lines = await pollValue(
        'the skills',
        () => search(clerk, 'pangolins', {}, at),
        ({ length }) => length === 3,
      );
      return Object.fromEntries(lines.map(({ name, note }) => [name, note]));
    };
    assert.deepEqual(await notes(gateway), {
      pangolins: undefined,
      'pangolin-salaries': '[not available: needs connection payroll]',
      'pangolin-nothing': '[not available: needs connection nowhere]',
    });
    assert.equal((await notes(bare))['pangolins'], '[not available: needs connection wiki]');
  });

  it('a Shared tool is served with its own Approval only, and a waiting pod learns of the approval and of the revocation at once', async () => {
    const { token } = analyst;
    const namesOf = async () => (await sessionTools(analyst)).map(({ artifact }) => artifact.name);
    type Version = { version: string; tools: string };
    const assignment = async (query: string, of = token): Promise<Version> => {
      const { status, text } = await gateway.call('GET', `/v1/assignment?${query}`, { token: of });
      assert.equal(status, 200, text);
      return JSON.parse(text);
    };
    const { token: bystander } = await fixture.createRunningAgent('team-b', 'bystander', {});
    const ofBystander = await pollValue(
      'the gateway to know the bystander',
      () => gateway.call('GET', '/v1/assignment?wait=0', { token: bystander }),
      ({ status }) => status === 200,
    );
    const { version: otherVersion } = JSON.parse(ofBystander.text) as Version;
    const longPolls = async (): Promise<number> => {
      const page = await (await fetch(`http://127.0.0.1:${gateway.healthPort}/metrics`)).text();
      return parsePrometheusText(page).samples.get('temper_long_polls') ?? 0;
    };
    /** The answer to a request that waits while the step happens. Fails when that is no sooner than the end of the wait. */
    const wokenBy = async (known: Version, step: () => Promise<void>): Promise<Version> => {
      const leaving = new AbortController();
      let hasEnded = false;
      // Its wait ends sooner.
      const other = gateway
        .call('GET', `/v1/assignment?wait=55&version=${otherVersion}`, { token: bystander, signal: leaving.signal })
        .then(() => (hasEnded = true))
        .catch((error: unknown) => assert.ok(leaving.signal.aborted, String(error)));
      const answer = assignment(`wait=60&version=${known.version}`);
      await poll('both requests to wait', async () => (await longPolls()) === 2);
      await step();
      const woken = await answer;
      assert.ok(!hasEnded, 'the request was answered at the end of its wait');
      leaving.abort();
      await other;
      await poll('no request to wait', async () => (await longPolls()) === 0);
      return woken;
    };
    const artifact = anArtifact('okapi_sum');
    await tools.create(artifact, { isApproved: false });
    await tools.decide(artifact, 'Approve', NAMESPACE, 'another-nonce-0001');
    await tools.create(anArtifact('okapi_marker'));
    await pollValue('a later tool', namesOf, (names) => names.includes('okapi_marker'));
    assert.ok(!(await namesOf()).includes('okapi_sum'), 'an active status and an Approval with another nonce');

    const before = await assignment('wait=0');
    const during = await wokenBy(before, () => tools.decide(artifact, 'Approve'));
    assert.notEqual(during.tools, before.tools);
    assert.ok((await namesOf()).includes('okapi_sum'));

    const after = await wokenBy(during, () => tools.decide(artifact, 'Revoke'));
    assert.notEqual(after.tools, during.tools);
    assert.ok(!(await namesOf()).includes('okapi_sum'));
    assert.deepEqual(
      await searchIds(analyst, 'okapi_sum').then((ids) => ids.includes('emergent-tool:okapi_sum')),
      false,
    );
  });

  lostToolContract('the gateway', async () => {
    const artifact = anArtifact('quagga_sum', { description: 'Sums up a quagga.' });
    await tools.create(artifact);
    const forging = { forge: { enabled: true, modes: ['Sandbox'] }, trustPolicyRef: { name: 'restricted' } };
    const neighbour = await aCaller('neighbour', forging);
    const entry = { digest: artifactDigest(artifact), tool: artifact.name, cause: 'Harmful', message: 'figures' };
    const setLost = (deactivatedTools: object[]) =>
      fixture.patchStatus(`${TEMPER}/${NAMESPACE}/agents/analyst`, { deactivatedTools });
    return {
      query: 'quagga',
      tool: artifact.name,
      found: async (agent) => (await search(agent === 'loser' ? analyst : neighbour, 'quagga')).map(({ name }) => name),
      lose: () => setLost([{ ...entry, since: new Date().toISOString() }]),
      regain: () => setLost([]),
    };
  });

  it('a search of one agent finds what its status says that it uses together with a result', async () => {
    await tools.create(anArtifact('ocelot_sum', { description: 'Sums up an ocelot.' }));
    await tools.create(anArtifact('plot_bars', { description: 'Draws bars.' }));
    const forging = { forge: { enabled: true, modes: ['Sandbox'] }, trustPolicyRef: { name: 'restricted' } };
    const plotter = await aCaller('plotter', forging);
    const ocelot = (caller: Caller) => searchIds(caller, 'ocelot');
    await pollValue(
      'both tools in the catalog',
      async () => [await ocelot(plotter), await searchIds(plotter, 'draw bars')].flat(),
      (ids) => ['emergent-tool:ocelot_sum', 'emergent-tool:plot_bars'].every((id) => ids.includes(id)),
    );
    assert.deepEqual(await ocelot(plotter), ['emergent-tool:ocelot_sum']);
    const toolsUsedTogether = [{ tools: ['ocelot_sum', 'plot_bars'], percent: 70 }];
    await fixture.patchStatus(`${TEMPER}/${NAMESPACE}/agents/plotter`, { toolsUsedTogether });
    await pollValue(
      'the pair',
      () => ocelot(plotter),
      (ids) => ids.join(' ') === 'emergent-tool:ocelot_sum emergent-tool:plot_bars',
    );
    assert.deepEqual(await ocelot(analyst), ['emergent-tool:ocelot_sum'], 'another agent');
  });

  it('a search needs a valid body within the size limit and the delivery token of the calling pod', async () => {
    const refused = async (body: object, caller = analyst) => (await postSearch(caller, body)).status;
    assert.equal(await refused({}), 400);
    assert.equal(await refused({ query: '' }), 400);
    assert.equal(await refused({ query: 'x'.repeat(2_049) }), 400);
    assert.equal(await refused({ query: 'x', namespace: 'team-b' }), 400);
    assert.equal(await refused({ query: 'x', kind: 'x'.repeat(20_000) }), 413);
    assert.equal(await refused({ query: 'x', deliveryToken: clerk.deliveryToken }), 403);
    assert.equal((await gateway.call('POST', '/v1/discovery/search', { body: { query: 'x' } })).status, 401);
    const hostile = '\u0000\u202e(((((a+)+)+)+$'.repeat(20).slice(0, 400);
    assert.equal(await refused({ query: hostile }), 200);
  });
});
