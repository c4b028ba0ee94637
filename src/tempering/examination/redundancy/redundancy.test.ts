import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ToolArtifact } from '../../../api/v1alpha1/emergenttool.ts';
import type { Json, JsonObject } from '../../../lib/json.ts';
import { createSchemaCompiler } from '../../../tools/json-schema/compiler.ts';
import { parseArtifact } from '../../../forge/parse-artifact.ts';
import { anArtifact, anOp, aSharedTool } from '../../tempering.testing.ts';
import type { RegisteredTool, RerunOutcome, Verifier } from '../../types.ts';
import { InputRuns } from '../input-runs.ts';
import type { CheckResult } from '../types.ts';
import type { ComparedTool } from './compared-tool.ts';
import { isRedundant, type OutcomePair } from './redundancy-rule.ts';
import { registeredTools } from './registered-tools.ts';
import { sharedInputs } from './shared-inputs.ts';
import { bySimilarity } from './similar-tools.ts';
import { compareWithTools } from './tool-comparison.ts';

const ok = (output: Json): RerunOutcome => ({ ok: true, output });
const failed = (code: 'TEMPER_SANDBOX_EXCEPTION' | 'TEMPER_SANDBOX_TIMEOUT'): RerunOutcome => ({
  ok: false,
  code,
  message: 'no',
});
const pair = (examined: RerunOutcome, other: RerunOutcome | undefined = examined): OutcomePair => ({ examined, other });
const same = (count: number): OutcomePair[] => Array.from({ length: count }, (_, value) => pair(ok({ value })));

describe('the rule for redundant tools', () => {
  it('the same outputs for five inputs, two of them different, make a tool redundant', () => {
    assert.equal(isRedundant(same(5)), true);
    assert.equal(isRedundant([...Array.from({ length: 4 }, () => pair(ok(1))), pair(ok(2))]), true);
  });

  it('numbers that differ by rounding are the same output', () => {
    assert.equal(isRedundant([...same(4), pair(ok(0.1 + 0.2), ok(0.3))]), true);
  });

  const near: [string, OutcomePair[]][] = [
    ['one of many outputs differs', [...same(20), pair(ok(1), ok(2))]],
    ['all outputs are one constant', Array.from({ length: 20 }, () => pair(ok(0)))],
    ['there are only four inputs', same(4)],
    ['only one of the tools fails', [...same(9), pair(ok(1), failed('TEMPER_SANDBOX_EXCEPTION'))]],
    ['one of the tools did not run', [...same(9), { examined: ok(1), other: undefined }]],
    ['both end at a limit, which says nothing about an output', [...same(9), pair(failed('TEMPER_SANDBOX_TIMEOUT'))]],
    [
      'both fail on all but four inputs',
      [...same(4), ...Array.from({ length: 9 }, () => pair(failed('TEMPER_SANDBOX_EXCEPTION')))],
    ],
  ];
  for (const [what, pairs] of near) {
    it(`a tool is not redundant when ${what}`, () => assert.equal(isRedundant(pairs), false));
  }

  it('an input on which both tools fail is no difference', () => {
    assert.equal(isRedundant([...same(5), pair(failed('TEMPER_SANDBOX_EXCEPTION'))]), true);
  });
});

describe('the shared inputs of two tools', () => {
  it('they are all tests, and recorded inputs of both in turn, each once', () => {
    const inputs = sharedInputs(
      { tests: [{ a: 1, b: 1 }], recorded: [{ a: 2 }, { a: 3 }] },
      { tests: [{ b: 1, a: 1 }, { a: 4 }], recorded: [{ a: 5 }, { a: 2 }] },
    );
    assert.deepEqual(inputs, [{ b: 1, a: 1 }, { a: 4 }, { a: 2 }, { a: 5 }, { a: 3 }]);
  });

  it('the recorded inputs are bounded in number and in bytes, and the tests are complete', () => {
    const many = (from: number, count: number): JsonObject[] =>
      Array.from({ length: count }, (_, index) => ({ a: from + index }));
    const bounded = sharedInputs(
      { tests: many(0, 50), recorded: many(100, 50) },
      { tests: many(50, 50), recorded: [] },
    );
    assert.equal(bounded.length, 124);
    const long = { text: 'x'.repeat(150_000) };
    const recorded = [long, { ...long, a: 1 }, { a: 2 }];
    assert.deepEqual(sharedInputs({ tests: [], recorded }, { tests: [], recorded: [] }), [long, { a: 2 }]);
  });
});

describe('the order of the compared tools', () => {
  it('tools with the words of name and description come first, and none is left out', () => {
    const tools = ['send_mail', 'parse_csv', 'csv_rows'].map((name) => ({ name, description: '' }));
    const names = bySimilarity({ name: 'rows_of_csv', description: 'Reads CSV rows.' }, tools).map(({ name }) => name);
    assert.deepEqual(names, ['csv_rows', 'parse_csv', 'send_mail']);
  });
});

describe('the tools of a registry that a tool is compared with', () => {
  const OWNER = { agent: 'analyst', namespace: 'team-a' };
  const aTool = (name: string, changes: Partial<RegisteredTool> = {}, artifact: Partial<ToolArtifact> = {}) => ({
    ...aSharedTool(name, artifact),
    ...changes,
  });
  const compared = (tools: RegisteredTool[], examined = aTool('double', { tier: 'Session' })) => {
    const registry = { all: () => [...tools, examined], recordedInputs: async () => [] };
    const found = registeredTools(registry, examined, OWNER);
    return [found.tools.map(({ artifact }) => artifact.name), found.incomparable.map(({ reason }) => reason)];
  };

  it('they are those of tier Agent of the agent and of tier Shared of the namespace, under another name', () => {
    const tools = [
      aTool('shared'),
      aTool('own', { tier: 'Agent' }),
      aTool('session', { tier: 'Session' }),
      aTool('inactive', { active: false }),
      aTool('of_another_agent', { tier: 'Agent', owner: { ...OWNER, agent: 'other', session: '' } }),
      aTool('of_another_namespace', { owner: { ...OWNER, namespace: 'team-b', session: '' } }),
      aTool('double', { tier: 'Agent' }, { description: 'The version that it replaces.' }),
    ];
    assert.deepEqual(compared(tools), [['shared', 'own'], []]);
  });

  it('tools whose output depends on more than the input are not compared, each with its reason', () => {
    const clock: Partial<ToolArtifact> = { requires: { apis: ['clock'], domains: [], paths: [] } };
    const pinned = aTool('pinned');
    const steps = (tool: string): Partial<ToolArtifact> => ({
      implementation: { mode: 'Compose', steps: [{ name: 'one', tool, inputMapping: '{}' }] },
    });
    const chain = aTool('chain', {}, steps(`pinned@${pinned.digest}`));
    const files = aTool('files', {}, steps('file_read'));
    const timed = aTool('timed', {}, clock);
    const timedChain = aTool('timed_chain', {}, steps(`timed@${timed.digest}`));
    const gone = aTool('gone_chain', {}, steps(`gone@sha256:${'0'.repeat(64)}`));
    assert.deepEqual(compared([pinned, chain, files, timed, timedChain, gone]), [
      ['pinned', 'chain'],
      [
        'its step calls the built-in tool "file_read"',
        'it declares clock',
        'its step calls "timed": it declares clock',
        'its step calls "gone": it is not in service',
      ],
    ]);
    const examined = aTool('double', { tier: 'Session' }, clock);
    const cause = 'the examined tool is the cause: it declares clock';
    assert.deepEqual(compared([pinned, chain], examined), [[], [cause, cause]]);
  });
});

describe('the comparison of a tool with tools in service', () => {
  const inputs = [1, 2, 3, 4, 5, 6].map((value) => ({ value }));
  const test = (value: number, result: number) => ({
    input: `{"value":${value}}`,
    expectedOutput: `{"result":${result}}`,
  });
  /** Runs each tool as its description says, and notes which tools ran. */
  function verifierOf(ran: string[]): Pick<Verifier, 'outputs'> {
    return {
      outputs: async ({ name, description }, given) => {
        ran.push(name);
        const factor = Number(/by (\d+)/.exec(description)?.[1]);
        return given.map((input) => {
          const { value } = input as { value: number };
          return ok({ result: value === 6 && description.includes('but') ? 0 : value * factor });
        });
      },
    };
  }
  const inService = (name: string, changes: Partial<ToolArtifact> = {}): ComparedTool => ({
    artifact: anArtifact(name, { description: 'Multiplies by 2.', ...changes }),
    tier: 'Shared',
    recorded: async () => [],
  });

  async function compare(tools: ComparedTool[], recorded: Json[] = inputs) {
    const ran: string[] = [];
    const verifier = verifierOf(ran);
    const artifact = anArtifact('double', { description: 'Multiplies by 2.' });
    const open = parseArtifact(artifact);
    assert.ok(!('malformed' in open));
    const examined = { open, recorded, runs: new InputRuns(verifier, artifact) };
    const deps = { verifier, schemas: createSchemaCompiler() };
    const comparison = await compareWithTools(examined, { tools, incomparable: [] }, deps, anOp());
    return { ran, check: comparison?.check ?? assert.fail('no check') };
  }
  const counts = ({ cases, disagreements }: CheckResult) => [cases, disagreements];

  it('a tool that repeats another one is refused with the name of the other one and the next step', async () => {
    const { check } = await compare([inService('twice')]);
    assert.deepEqual([check.consequence, ...counts(check)], ['Refuse', 1, 1]);
    const reason =
      /"twice" at tier Shared gives the same outputs for all 6 shared inputs; call "twice" instead, or forge a tool/;
    assert.match(check.examples[0]?.reason ?? '', reason);
  });

  it('a tool that differs from another one for one input is not redundant', async () => {
    const { check, ran } = await compare([inService('twice', { description: 'Multiplies by 2, but not 6.' })]);
    assert.deepEqual(counts(check), [1, 0]);
    assert.ok(ran.includes('twice'));
  });

  it('another tool whose tests the tool contradicts does not run', async () => {
    const { check, ran } = await compare([
      inService('triple', { description: 'Multiplies by 3.', tests: [test(2, 6)] }),
      inService('twice'),
    ]);
    assert.deepEqual(counts(check), [2, 1]);
    assert.deepEqual(ran, ['double', 'twice']);
  });

  it('too few inputs are no evidence, and no other tool runs', async () => {
    const { check, ran } = await compare([inService('twice')], inputs.slice(0, 3));
    assert.deepEqual(counts(check), [1, 0]);
    assert.deepEqual(ran, ['double']);
  });

  const schema = (properties: string, required: string) =>
    `{"additionalProperties":false,"properties":{${properties}},"required":[${required}],"type":"object"}`;
  for (const [what, changes] of [
    ['requires another input', { inputSchema: schema('"other":{"type":"number"}', '"other"') }],
    ['gives outputs of another shape', { outputSchema: schema('"other":{"type":"number"}', '"other"') }],
    ['accepts less', { inputSchema: schema('"value":{"maximum":1,"type":"number"}', '"value"') }],
  ] as const) {
    it(`a tool in service that ${what} is not compared`, async () => {
      const { check, ran } = await compare([inService('twice', { ...changes, tests: [] })]);
      assert.deepEqual(counts(check), [0, 0]);
      assert.match(check.skipped ?? '', /no tool in service accepts the same inputs/);
      assert.deepEqual(ran, []);
    });
  }

  it('a recorded input that the other tool does not accept makes them different tools', async () => {
    const inputSchema = schema('"value":{"maximum":5,"type":"number"}', '"value"');
    assert.deepEqual(counts((await compare([inService('twice', { inputSchema })])).check), [0, 0]);
  });

  it('at most eight tools are compared', async () => {
    const tools = Array.from({ length: 30 }, (_, index) =>
      inService(`other_${index}`, { description: 'Multiplies by 2, but not 6.' }),
    );
    const { check, ran } = await compare(tools);
    assert.deepEqual(counts(check), [8, 0]);
    assert.equal(ran.length, 9);
  });
});
