import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { systemClock as clock } from '../../lib/clock.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { createSupervisor, type Supervisor } from '../../sandbox/supervisor.ts';
import type { Tool } from '../../tools/contract.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { aContext, aDecider, aTool } from '../forge.testing.ts';
import { createForge } from '../forge.ts';
import type { RefusedTool, ToolCandidate } from '../types.ts';

const schemas = createSchemaCompiler();
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

describe('composed tools', () => {
  const rows = aTool('rows', () => ({ rows: [{ v: 1 }, { v: 2 }], count: 2 }));
  const sum = aTool('sum', ({ rows: list }) => ({
    total: (list as { v: number }[]).reduce((all, { v }) => all + v, 0),
  }));
  const send = aTool('send', () => assert.fail('it was really called'), {
    sideEffects: true,
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    outputSchema: { type: 'object', required: ['id'] },
  });
  const chain = (steps: JsonObject[], test: JsonObject = { expectedOutput: { total: 3 } }): JsonObject => ({
    name: 'chained',
    description: 'A chain.',
    inputSchema: { type: 'object', properties: { a: { type: 'number' } } },
    implementation: { mode: 'compose', steps },
    testCases: [{ input: { a: 1 }, ...test }],
  });
  const READ = { name: 'read', tool: 'rows', inputMapping: {} };
  const ADD = { name: 'add', tool: 'sum', inputMapping: { rows: '$steps.read.rows' } };

  it('a test calls tools without side effects through the invoker', async () => {
    const { artifact } = await accepted(chain([READ, ADD]), aContext({ tools: [rows, sum] }));
    assert.equal(artifact.implementation.mode, 'Compose');
  });
  it('the artifact pins forged tools by their digest', async () => {
    const digest = `sha256:${'a'.repeat(64)}` as const;
    const pinned = aTool('sum', () => ({ total: 3 }), { forged: { digest, tier: 'Session' } });
    const { artifact } = await accepted(chain([READ, ADD]), aContext({ tools: [rows, pinned] }));
    assert.equal(artifact.implementation.steps?.[1]?.tool, `sum@${digest}`);
  });
  it('a step whose condition does not hold is skipped and its output is null', async () => {
    const skipped = { ...ADD, condition: '$prev.count > 2' };
    const give = { name: 'give', tool: 'give', inputMapping: { a: '$steps.add', b: '$prev' } };
    const show = aTool('give', (input) => input);
    await accepted(
      chain([READ, skipped, give], { expectedOutput: { a: null, b: null } }),
      aContext({ tools: [rows, sum, show] }),
    );
  });
  const WRONG: Record<string, [steps: JsonObject[], message: RegExp]> = {
    'an unknown tool': [[{ ...READ, tool: 'row' }], /step "read": no tool is named "row"; did you mean rows/],
    'a tool that calls itself': [[{ ...READ, tool: 'chained' }], /cannot call itself/],
    'a tool that forges': [[{ ...READ, tool: 'forge_tool' }], /cannot forge/],
    'a reference to a later step': [
      [{ ...READ, inputMapping: { x: '$steps.add' } }, ADD],
      /\$steps\.add is not an earlier step/,
    ],
    'a reference to an unknown step inside a text': [
      [READ, { ...ADD, inputMapping: { q: 'see $steps.reed.rows' } }],
      /\$steps\.reed is not an earlier step \(earlier steps: read\)/,
    ],
    'a previous step before the first': [[{ ...READ, inputMapping: { x: '$prev' } }], /\$prev has nothing/],
    'a condition that does not parse': [[{ ...READ, condition: '$input.a = 1' }], /condition.*expected/],
    'a condition that refers to nothing': [[{ ...READ, condition: '$steps.x > 1' }], /not an earlier step/],
    'a digest that is not the tool’s': [[{ ...READ, tool: `rows@sha256:${'b'.repeat(64)}` }], /another version/],
    'a tool with side effects without a fixture': [
      [{ name: 'tell', tool: 'send', inputMapping: { text: 'hi' } }],
      /"fixtures":\[\{"tool":"send","output":…\}\]/,
    ],
  };
  for (const [name, [steps, message]] of Object.entries(WRONG)) {
    it(`the forge refuses ${name}`, async () => {
      const result = await refused(chain(steps), aContext({ tools: [rows, sum, send] }));
      assert.deepEqual([result.gate, result.code], ['static', 'TEMPER_FORGE_COMPOSE'], result.message);
      assert.match(result.message, message);
    });
  }
  it('the forge refuses two steps with the same name, and more than twenty steps', async () => {
    assert.match((await refused(chain([READ, READ]), aContext({ tools: [rows] }))).message, /two steps/);
    const many = Array.from({ length: 21 }, (_, n) => ({ ...READ, name: `s${n}` }));
    assert.match((await refused(chain(many), aContext({ tools: [rows] }))).message, /1 to 20 steps/);
  });
  it('the forge refuses a step whose tool the agent may not call', async () => {
    const context = aContext({ tools: [rows, sum], decider: aDecider({ tools: ['rows'] }) });
    assert.match((await refused(chain([READ, ADD]), context)).message, /"sum" is not permitted/);
  });
  const TELL = { name: 'tell', tool: 'send', inputMapping: { text: 'n is $input.a' } };
  it('fixtures and step arguments must match the schemas of the tool', async () => {
    const context = () => aContext({ tools: [send] });
    const fixture = { tool: 'send', output: { id: 7 } };
    await accepted(chain([TELL], { fixtures: [fixture], expectedOutput: { id: 7 } }), context());
    const misfit = await refused(chain([TELL], { fixtures: [{ ...fixture, output: {} }] }), context());
    assert.match(misfit.message, /the fixture: .*id/);
    const wrong = await refused(chain([{ ...TELL, inputMapping: { text: 5 } }], { fixtures: [fixture] }), context());
    assert.match(wrong.message, /Step "tell" \(tool: "send"\) failed: its arguments: text must be string/);
  });
  it('a conditional step needs a fixture only when its condition holds', async () => {
    const context = () => aContext({ tools: [rows, send] });
    const give = { name: 'last', tool: 'rows', inputMapping: {} };
    await accepted(chain([{ ...TELL, condition: '$input.a > 1' }, give], {}), context());
    const met = await refused(chain([{ ...TELL, condition: '$input.a > 0' }, give], {}), context());
    assert.deepEqual([met.gate, met.code], ['tests', 'TEMPER_FORGE_COMPOSE']);
    assert.match(met.message, /\{"tool":"send","input":\{"text":"n is 1"\},"output":…\}/);
  });
  it('fixtures of one tool are used in order, those with an input first', async () => {
    const steps = [1, 2, 3].map((n) => ({ ...TELL, name: `s${n}`, inputMapping: { text: `${n}` } }));
    const show = {
      name: 'show',
      tool: 'give',
      inputMapping: { all: ['$steps.s1.id', '$steps.s2.id', '$steps.s3.id'] },
    };
    const fixtures = [
      { tool: 'send', output: { id: 'first' } },
      { tool: 'send', input: { text: '2' }, output: { id: 'named' } },
      { tool: 'send', output: { id: 'second' } },
    ];
    const test = { fixtures, expectedOutput: { all: ['first', 'named', 'second'] } };
    await accepted(chain([...steps, show], test), aContext({ tools: [send, aTool('give', (input) => input)] }));
  });
  it('a composed tool stops at the first failed step and names it', async () => {
    const bad = aTool('sum', () => assert.fail('not reached'));
    const failing: Tool = aTool('rows', () => ({}));
    const context = aContext({ tools: [failing, bad] });
    context.invoke = async (tool) => ({
      ok: false,
      tool,
      error: { code: 'TEMPER_POLICY_DENIED', message: 'no' },
      milliseconds: 0,
    });
    assert.match((await refused(chain([READ, ADD]), context)).message, /Step "read" \(tool: "rows"\) failed: no/);
  });
});
