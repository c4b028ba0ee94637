import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import type { JsonObject } from '../lib/json.ts';
import type { ModelRequest } from '../models/port.ts';
import { createSafeFetch, type SafeFetch } from '../net/fetch.ts';
import { createSupervisor, type Supervisor } from '../sandbox/supervisor.ts';
import { anEngine, type EngineChanges } from './engine.testing.ts';

const FIXTURES = join(import.meta.dirname, '../../test/fixtures');
const HOST = 'api.example.com';

/** The sample forges. Those whose tools are invented use the built-in ones instead. */
const CHAINS: Record<string, JsonObject> = {
  research_and_summarize: {
    name: 'research_and_summarize',
    description: 'Looks a topic up in the files and answers with a short summary of what was found.',
    inputSchema: { type: 'object', properties: { topic: { type: 'string' } }, required: ['topic'] },
    implementation: {
      mode: 'compose',
      steps: [
        { name: 'search', tool: 'text_search', inputMapping: { text: '$input.topic' } },
        { name: 'summarize', tool: 'generate_text', inputMapping: { prompt: 'Sum up "$input.topic":\n$prev.matches' } },
      ],
    },
    testCases: [
      {
        input: { topic: 'anvils' },
        fixtures: [
          { tool: 'text_search', output: { matches: [], complete: true } },
          { tool: 'generate_text', output: { text: 'heavy', output: 'heavy' } },
        ],
        expectedOutput: { text: 'heavy', output: 'heavy' },
      },
    ],
  },
  fetch_analyze_report: {
    name: 'fetch_analyze_report',
    description: 'Reads figures, has them analysed for a range of time, and writes a report.',
    inputSchema: {
      type: 'object',
      properties: { endpoint: { type: 'string' }, timeRange: { type: 'string' } },
      required: ['endpoint'],
    },
    implementation: {
      mode: 'compose',
      steps: [
        { name: 'fetch', tool: 'file_read', inputMapping: { path: '$input.endpoint' } },
        { name: 'slug', tool: 'slugify', inputMapping: { text: '$prev.text' } },
        { name: 'analyze', tool: 'generate_text', inputMapping: { prompt: 'Trends, $input.timeRange:\n$prev.slug' } },
        { name: 'format', tool: 'generate_text', inputMapping: { prompt: 'As a report:\n$prev.output' } },
      ],
    },
    testCases: [
      {
        input: { endpoint: 'data/m.txt', timeRange: 'today' },
        fixtures: [
          { tool: 'file_read', output: { path: 'data/m.txt', text: 'A B', bytes: 3, lines: 1 } },
          { tool: 'generate_text', input: { prompt: 'Trends, today:\na-b' }, output: { text: 'up', output: 'up' } },
          { tool: 'generate_text', output: { text: '# Up', output: '# Up' } },
        ],
        expectedOutput: { text: '# Up', output: '# Up' },
      },
    ],
  },
};

/** An input per use; each use belongs to a message of its own. */
const INPUTS: Record<string, JsonObject[]> = {
  convert_temperature: [1, 2, 3].map((value) => ({ value, from: 'C', to: 'F' })),
  parse_csv: ['a\n1', 'b\n2', 'c\n3'].map((csv) => ({ csv })),
  slugify: ['A b', 'C d', 'E f'].map((text) => ({ text })),
  check_http_status: [200, 404, 503].map((status) => ({ url: `https://${HOST}/${status}` })),
  research_and_summarize: ['iron', 'steel', 'tin'].map((topic) => ({ topic })),
  fetch_analyze_report: ['1', '2', '3'].map((name) => ({ endpoint: `data/${name}.txt`, timeRange: name })),
};

describe('promotions of an engine', () => {
  let workspace: string;
  let sandbox: Supervisor;
  let server: Server;
  let safeFetch: SafeFetch;
  let requests = 0;
  before(async () => {
    workspace = await mkdtemp(join(tmpdir(), 'temper-promotion-'));
    await mkdir(join(workspace, 'data'));
    for (const name of ['1', '2', '3']) await writeFile(join(workspace, `data/${name}.txt`), `Iron ${name}`);
    sandbox = await createSupervisor({ clock: systemClock });
    const [certificate, key] = await Promise.all(
      ['certificate.pem', 'key.pem'].map((name) => readFile(join(FIXTURES, 'tls', name), 'utf8')),
    );
    server = createServer({ key, cert: certificate }, (request, response) => {
      requests += 1;
      response.writeHead(Number(request.url?.slice(1)), { date: new Date().toUTCString() }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    // The rules permit public addresses only, so the name has one, and the connection ends at the local server.
    safeFetch = createSafeFetch({
      clock: systemClock,
      certificateAuthorities: [certificate ?? ''],
      network: {
        resolve: async () => ['93.184.215.14'],
        connect: () => {
          const socket = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
          return new Promise((resolve, reject) => socket.once('connect', () => resolve(socket)).once('error', reject));
        },
      },
    });
  });
  after(async () => {
    await sandbox[Symbol.asyncDispose]();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await rm(workspace, { recursive: true, force: true });
  });

  let answers = 0;
  /** A model that never gives the same answer twice, as models do. */
  const respond = ({ messages }: ModelRequest): string =>
    `answer ${(answers += 1)} to ${JSON.stringify(messages).length}`;

  const open = (changes: EngineChanges = {}) =>
    anEngine(
      { workspace, sandbox },
      {
        level: 'standard',
        fetch: safeFetch,
        respond,
        ...changes,
        agent: {
          grants: { tools: ['*'], network: [HOST] },
          forge: { enabled: true, modes: ['Compose', 'Sandbox'], apis: ['fetch', 'fs.readFile', 'clock', 'random'] },
        },
        policy: {
          level: { ceiling: 'standard' },
          autonomy: 'Full',
          models: { judge: 'test/judge', reviewers: ['test/safety', 'test/correctness'] },
          forge: { apis: ['fetch', 'fs.readFile', 'clock', 'random'], domains: [HOST] },
          egress: { allow: [HOST] },
          // A tool that fetches taints its session, and by default no tool is promoted from a tainted one.
          tainted: { deny: [] },
          promotion: { toAgent: { minSuccessfulUses: 3, minDistinctInputs: 3 } },
        },
      },
    );
  type Opened = Awaited<ReturnType<typeof open>>;

  async function requestOf(name: string): Promise<JsonObject> {
    const chain = CHAINS[name];
    if (chain !== undefined) return chain;
    const text = await readFile(join(FIXTURES, 'forges', `${name}.json`), 'utf8');
    return JSON.parse(text.replaceAll('status.example.com', HOST)) as JsonObject;
  }

  async function forge({ call }: Opened, request: JsonObject): Promise<void> {
    const forged = await call('forge_tool', request);
    assert.ok(forged.ok, JSON.stringify(forged));
  }

  async function use({ call, engine }: Opened, name: string, inputs: readonly JsonObject[]): Promise<void> {
    for (const input of inputs) {
      const used = await call(name, input);
      assert.ok(used.ok, JSON.stringify(used));
    }
    await engine.settled();
  }

  function tierOf({ registry, events }: Opened, name: string): string {
    const tool = registry.all().find(({ active, artifact }) => active && artifact.name === name);
    return tool?.tier === 'Agent' ? 'Agent' : JSON.stringify(events.filter(({ type }) => type === 'promotion'));
  }

  it('every sample forge rises to tier Agent after its uses, with the built-in tools, a model and a web server', async () => {
    const engine = await open();
    // The pinned tool of a chain has to rise first.
    for (const [name, inputs] of Object.entries(INPUTS)) {
      await forge(engine, await requestOf(name));
      await use(engine, name, inputs);
      const [before, answered] = [requests, answers];
      assert.equal(tierOf(engine, name), 'Agent', name);
      assert.deepEqual(
        [requests, answers],
        [before, answered],
        'the verification asked neither the server nor the model',
      );
    }
    assert.equal(requests, 3);
    const promoted = engine.events.filter((event) => event.type === 'promotion' && event.state === 'PanelReview');
    const notes = promoted.map((event) => (event.type === 'promotion' ? `${event.tool}: ${event.note}` : ''));
    assert.ok(
      notes.some((note) => /check_http_status: .*recorded answers: 3 observed, 0 reported/.test(note)),
      notes.join('\n'),
    );
  });

  it('a tool with the clock and randomness rises, because its re-runs get the same time and randomness', async () => {
    const engine = await open();
    await forge(engine, {
      name: 'dice',
      description: 'Rolls dice.',
      inputSchema: { type: 'object', properties: { sides: { type: 'integer' } }, required: ['sides'] },
      outputSchema: {
        type: 'object',
        properties: { roll: { type: 'integer', minimum: 1 }, id: { type: 'string' }, time: { type: 'number' } },
        required: ['roll', 'id', 'time'],
      },
      implementation: {
        mode: 'sandbox',
        code: `function execute({ sides }) {
          return { roll: 1 + Math.floor(Math.random() * sides), id: crypto.randomUUID(), time: Date.now() };
        }`,
        allowlist: ['clock', 'random'],
      },
      testCases: [{ input: { sides: 1 } }],
    });
    await use(engine, 'dice', [{ sides: 1000 }, { sides: 1001 }, { sides: 1002 }]);
    assert.equal(tierOf(engine, 'dice'), 'Agent');
  });

  it('a tool that repeats a promoted one is refused with its name, and one that differs for a single input rises', async () => {
    const engine = await open();
    const price = (name: string, code: string): JsonObject => ({
      name,
      description: 'The price of an item with its tax.',
      inputSchema: { type: 'object', properties: { cents: { type: 'integer' } }, required: ['cents'] },
      outputSchema: { type: 'object', properties: { price: { type: 'number' } }, required: ['price'] },
      implementation: { mode: 'sandbox', code: `function execute({ cents }) { ${code} }` },
      testCases: [{ input: { cents: 100 }, expectedOutput: { price: 119 } }],
    });
    const cents = (...values: number[]) => values.map((value) => ({ cents: value }));
    await forge(engine, price('price_with_tax', 'return { price: Math.round(cents * 1.19) };'));
    await use(engine, 'price_with_tax', cents(200, 300, 400));
    assert.equal(tierOf(engine, 'price_with_tax'), 'Agent');
    const tax = 'const tax = cents * 19 / 100; return { price: Math.round(cents + tax) };';
    await forge(engine, price('gross_price', tax));
    await use(engine, 'gross_price', cents(500, 600, 700));
    const reason =
      /Rejected.*examination: redundancy: .*price_with_tax.* at tier Agent gives the same outputs for all 7 shared inputs; call/;
    assert.match(tierOf(engine, 'gross_price'), reason);
    await forge(engine, price('price_of_gift', `if (cents === 400) return { price: 0 }; ${tax}`));
    await use(engine, 'price_of_gift', cents(500, 600, 700));
    assert.equal(tierOf(engine, 'price_of_gift'), 'Agent');
  });

  it('a tool that reads secrets stays at tier Session, and its state says why', async () => {
    const key = `ghp_${'a1B2'.repeat(10)}`;
    await writeFile(join(workspace, 'data/keys.txt'), `token\n${key}\n`);
    const engine = await open();
    await forge(engine, {
      name: 'first_line',
      description: 'Reads the first line of a file.',
      inputSchema: { type: 'object', properties: { path: { type: 'string' }, n: { type: 'integer' } } },
      implementation: {
        mode: 'sandbox',
        code: `async function execute({ path }) { return { line: (await fs.readFile(path)).split('\\n')[0] }; }`,
        allowlist: ['fs.readFile'],
        paths: ['data/**'],
      },
      testCases: [
        {
          input: { path: 'data/a.txt' },
          fixtures: [{ tool: 'fs_read_file', output: 'a\nb' }],
          expectedOutput: { line: 'a' },
        },
      ],
    });
    await use(
      engine,
      'first_line',
      [1, 2, 3].map((n) => ({ path: 'data/keys.txt', n })),
    );
    const [tool] = engine.registry.all();
    assert.ok(tool?.tier === 'Session');
    const { recordedInputs, unrecorded } = await engine.registry.statistics(tool.digest, 'n');
    assert.deepEqual([recordedInputs.observed, unrecorded], [0, { ContainsSecret: 3 }]);
    const stored = JSON.stringify(await engine.records.list('uses/n'));
    assert.ok(!stored.includes(key));
  });
});
