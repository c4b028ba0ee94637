import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import type { Job, Sandbox } from '../sandbox/port.ts';
import { createSupervisor, type Supervisor } from '../sandbox/supervisor.ts';
import type { NestedCall, Tool } from '../tools/contract.ts';
import { createSchemaCompiler } from '../tools/json-schema/compiler.ts';
import { standaloneContext } from './standalone-context.ts';
import { createForge } from './forge.ts';
import { createForgedTool } from './forged-tool.ts';
import { aCall, aContext, aDecider, anOp, aRequest, aTool, denyingHost } from './forge.testing.ts';
import type { ToolCandidate, RefusedTool } from './types.ts';

const FORGES = resolve(import.meta.dirname, '../../test/fixtures/forges');
const schemas = createSchemaCompiler();
const clock = systemClock;
let sandbox: Supervisor;
before(async () => {
  sandbox = await createSupervisor({ clock, warm: 1, maxRunners: 2 });
});
after(() => sandbox[Symbol.asyncDispose]());

const forge = () => createForge({ sandbox, clock, schemas });

async function accepted(request: Json, context = aContext()): Promise<ToolCandidate> {
  const result = await forge().check({ request }, context);
  if ('accepted' in result) assert.fail(`${result.gate} ${result.code}: ${result.message}`);
  return result;
}

async function refused(request: Json, context = aContext()): Promise<RefusedTool> {
  const result = await forge().check({ request }, context);
  assert.ok('accepted' in result, 'it was accepted');
  return result;
}

const deps = () => ({ sandbox, clock, schemas, hostCalls: () => denyingHost, describe: () => undefined });

const inSandbox = (code: string, more: JsonObject = {}): JsonObject => ({
  mode: 'sandbox',
  code,
  allowlist: [],
  ...more,
});

describe('worked forges', async () => {
  for (const file of await readdir(FORGES)) {
    it(`the forge accepts the example ${file}`, async () => {
      const request = JSON.parse(await readFile(join(FORGES, file), 'utf8')) as Json;
      const source = { request };
      const result = await forge().check(
        source,
        standaloneContext(source, () => {}, anOp()),
      );
      if ('accepted' in result) assert.fail(`${result.gate} ${result.code}: ${result.message}`);
      assert.ok(result.evidence.tests.every((test) => test.passed));
    });
  }
  it('the forge refuses a request with a number that is not finite, in place of reading it as null', async () => {
    for (const expectedOutput of [Number.POSITIVE_INFINITY, Number.NaN, { mean: [-Infinity] }]) {
      const refusal = await refused(aRequest({ testCases: [{ input: { n: 1 }, expectedOutput }] }));
      assert.match(refusal.message, /not finite/);
    }
  });

  it('the refusal lists the missing fixtures of steps with side effects', async () => {
    for (const [file, tools] of [
      ['research_and_summarize.json', ['web_search', 'generate_text']],
      ['fetch_analyze_report.json', ['http_request', 'generate_text']],
    ] as const) {
      const request = JSON.parse(await readFile(join(FORGES, file), 'utf8')) as { testCases: JsonObject[] };
      for (const test of request.testCases) delete test['fixtures'];
      const source = { request: request as unknown as Json };
      const result = await forge().check(
        source,
        standaloneContext(source, () => {}, anOp()),
      );
      assert.ok('accepted' in result);
      assert.deepEqual([result.gate, result.code], ['static', 'TEMPER_FORGE_COMPOSE']);
      for (const tool of tools) assert.ok(result.message.includes(`{"tool":"${tool}","output":…}`), result.message);
    }
  });
});

describe('request normalisation', () => {
  const code = 'function execute(input) { return { twice: input.n * 2 }; }';
  const { implementation, ...flat } = aRequest();
  const request = (changes: JsonObject): JsonObject => aRequest(changes);
  const REPAIRED: Record<string, Json> = {
    'a request that is text': JSON.stringify(aRequest()),
    'members that are text': request({
      inputSchema: JSON.stringify(aRequest()['inputSchema']),
      implementation: JSON.stringify(implementation),
      testCases: JSON.stringify(aRequest()['testCases']),
    }),
    'the flat form': { ...flat, code },
    'the flat form with mode and allowlist': { ...flat, code, mode: 'JavaScript', allowlist: [] },
    'mode js': request({ implementation: { mode: 'js', code } }),
    'mode code': request({ implementation: { mode: 'code', code } }),
    'no mode': request({ implementation: { code } }),
    'code as the implementation': request({ implementation: code }),
    'fenced code': request({ implementation: { code: `\`\`\`js\n${code}\n\`\`\`` } }),
    'snake case': {
      name: 'double',
      description: 'Doubles.',
      input_schema: aRequest()['inputSchema'] ?? null,
      output_schema: aRequest()['outputSchema'] ?? null,
      code,
      test_cases: [{ input: { n: 1 }, expected_output: { twice: 2 } }],
    },
    'no schemas': {
      name: 'double',
      description: 'Doubles.',
      code,
      testCases: [{ input: { n: 1 }, expected: { twice: 2 } }],
    },
    'members in place of a schema': request({ inputSchema: { n: { type: 'number' } } }),
    'a test that is text': request({ testCases: ['{"input":{"n":1},"expectedOutput":{"twice":2}}'] }),
    'an allowlist that is text': request({
      implementation: {
        mode: 'sandbox',
        code: code.replace('input.n * 2', 'input.n + input.n + crypto.createHash("md5").digest("hex").length * 0'),
        allowlist: 'crypto',
      },
    }),
  };
  for (const [name, given] of Object.entries(REPAIRED)) {
    it(`the forge accepts ${name} with a warning`, async () => {
      const decider = aDecider({
        level: 'standard',
        agent: { enabled: true, apis: ['crypto'] },
        policy: { apis: ['crypto'] },
      });
      const candidate = await accepted(given, aContext({ decider }));
      assert.notEqual(candidate.evidence.warnings.length, 0);
      assert.equal(candidate.artifact.implementation.mode, 'Sandbox');
    });
  }
  it('the forge accepts the aliases of mode compose', async () => {
    for (const mode of ['chain', 'pipeline', 'composed', 'workflow']) {
      const steps = [{ tool: 'add_one', args: { n: '$input.n' } }];
      const candidate = await accepted(
        { ...flat, mode, steps, testCases: [{ input: { n: 1 }, expectedOutput: { twice: 2 } }] },
        aContext({ tools: [aTool('add_one', ({ n }) => ({ twice: Number(n) + 1 }))] }),
      );
      assert.equal(candidate.artifact.implementation.mode, 'Compose');
    }
  });
  it('the forge refuses text that is not valid JSON', async () => {
    const result = await refused(aRequest({ testCases: '[{"input":' }));
    assert.deepEqual([result.gate, result.class], ['normalization', 'parse_error']);
  });
});

describe('refusals', () => {
  const loop = inSandbox('function execute() { for (;;) {} }');
  const CASES: Record<string, [request: Json, gate: string, code: string, class_: string, message: RegExp]> = {
    'everything missing, all at once': [
      {},
      'shape',
      'TEMPER_FORGE_SHAPE',
      'shape_check',
      /name.*description.*inputSchema|inputSchema.*name/s,
    ],
    'no object': [[1], 'normalization', 'TEMPER_FORGE_SHAPE', 'parse_error', /object/],
    'a bad name': [aRequest({ name: '2double!' }), 'shape', 'TEMPER_FORGE_SHAPE', 'shape_check', /name/],
    'a reserved name': [aRequest({ name: 'forge_tool' }), 'shape', 'TEMPER_FORGE_SHAPE', 'shape_check', /reserved/],
    'a name from the prototype': [
      aRequest({ name: 'constructor' }),
      'shape',
      'TEMPER_FORGE_SHAPE',
      'shape_check',
      /reserved/,
    ],
    'no tests': [aRequest({ testCases: [] }), 'shape', 'TEMPER_FORGE_SHAPE', 'shape_check', /testCases/],
    'an empty input alone': [
      aRequest({ testCases: [{ input: {}, expectedOutput: {} }] }),
      'shape',
      'TEMPER_FORGE_SHAPE',
      'shape_check',
      /non-empty input/,
    ],
    'tests without expected outputs': [
      aRequest({ outputSchema: {}, testCases: [{ input: { n: 1 } }] }),
      'shape',
      'TEMPER_FORGE_SHAPE',
      'shape_check',
      /states its expected output/,
    ],
    'a source that does not parse': [
      aRequest({ implementation: inSandbox('function execute( { return 1 }') }),
      'static',
      'TEMPER_FORGE_SYNTAX',
      'syntax_error',
      /line 1/,
    ],
    'a banned name': [
      aRequest({ implementation: inSandbox('function execute() { return process.env; }') }),
      'static',
      'TEMPER_FORGE_STATIC',
      'other',
      /process is banned/,
    ],
    'an unknown keyword in a schema': [
      aRequest({ inputSchema: { type: 'object', properties: { n: { type: 'number', minimun: 1 } } } }),
      'schemas',
      'TEMPER_FORGE_EXTRA_FIELD',
      'schema_extra_field',
      /inputSchema\/properties\/n.*minimun/,
    ],
    'a remote reference in a schema': [
      aRequest({ outputSchema: { $ref: 'https://example.com' } }),
      'schemas',
      'TEMPER_FORGE_SCHEMA',
      'other',
      /outside the schema/,
    ],
    'a test its own schema refuses': [
      aRequest({ testCases: [{ input: { n: 'x' }, expectedOutput: { twice: 2 } }] }),
      'tests',
      'TEMPER_FORGE_TEST_FAILED',
      'other',
      /case 1: its input does not match inputSchema: n must be number/,
    ],
    'a wrong output': [
      aRequest({
        testCases: [
          { input: { n: 1 }, expectedOutput: { twice: 2 } },
          { input: { n: 2 }, expectedOutput: { twice: 412.5 } },
        ],
      }),
      'tests',
      'TEMPER_FORGE_TEST_FAILED',
      'other',
      /case 2: expected \{"twice":412.5\}, got \{"twice":4\} \(at twice\)/,
    ],
    'a tool that throws': [
      aRequest({ implementation: inSandbox('function execute() { throw new Error("no luck"); }') }),
      'tests',
      'TEMPER_FORGE_TEST_FAILED',
      'other',
      /no luck.*TEMPER_SANDBOX_EXCEPTION/,
    ],
    'a tool that never ends': [
      aRequest({ implementation: loop, limits: { duration: '300ms' } }),
      'tests',
      'TEMPER_FORGE_TEST_FAILED',
      'other',
      /TEMPER_SANDBOX_TIMEOUT/,
    ],
    'a tool that returns nothing': [
      aRequest({ implementation: inSandbox('function execute() {}') }),
      'tests',
      'TEMPER_FORGE_TEST_FAILED',
      'other',
      /TEMPER_SANDBOX_OUTPUT_INVALID/,
    ],
    'an output its schema refuses': [
      aRequest({ outputSchema: { type: 'object', properties: { twice: { type: 'string' } } } }),
      'output-schema',
      'TEMPER_FORGE_OUTPUT_SCHEMA',
      'other',
      /case 1.*twice must be string/,
    ],
    'an output with a member its schema does not name': [
      aRequest({ outputSchema: { type: 'object', properties: {}, additionalProperties: false } }),
      'output-schema',
      'TEMPER_FORGE_OUTPUT_SCHEMA',
      'schema_extra_field',
      /additional properties/,
    ],
    'limits outside the bounds of an EmergentTool': [
      aRequest({ limits: { duration: '50m', memory: '1Mi' } }),
      'shape',
      'TEMPER_FORGE_SHAPE',
      'shape_check',
      /limits.duration must be a duration from 1ms to 30s.*limits.memory must be bytes from 8Mi to 1Gi/,
    ],
    'a limit beyond the policy': [
      aRequest({ limits: { duration: '25s' } }),
      'policy',
      'TEMPER_FORGE_LIMIT_EXCEEDED',
      'other',
      /limits.duration/,
    ],
    'a host function the policy does not allow': [
      aRequest({
        implementation: inSandbox('async function execute(i) { return (await fetch(i.n)).status; }', {
          allowlist: ['fetch'],
        }),
      }),
      'policy',
      'TEMPER_FORGE_LIMIT_EXCEEDED',
      'other',
      /fetch/,
    ],
  };
  for (const [name, [request, gate, code, class_, message]] of Object.entries(CASES)) {
    it(`the forge refuses ${name}`, async () => {
      const context = aContext();
      const result = await refused(request, context);
      assert.deepEqual([result.gate, result.code, result.class], [gate, code, class_], result.message);
      assert.match(result.message, message);
      assert.deepEqual(context.emitted.at(-1)?.type, 'forge-refused');
      assert.deepEqual(result.gates.map((passed) => passed.passed).indexOf(false), result.gates.length - 1);
    });
  }

  it('the forge runs no code of a tool whose mode the level does not permit', async () => {
    const jobs: Job[] = [];
    const watched: Sandbox = { run: (job) => (jobs.push(job), assert.fail('it ran')) };
    const context = aContext({ decider: aDecider({ level: 'sandboxed' }) });
    const result = await createForge({ sandbox: watched, clock, schemas }).check({ request: aRequest() }, context);
    assert.ok(
      'accepted' in result && result.gate === 'policy' && result.code === 'TEMPER_FORGE_LIMIT_EXCEEDED',
      JSON.stringify(result),
    );
    assert.equal(jobs.length, 0);
  });
  it('the forge refuses every request when forging is disabled or the session is full', async () => {
    const off = await refused(aRequest(), aContext({ decider: aDecider({ agent: { enabled: false } }) }));
    assert.equal(off.code, 'TEMPER_FORGE_DISABLED');
    const full = aContext({
      decider: aDecider({ policy: { limits: { sessionTools: 1 } } }),
      tools: [aTool('other', () => 1, { forged: { digest: `sha256:${'0'.repeat(64)}`, tier: 'Session' } })],
    });
    assert.equal((await refused(aRequest(), full)).code, 'TEMPER_FORGE_LIMIT_REACHED');
  });
  it('imported tools do not fill a session, and an import counts the imported tools against the limit of the agent', async () => {
    const held = (name: string, imported: boolean) =>
      aTool(name, () => 1, { forged: { digest: `sha256:${'0'.repeat(64)}`, tier: 'Session', imported } });
    const decider = aDecider({ policy: { limits: { sessionTools: 1, agentTools: 1 } } });
    const check = (tool: Tool, isImport: boolean) =>
      forge().check({ request: aRequest() }, { ...aContext({ decider, tools: [tool] }), isImport });
    for (const [tool, isImport] of [
      [held('other', true), false],
      [held('other', false), true],
    ] as const) {
      const result = await check(tool, isImport);
      assert.ok(!('accepted' in result), JSON.stringify(result));
    }
    const refused = await check(held('other', true), true);
    assert.match('accepted' in refused ? JSON.stringify(refused) : '', /1 of 1 allowed imported tools; demote one/);
  });
  it('a forge refuses the name of an imported tool before any test runs', async () => {
    const imported = aTool('double', () => 1, {
      forged: { digest: `sha256:${'0'.repeat(64)}`, tier: 'Session', imported: true },
    });
    const result = await refused(aRequest(), { ...aContext({ tools: [imported] }), replacesSessionTools: true });
    assert.deepEqual([result.gate, result.code], ['shape', 'TEMPER_FORGE_NAME_TAKEN']);
  });
  it('a full session can still replace its own tool', async () => {
    const own = aTool('double', () => 1, { forged: { digest: `sha256:${'0'.repeat(64)}`, tier: 'Session' } });
    const context = aContext({ decider: aDecider({ policy: { limits: { sessionTools: 1 } } }), tools: [own] });
    const result = await forge().check({ request: aRequest() }, { ...context, replacesSessionTools: true });
    assert.ok(!('accepted' in result), JSON.stringify(result));
  });
  it('the forge refuses the name of an existing tool', async () => {
    const result = await refused(aRequest(), aContext({ tools: [aTool('double', () => 1)] }));
    assert.deepEqual([result.gate, result.code], ['shape', 'TEMPER_FORGE_NAME_TAKEN']);
  });
  it('the forge requires the number of tests that the policy sets', async () => {
    const decider = aDecider({ policy: { limits: { minTestCases: 3 } } });
    assert.match((await refused(aRequest(), aContext({ decider }))).message, /3 test cases/);
  });
  it('the forge names two test cases that contradict each other', async () => {
    const testCases = [
      { input: { n: 2 }, expectedOutput: { twice: 4 } },
      { input: { n: 3 }, expectedOutput: { twice: 6 } },
      { input: { n: 2 }, expectedOutput: { twice: 5 } },
    ];
    assert.match((await refused(aRequest({ testCases }))).message, /test cases 1 and 3 contradict each other/);
  });
  it('a tool whose schemas were inferred accepts fractions, null and absent members later', async () => {
    const { inputSchema: _input, outputSchema: _output, ...rest } = aRequest();
    const { artifact, digest } = await accepted({
      ...rest,
      implementation: inSandbox('function execute({ n, note }) { return { half: n / 2, note: note ?? null }; }'),
      testCases: [
        { input: { n: 2 }, expectedOutput: { half: 1, note: null } },
        { input: { n: 4, note: 'x' }, expectedOutput: { half: 2, note: 'x' } },
      ],
    });
    const tool = createForgedTool(artifact, digest, 'Session', deps());
    const { view, op } = aContext();
    const check = schemas.check(JSON.parse(artifact.inputSchema) as JsonObject);
    const calls: [input: JsonObject, output: JsonObject][] = [
      [{ n: 3 }, { half: 1.5, note: null }],
      [
        { n: 2.5, note: 'y' },
        { half: 1.25, note: 'y' },
      ],
    ];
    for (const [input, output] of calls) {
      assert.deepEqual(check(input), []);
      assert.deepEqual(await tool.call(input, aCall(view, op)), output);
    }
  });
  it('the forge counts a test case that is given three times once', async () => {
    const decider = aDecider({ policy: { limits: { minTestCases: 3 } } });
    const same = { input: { n: 2 }, expectedOutput: { twice: 4 } };
    const result = await refused(aRequest({ testCases: [same, same, same] }), aContext({ decider }));
    assert.match(result.message, /3 test cases with different, non-empty inputs are needed, 1 given; add 2/);
  });
  it('the forge accepts an empty test input for a tool without inputs', async () => {
    await accepted(
      aRequest({
        inputSchema: { type: 'object', properties: {} },
        implementation: inSandbox('function execute() { return { twice: 2 }; }'),
        testCases: [{ input: {}, expectedOutput: { twice: 2 } }],
      }),
    );
  });
  it('the forge refuses an artifact with a wrong digest', async () => {
    const { artifact, digest } = await accepted(aRequest());
    const edited = { ...artifact, description: 'Triples a number.' };
    const context = aContext();
    const result = await forge().check({ artifact: edited as unknown as Json, digest }, context);
    assert.ok('accepted' in result && result.code === 'TEMPER_PACKAGE_INVALID' && result.gate === 'build');
    const same = await forge().check({ artifact: artifact as unknown as Json, digest }, context);
    assert.ok(!('accepted' in same) && same.digest === digest);
  });
});

describe('test gaming', () => {
  it('the sandbox receives no expected output', async () => {
    const jobs: Job[] = [];
    const watched: Sandbox = {
      run: (job, host, op) => {
        jobs.push(job);
        return sandbox.run(job, host, op);
      },
    };
    const marker = 'expected-marker-7261';
    const request = aRequest({
      outputSchema: {},
      testCases: [{ input: { n: 1 }, expectedOutput: { secret: marker } }],
    });
    const result = await createForge({ sandbox: watched, clock, schemas }).check({ request }, aContext());
    assert.ok('accepted' in result && result.code === 'TEMPER_FORGE_TEST_FAILED');
    assert.equal(jobs.length, 2);
    assert.ok(!JSON.stringify(jobs).includes(marker));
  });
  it('a quota that runs out in one of two runs is reported as such and not as a fault of the tool', async () => {
    const context = aContext({ tools: [aTool('read', () => ({ twice: 2 }))] });
    let calls = 0;
    const invoke: NestedCall = async (tool, input, op) => {
      calls += 1;
      if (calls < 4) return context.invoke(tool, input, op);
      const error = { code: 'TEMPER_QUOTA_EXCEEDED' as const, message: '60 of 60 are used' };
      return { ok: false, tool, error, milliseconds: 0 };
    };
    const request = aRequest({
      implementation: { mode: 'compose', steps: [{ name: 'one', tool: 'read', inputMapping: { n: '$input.n' } }] },
      testCases: [{ input: { n: 1 } }, { input: { n: 2 } }],
    });
    const forge = createForge({ sandbox, clock, schemas, concurrency: 1 });
    const result = await forge.check({ request }, { ...context, invoke });
    assert.ok('accepted' in result && result.code === 'TEMPER_QUOTA_EXCEEDED', JSON.stringify(result));
    assert.match(result.message, /60 of 60/);
  });
  it('the forge refuses a tool whose output varies between runs', async () => {
    let runs = 0;
    const flaky: Sandbox = {
      run: async (job, host, op) => {
        const outcome = await sandbox.run(job, host, op);
        runs += 1;
        return outcome.ok && runs === 4 ? { ...outcome, output: { twice: 5 } } : outcome;
      },
    };
    const request = aRequest({ testCases: [{ input: { n: 1 } }, { input: { n: 2 } }] });
    const result = await createForge({ sandbox: flaky, clock, schemas, concurrency: 1 }).check({ request }, aContext());
    assert.ok('accepted' in result && result.code === 'TEMPER_FORGE_NONDETERMINISTIC', JSON.stringify(result));
  });
  it('a run cannot see the state of an earlier run', async () => {
    const code =
      'let seen = 0; Array.prototype.seen = 1; globalThis.execute = () => { seen += 1; globalThis.kept = (globalThis.kept || 0) + 1; return { twice: seen + globalThis.kept }; };';
    await accepted(
      aRequest({ implementation: inSandbox(code), testCases: [{ input: { n: 1 }, expectedOutput: { twice: 2 } }] }),
    );
  });
  it('a tool that reads the clock by another name without declaring it fails its tests', async () => {
    const code = 'function execute() { const { now } = Date; return { time: now() }; }';
    const result = await refused(aRequest({ implementation: inSandbox(code), testCases: [{ input: { n: 1 } }] }));
    assert.equal(result.code, 'TEMPER_FORGE_TEST_FAILED');
    assert.match(result.message, /Date\.now\(\) reads the clock; add "clock" to the allowlist/);
  });
  it('a tool that contains the texts of its tests gives a warning for the judge', async () => {
    const code =
      'function execute(input) { return { out: input.text === "a telling text" ? "the answer to it" : "" }; }';
    const candidate = await accepted(
      aRequest({
        inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
        outputSchema: {},
        implementation: inSandbox(code),
        testCases: [{ input: { text: 'a telling text' }, expectedOutput: { out: 'the answer to it' } }],
      }),
    );
    assert.ok(candidate.evidence.warnings.some((warning) => warning.includes('recognise its tests')));
  });
  it('no further test case runs after a killed one', async () => {
    const request = aRequest({
      implementation: inSandbox('function execute() { for (;;) {} }'),
      limits: { duration: '200ms' },
      testCases: Array.from({ length: 20 }, (_, n) => ({ input: { n }, expectedOutput: { twice: n } })),
    });
    const result = await refused(request);
    assert.ok((result.evidence?.tests.length ?? 0) <= 4, String(result.evidence?.tests.length));
  });
});

describe('forged tools', () => {
  it('a forged tool gives the same output as in its tests', async () => {
    const { artifact, digest } = await accepted(aRequest());
    const tool = createForgedTool(artifact, digest, 'Session', deps());
    const { view, op } = aContext();
    assert.deepEqual(await tool.call({ n: 21 }, aCall(view, op)), { twice: 42 });
    assert.deepEqual(tool.descriptor.forged, { digest, tier: 'Session', pure: true });
    assert.deepEqual(
      [tool.descriptor.sideEffects, tool.descriptor.action, tool.descriptor.locality],
      [false, 'code:read', 'Local'],
    );
  });
  it('a call whose output does not match the schema fails', async () => {
    const code = 'function execute(input) { return { twice: input.n > 100 ? "many" : input.n * 2 }; }';
    const { artifact, digest } = await accepted(aRequest({ implementation: inSandbox(code) }));
    const tool = createForgedTool(artifact, digest, 'Session', deps());
    const { view, op } = aContext();
    await assert.rejects(tool.call({ n: 101 }, aCall(view, op)), { code: 'TEMPER_TOOL_OUTPUT_INVALID' });
  });
  it('an artifact with another digest makes no forged tool', async () => {
    const { artifact, digest } = await accepted(aRequest());
    const edited = { ...artifact, description: 'other' };
    assert.throws(() => createForgedTool(edited, digest, 'Session', deps()), { code: 'TEMPER_PACKAGE_INVALID' });
  });
  it('a composed tool counts as having side effects when its steps are unknown', async () => {
    const steps = [{ name: 'read', tool: 'rows', inputMapping: {} }];
    const request = {
      name: 'chained',
      description: 'x',
      steps,
      inputSchema: { type: 'object', properties: { a: {} } },
      testCases: [{ input: { a: 1 } }],
    };
    const rows = aTool('rows', () => 1);
    const { artifact, digest } = await accepted(request, aContext({ tools: [rows] }));
    assert.equal(createForgedTool(artifact, digest, 'Session', deps()).descriptor.sideEffects, true);
    const knowing = { ...deps(), describe: () => rows.descriptor };
    assert.equal(createForgedTool(artifact, digest, 'Session', knowing).descriptor.sideEffects, false);
  });
});
