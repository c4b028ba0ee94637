import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { vetArtifact } from '../../forge/static-gates.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { systemClock } from '../../lib/clock.ts';
import { createSupervisor, type Supervisor } from '../../sandbox/supervisor.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { promotionRules } from '../promotion/promotion-rules.ts';
import { artifactDigest } from '../registry/serialization.ts';
import { anArtifact, anOp, nonceIn, scriptedModel } from '../tempering.testing.ts';
import type { Verifier } from '../types.ts';
import { singleRuns } from './examination.testing.ts';
import { createExaminer } from './examiner.ts';
import { createModelTesters } from './testers/model-testers.ts';
import type { CheckName, CheckResult, ExaminationReport, ExaminationSubject } from './types.ts';
import { examinationFigures, examinationVerdict } from './verdict.ts';

let supervisor: Supervisor;
before(async () => {
  supervisor = await createSupervisor({ clock: systemClock, warm: 2 });
});
after(() => supervisor[Symbol.asyncDispose]());

interface Options extends Partial<Omit<ExaminationSubject, 'artifact' | 'digest'>> {
  verifier?: Pick<Verifier, 'outputs'>;
  testers?: string[];
  cases?: Json[];
}

function examine(artifact: ToolArtifact, options: Options = {}): Promise<ExaminationReport> {
  const { verifier = singleRuns(supervisor), testers = [], cases = [], ...subject } = options;
  const model = scriptedModel((request) => JSON.stringify({ nonce: nonceIn(request), lines: [3], cases }));
  const schemas = createSchemaCompiler();
  const asked = createModelTesters({ model, clock: systemClock, nonce: () => 'nonce' }, testers);
  const examiner = createExaminer({ verifier, schemas, testers: asked });
  const about = { artifact, digest: artifactDigest(artifact), authorModel: 'test/author', recorded: [], ...subject };
  return examiner.examine(about, anOp());
}

function aTool(source: string, changes: Partial<ToolArtifact> = {}): ToolArtifact {
  return anArtifact('double', { implementation: { mode: 'Sandbox', source }, ...changes });
}

function found({ checks }: ExaminationReport, name: CheckName): CheckResult | undefined {
  return checks.find(({ check }) => check === name);
}

function outcomeOf(report: ExaminationReport): string {
  return examinationVerdict(report, promotionRules({}).examination).outcome;
}

const DOUBLE = 'function execute(input) { return { result: input.value * 2 }; }';

describe('the examination of a tool', () => {
  it('a right tool passes, and each of its inputs ran once', async () => {
    const report = await examine(anArtifact());
    assert.equal(outcomeOf(report), 'Pass');
    assert.ok(report.inputs > 8);
    assert.deepEqual(
      report.checks.filter(({ disagreements }) => disagreements > 0),
      [],
    );
  });

  it('a tool that lets the harness of its probes fail gets no further than its outputs', async () => {
    const attacks = [
      'Array.prototype.map = () => []; Array.prototype.push = () => 0;',
      'JSON.parse = () => ({}); JSON.stringify = () => "\\"x\\"";',
      'Object.defineProperty(Object.prototype, "failed", { get: () => false, set() {} });',
      'const execute_ = 1; globalThis.temperProbe = () => ({ results: [] }); var temperProbeVariants = [];',
      'Promise.prototype.then = () => { throw new Error("no"); };',
    ];
    for (const attack of attacks) {
      const report = await examine(aTool(`${attack}\nfunction execute(input) { return { result: 7 }; }`));
      assert.equal(outcomeOf(report), 'Refuse', attack);
    }
  });

  it('a tool that does not run in the harness of the probes is a question to a user', async () => {
    const hiding = aTool(
      'function execute(input) { if (typeof temperProbe === "undefined") return { result: input.value * 2 }; for (;;); }',
    );
    const inHarness = aTool(
      'const inside = (() => { try { return typeof this !== "undefined" && new Error().stack.split("\\n").length > 6; } catch { return false; } })();\nfunction execute(input) { while (inside); return { result: input.value * 2 }; }',
      { limits: { duration: '200ms', memory: '64Mi' } },
    );
    assert.equal(outcomeOf(await examine(hiding)), 'Pass');
    const report = await examine(inHarness);
    assert.match(found(report, 'state')?.examples[0]?.reason ?? '', /did not let the check finish/);
    assert.equal(outcomeOf(report), 'Ask');
  });

  it('a tool that runs into its limit again and again is a question to a user, after a bounded number of runs', async () => {
    const limits = { duration: '50ms', memory: '64Mi' };
    const slow = aTool('function execute(input) { if (input.value !== 2) for (;;); return { result: 4 }; }', {
      limits,
    });
    const report = await examine(slow);
    assert.equal(outcomeOf(report), 'Ask');
    assert.ok(report.inputs <= 16, `${report.inputs} inputs`);
  });

  it('a tool that changes its input, or reads members that its schema does not name, is noted', async () => {
    const report = await examine(
      aTool(
        'function execute(input) { input.value *= 2; return { result: input.value + Object.keys(input).length - 1 }; }',
      ),
    );
    assert.ok((found(report, 'input-mutation')?.disagreements ?? 0) > 0);
    assert.ok((found(report, 'additional-members')?.disagreements ?? 0) > 0);
    assert.equal(outcomeOf(report), 'Pass');
  });

  it('a version of the source that the static gate refuses does not run, and is counted', async () => {
    const hidden = 'a\u202eb';
    const textInput = { properties: { text: { type: 'string' } }, required: ['text'], type: 'object' };
    const artifact = aTool(
      `const known = { 'a\\u202eb': 1, colour: 2 };\nfunction execute({ text }) { return { result: (known[text] ?? 0) + text.length }; }`,
      {
        inputSchema: JSON.stringify(textInput),
        tests: [
          { input: JSON.stringify({ text: hidden }), expectedOutput: '{"result":4}' },
          { input: '{"text":"colour"}', expectedOutput: '{"result":8}' },
        ],
      },
    );
    assert.deepEqual(vetArtifact(artifact as unknown as Json).code.violations, []);
    const sources: string[] = [];
    const runs = singleRuns(supervisor);
    const report = await examine(artifact, {
      verifier: {
        outputs: (ran, inputs, op) => {
          sources.push(ran.implementation.source ?? '');
          return runs.outputs(ran, inputs, op);
        },
      },
    });
    const variants = sources.filter((source) => source.includes('temper_colour'));
    assert.equal(variants.length, 1);
    assert.deepEqual(
      sources.filter((source) => source.includes(hidden)),
      [],
    );
    assert.equal(found(report, 'memorized-tests')?.refusedVariants, 1);
    assert.equal(examinationFigures(report)['refusedVariants'], 1);
  });

  it('a source whose counted version exceeds the limits of a source is not measured, and the report says so', async () => {
    const functions = Array.from({ length: 1_800 }, (_, index) => `()=>${index}`).join(',');
    const report = await examine(
      aTool(`const all = [${functions}];\nfunction execute(input) { return { result: input.value * 2 }; }`, {
        inputSchema:
          '{"properties":{"list":{"type":"array"},"value":{"type":"number"}},"required":["value"],"type":"object"}',
        tests: [{ input: '{"list":[1,2],"value":2}', expectedOutput: '{"result":4}' }],
      }),
    );
    const growth = found(report, 'growth');
    assert.match(growth?.skipped ?? '', /the static gate refuses/);
    assert.equal(growth?.refusedVariants, 1);
  });

  it('the reason of a refusal contains no value of an input or an output', async () => {
    const artifact = aTool('function execute({ values }) { return { result: values[0] ?? 0 }; }', {
      name: 'sum_values',
      description: 'Adds all values.',
      inputSchema: JSON.stringify({
        properties: { values: { items: { type: 'number' }, type: 'array' } },
        required: ['values'],
        type: 'object',
      }),
      tests: [{ input: '{"values":[417]}', expectedOutput: '{"result":417}' }],
    });
    const verdict = examinationVerdict(await examine(artifact), promotionRules({}).examination);
    assert.ok(verdict.outcome === 'Refuse');
    assert.match(verdict.reasons.join(), /claimed-result/);
    assert.ok(!verdict.reasons.join().includes('417'));
  });

  it('the disagreements with the replaced version are listed', async () => {
    const replaced = aTool('function execute(input) { return { result: input.value > 3 ? 0 : input.value * 2 }; }');
    const report = await examine(aTool(DOUBLE), { replaced });
    const check = found(report, 'replaced-version');
    assert.ok(check !== undefined && check.disagreements > 0 && check.disagreements < check.cases);
    assert.match(check.examples[0]?.expected ?? '', /"result":0/);
    assert.equal(outcomeOf(report), 'Pass');
  });

  it('a tool that reads files or the network is not examined, and its testers give no evidence', async () => {
    const reading = aTool(DOUBLE, { requires: { apis: ['fetch'], domains: ['a.test'], paths: [] } });
    const report = await examine(reading, { testers: ['a/b', 'a/c'] });
    assert.deepEqual([report.inputs, report.checks], [0, []]);
    assert.deepEqual(
      report.testers.map(({ verdict }) => verdict),
      ['None', 'None'],
    );
    assert.equal(outcomeOf(report), 'Ask');
  });

  it('both testers against a tool refuse it, and the report shows their cases', async () => {
    const cases = [2, 3, 4].map((value) => ({ input: `{"value":${value}}`, expected: `{"result":${value * 3}}` }));
    const report = await examine(anArtifact(), { testers: ['a/b', 'a/c'], cases });
    assert.equal(outcomeOf(report), 'Refuse');
    const [example] = report.testers[0]?.examples ?? [];
    assert.deepEqual(
      [example?.input, example?.expected, example?.got],
      ['{"value":2}', '{"result":6}', '{"result":4}'],
    );
  });

  it('a tester with fewer than three usable cases gives no evidence', async () => {
    const cases = [2, 3].map((value) => ({ input: `{"value":${value}}`, expected: '{"result":0}' }));
    const { testers } = await examine(anArtifact(), { testers: ['a/b', 'a/c'], cases });
    assert.deepEqual(
      testers.map(({ verdict }) => verdict),
      ['None', 'None'],
    );
    assert.match(testers[0]?.problem ?? '', /only 2 usable cases, 3 are needed/);
  });

  it('a tester that wrote the tool is not asked', async () => {
    const { testers } = await examine(anArtifact(), { testers: ['a/b', 'test/author'] });
    assert.match(testers[0]?.problem ?? '', /is the model that wrote the tool/);
  });

  it('a sandbox that cannot run the tool is no verdict about it', async () => {
    const verifier: Pick<Verifier, 'outputs'> = {
      outputs: () => Promise.reject(new TemperError('TEMPER_SANDBOX_UNAVAILABLE', 'no engine')),
    };
    await assert.rejects(examine(anArtifact(), { verifier }), (error) =>
      isTemperError(error, 'TEMPER_SANDBOX_UNAVAILABLE'),
    );
  });

  it('the texts of a report are printable and bounded, whatever a tool returns', async () => {
    const hostile = aTool(
      'function execute(input) { return { result: "\\u202e\\u0007" + "x".repeat(5000) + input.value }; }',
    );
    const report = await examine(hostile, { recorded: Array.from({ length: 200 }, (_, value) => ({ value })) });
    const text = JSON.stringify(report);
    assert.ok(text.length < 60_000, `${text.length} characters`);
    // JSON text writes a control character as an escape, so a raw one is in a string only after one more level of parsing.
    assert.ok(!text.includes('\u202e') && !/(?<!\\)\\u0007/.test(text));
  });
});
