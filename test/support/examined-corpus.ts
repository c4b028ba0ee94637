import { artifactOf } from '../../src/forge/forge.testing.ts';
import { differenceFrom } from '../../src/forge/test-runs/compare-json.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { isJsonObject, type Json, type JsonObject } from '../../src/lib/json.ts';
import { createExaminer } from '../../src/tempering/examination/examiner.ts';
import { createModelTesters } from '../../src/tempering/examination/testers/model-testers.ts';
import type { ExaminationReport } from '../../src/tempering/examination/types.ts';
import { artifactDigest } from '../../src/tempering/registry/serialization.ts';
import { anOp, nonceIn, scriptedModel } from '../../src/tempering/tempering.testing.ts';
import type { RerunOutcome, Verifier } from '../../src/tempering/types.ts';
import { createSchemaCompiler } from '../../src/tools/json-schema/compiler.ts';
import type { CorpusTool } from '../fixtures/wrong-tools/corpus.ts';
import { inputOf, type ToolFamily, type Values } from '../fixtures/wrong-tools/family.ts';

type Runs = Pick<Verifier, 'outputs'>;

/** What the examinations of one tool found: with two correct testers, and with one that is wrong in one case. */
export interface ExaminedTool {
  tool: CorpusTool;
  /** The tests of the tool that it fails itself. */
  failedTests: number;
  correct: ExaminationReport;
  oneWrong: ExaminationReport;
}

/** Examines tools of the corpus with scripted testers, whose outputs come from the reference implementation. */
export class CorpusExamination {
  readonly #runs: Runs;
  readonly #expected = new Map<string, Json>();
  readonly #schemas = createSchemaCompiler();

  constructor(runs: Runs) {
    this.#runs = remembered(runs);
  }

  async examine(tool: CorpusTool): Promise<ExaminedTool> {
    const { family, tests } = tool;
    await this.#runReference(family, [...tests, ...family.cases]);
    const testCases = tests.map((values) => ({
      input: inputOf(family, values),
      expectedOutput: this.#outputOf(family, values),
    }));
    const artifact = artifactOf({ ...tool.request, testCases });
    const outcomes = await this.#runs.outputs(
      artifact,
      testCases.map(({ input }) => input),
      anOp(),
    );
    const failedTests = testCases.filter(({ expectedOutput }, index) => !gives(outcomes[index], expectedOutput)).length;
    const correct = await this.#reportOf(tool, artifact, false);
    return { tool, failedTests, correct, oneWrong: await this.#reportOf(tool, artifact, true) };
  }

  /** Whether the tool gives another output than the reference for one of the testers' inputs. */
  async differs(tool: CorpusTool): Promise<boolean> {
    const { family } = tool;
    const artifact = artifactOf(tool.request);
    const inputs = family.cases.map((values) => inputOf(family, values));
    const outcomes = await this.#runs.outputs(artifact, inputs, anOp());
    return family.cases.some((values, index) => !gives(outcomes[index], this.#outputOf(family, values)));
  }

  #reportOf(
    { family }: CorpusTool,
    artifact: ReturnType<typeof artifactOf>,
    oneIsWrong: boolean,
  ): Promise<ExaminationReport> {
    const model = scriptedModel((request) => {
      const isSecond = request.model === 'test/second';
      const cases = family.cases
        .filter((_, index) => (index % 2 === 1) === isSecond)
        .map((values, index) => {
          const expected = this.#outputOf(family, values);
          const stated = isSecond && oneIsWrong && index === 2 ? altered(expected) : expected;
          return { input: JSON.stringify(inputOf(family, values)), expected: JSON.stringify(stated) };
        });
      return JSON.stringify({ nonce: nonceIn(request), lines: [3], cases });
    });
    const deps = { model, clock: systemClock, nonce: () => 'nonce' };
    const testers = createModelTesters(deps, ['test/first', 'test/second']);
    const examiner = createExaminer({ verifier: this.#runs, schemas: this.#schemas, testers });
    const digest = artifactDigest(artifact);
    return examiner.examine({ artifact, digest, authorModel: 'test/author', recorded: [] }, anOp());
  }

  async #runReference(family: ToolFamily, values: readonly Values[]): Promise<void> {
    const waiting = values.filter((item) => !this.#expected.has(keyOf(family, item)));
    if (waiting.length === 0) return;
    const inputs = waiting.map((item) => inputOf(family, item));
    const { reference, ...rest } = family;
    const members = Object.keys(rest.input).join(', ');
    const code = `function execute({ ${members} }) { ${reference} }`;
    const request = { name: family.name, description: family.description, testCases: [{ input: inputs[0] }] };
    const implementation = { mode: 'sandbox', code, allowlist: [] };
    const schema = { type: 'object', properties: {} };
    const artifact = artifactOf({ ...request, inputSchema: schema, outputSchema: schema, implementation });
    const outcomes = await this.#runs.outputs(artifact, inputs, anOp());
    for (const [index, item] of waiting.entries()) {
      const outcome = outcomes[index];
      if (outcome?.ok !== true)
        throw new TypeError(`the reference of ${family.name} fails: ${JSON.stringify(outcome)}`);
      this.#expected.set(keyOf(family, item), outcome.output);
    }
  }

  #outputOf(family: ToolFamily, values: Values): Json {
    const expected = this.#expected.get(keyOf(family, values));
    if (expected === undefined) throw new TypeError(`the reference of ${family.name} did not run`);
    return expected;
  }
}

function keyOf({ name }: ToolFamily, values: Values): string {
  return `${name} ${JSON.stringify(values)}`;
}

function gives(outcome: RerunOutcome | undefined, expected: Json): boolean {
  return outcome?.ok === true && differenceFrom(expected, outcome.output) === undefined;
}

/** Runs each artifact with each list of inputs once: two examinations of one tool ask for the same runs. */
function remembered(runs: Runs): Runs {
  const known = new Map<string, Promise<RerunOutcome[]>>();
  return {
    outputs(artifact, inputs, op) {
      const key = JSON.stringify([artifact, inputs]);
      const outcomes = known.get(key) ?? runs.outputs(artifact, inputs, op);
      known.set(key, outcomes);
      return outcomes;
    },
  };
}

/** A value of the same shape that is another one. */
function altered(value: Json): Json {
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'string') return `${value}x`;
  if (typeof value === 'boolean') return !value;
  if (Array.isArray(value)) return value.length === 0 ? value : value.map(altered);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]): [string, Json] => [name, altered(item)]),
  ) as JsonObject;
}
