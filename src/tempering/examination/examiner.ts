import { type ParsedArtifact, parseArtifact } from '../../forge/parse-artifact.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { Verifier } from '../types.ts';
import { checkResult } from './check-result.ts';
import { InputRuns, type InputsPerRun } from './input-runs.ts';
import { planInputs } from './inputs/input-plan.ts';
import { seededRandom } from './inputs/seeded-random.ts';
import { probeChecks } from './probe/probe-checks.ts';
import {
  compareWithTools,
  type ToolComparison,
  withComparison,
  withoutComparison,
} from './redundancy/tool-comparison.ts';
import { claimedResults } from './properties/claimed-results.ts';
import { claimsOf } from './properties/claims.ts';
import { constantOutput } from './properties/constant-output.ts';
import { generatedInputs } from './properties/generated-inputs.ts';
import { orderRelations } from './properties/order-independence.ts';
import type { RelationSources } from './properties/relation.ts';
import { judgeRelations } from './properties/relations-check.ts';
import { replacedVersion } from './properties/replaced-version.ts';
import { secondApplications } from './properties/second-applications.ts';
import { structuralRelations } from './properties/structural.ts';
import { testersProblem, usableCases } from './testers/ask-tester.ts';
import { noTesterResults, testerResult } from './testers/tester-results.ts';
import type { CheckResult, ExaminationReport, ExaminationSubject, Examiner, TesterResult, Testers } from './types.ts';

export interface ExaminerDeps {
  /** Runs inputs where no author of a tool is. It also gets versions of the tool that the examination makes. */
  verifier: Pick<Verifier, 'outputs'>;
  schemas: SchemaCompiler;
  testers: Testers;
  inputsPerRun?: InputsPerRun;
}

interface Examination {
  deps: ExaminerDeps;
  subject: ExaminationSubject;
  open: ParsedArtifact;
  sources: RelationSources;
  runs: InputRuns;
  isValidOutput: (output: Json) => boolean;
}

/** Examines tools in the order: generated inputs, what follows from their outputs, probes, the replaced version, tools in service, the testers' cases. */
export function createExaminer(deps: ExaminerDeps): Examiner {
  return {
    async examine(subject, op) {
      const examination = beginExamination(deps, subject);
      const { open, sources, runs } = examination;
      if (dependsOnSetup(open)) return emptyReport(subject, deps.testers.names);
      const checks = [
        ...(await inputChecks(examination, op)),
        ...(await probeChecks({ ...examination, verifier: deps.verifier }, op)),
      ];
      checks.push(...(await replacedChecks(examination, op)));
      const comparison = await comparisonWithTools(examination, op);
      const testers = await testerResults(examination, op);
      if (runs.isInconclusive) checks.push(cutShort(runs));
      const report = { digest: subject.digest, claims: [...sources.claims], checks, testers, inputs: runs.count };
      return withComparison(report, comparison);
    },
  };
}

function beginExamination(deps: ExaminerDeps, subject: ExaminationSubject): Examination {
  const open = parseArtifact(subject.artifact);
  if ('malformed' in open) throw new TemperError('TEMPER_INTERNAL', `an accepted tool is malformed: ${open.malformed}`);
  const check = { input: deps.schemas.check(open.inputSchema), output: deps.schemas.check(open.outputSchema) };
  const isValid = (input: Json): boolean => check.input(input).length === 0;
  const random = seededRandom(subject.digest, 'inputs');
  const tests = open.tests.map(({ input }) => input);
  const plan = planInputs({ inputSchema: open.inputSchema, tests, recorded: subject.recorded, isValid, random });
  const sources: RelationSources = { open, claims: claimsOf(open), plan, isValid, random };
  const runs = new InputRuns(deps.verifier, subject.artifact, deps.inputsPerRun);
  return { deps, subject, open, sources, runs, isValidOutput: (output) => check.output(output).length === 0 };
}

/** Runs every input once, then those that contain an earlier output, and judges. */
async function inputChecks({ sources, runs, isValidOutput }: Examination, op: CallOptions): Promise<CheckResult[]> {
  const { plan } = sources;
  const relations = [...structuralRelations(sources), ...orderRelations(sources), ...claimedResults(sources)];
  const planned = [...plan.bases, ...relations.flatMap(({ base, other }) => [base, other])];
  await runs.run([...planned, ...plan.neighbours, ...plan.boundaries, ...plan.samples], op);
  const seconds = secondApplications(sources, runs);
  await runs.run(
    seconds.map(({ other }) => other),
    op,
  );
  return [
    ...generatedInputs(plan, runs, isValidOutput),
    ...judgeRelations([...relations, ...seconds], runs),
    constantOutput(plan, runs),
  ];
}

async function replacedChecks({ deps, subject, sources, runs }: Examination, op: CallOptions): Promise<CheckResult[]> {
  if (subject.replaced === undefined) return [];
  const { bases, neighbours, boundaries } = sources.plan;
  const inputs = [...bases, ...neighbours, ...boundaries];
  const earlier = new InputRuns(deps.verifier, subject.replaced, deps.inputsPerRun);
  await earlier.run(inputs, op);
  return [replacedVersion(inputs, runs, earlier)];
}

async function comparisonWithTools(
  { deps, subject, open, runs }: Examination,
  op: CallOptions,
): Promise<ToolComparison | undefined> {
  const examined = { open, recorded: subject.recorded, runs };
  return compareWithTools(examined, await subject.inService?.(), deps, op);
}

async function testerResults(examination: Examination, op: CallOptions): Promise<TesterResult[]> {
  const { deps, subject, open, sources, runs, isValidOutput } = examination;
  const { names } = deps.testers;
  if (names.length === 0) return [];
  const problem = testersProblem(names, subject.authorModel);
  if (problem !== undefined) return noTesterResults(names, problem);
  const isValid = { input: sources.isValid, output: isValidOutput };
  const answers = (await deps.testers.ask(open, op)).map((answer) => usableCases(answer, isValid));
  await runs.run(
    answers.flatMap(({ cases }) => cases.map(({ input }) => input)),
    op,
  );
  return answers.map((answer) => testerResult(answer, runs));
}

/** The inputs of an examination have no recorded answers of the network and of files. */
function dependsOnSetup({ artifact, plan }: ParsedArtifact): boolean {
  const { apis } = artifact.requires;
  return (
    apis.some((api) => api === 'fetch' || api === 'fs.readFile') ||
    (plan !== undefined && artifact.tests.some(({ fixtures = [] }) => fixtures.length > 0))
  );
}

async function emptyReport(
  { digest, inService }: ExaminationSubject,
  testers: readonly string[],
): Promise<ExaminationReport> {
  const problem = 'its results depend on files, the network or tools with side effects';
  const report = { digest, claims: [], checks: [], testers: noTesterResults(testers, problem), inputs: 0 };
  return withComparison(report, withoutComparison(await inService?.()));
}

/** An examination that a tool cut short decides nothing about it, so a user decides. */
function cutShort(runs: InputRuns): CheckResult {
  const reason = 'so many runs ended at a limit of time or memory that further inputs were not run';
  return checkResult('growth', 'Ask', runs.count, [{ input: '', got: '', reason }]);
}
