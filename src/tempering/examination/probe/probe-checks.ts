import type { CallOptions } from '../../../lib/call-options.ts';
import type { Verifier } from '../../types.ts';
import { skippedCheck, withoutVariants } from '../check-result.ts';
import type { InputRuns } from '../input-runs.ts';
import type { RelationSources } from '../properties/relation.ts';
import type { CheckName, CheckResult, ExaminationSubject } from '../types.ts';
import { judgeGrowth, planGrowth } from './growth.ts';
import { judgeMutants, planMutants } from './memorized-tests.ts';
import { FEW_CALLS, judgeRepeatedCalls, planRepeatedCalls } from './repeated-calls.ts';
import { runProbe } from './run-probe.ts';
import { judgeShiftedCalls, planShiftedCalls } from './shifted-clock.ts';
import { vetCounted, vetVariant } from './vetted-variants.ts';
import { withWorkCounters } from './work-counters.ts';

/** An input that runs hundreds of times must be small. */
const MAX_REPEATED_CHARACTERS = 500;

interface Probed {
  subject: ExaminationSubject;
  sources: RelationSources;
  runs: InputRuns;
  verifier: Pick<Verifier, 'outputs'>;
}

/** The checks that need several versions of a tool, or several calls in one isolate. A composed tool has no source of its own. */
export async function probeChecks(probed: Probed, op: CallOptions): Promise<CheckResult[]> {
  const { artifact } = probed.subject;
  const { source } = artifact.implementation;
  if (source === undefined) return [];
  const { apis } = artifact.requires;
  const checks: CheckResult[] = [];
  if (!apis.includes('random') && !apis.includes('clock')) {
    checks.push(...(await stateChecks(probed, source, op)), ...(await mutantChecks(probed, source, op)));
    checks.push(...(await growthChecks(probed, source, op)));
  }
  if (apis.includes('clock')) checks.push(...(await clockChecks(probed, source, op)));
  return checks;
}

async function stateChecks(
  { subject, sources, runs, verifier }: Probed,
  source: string,
  op: CallOptions,
): Promise<CheckResult[]> {
  const { bases, neighbours, boundaries } = sources.plan;
  const usable = [...bases.slice(0, 3), ...boundaries.slice(2, 6), ...neighbours].filter(
    (input) => runs.outputOf(input) !== undefined && JSON.stringify(input).length <= MAX_REPEATED_CHARACTERS,
  );
  const plan = planRepeatedCalls(usable);
  if (plan.calls.length === 0) return [];
  const probed = await runProbe(verifier, subject.artifact, { variants: [source] }, plan, op);
  if (!('problem' in probed)) return judgeRepeatedCalls(plan, probed);
  const few = planRepeatedCalls(usable.slice(0, 4), FEW_CALLS);
  return judgeRepeatedCalls(few, await runProbe(verifier, subject.artifact, { variants: [source] }, few, op));
}

async function mutantChecks(
  { subject, sources, runs, verifier }: Probed,
  source: string,
  op: CallOptions,
): Promise<CheckResult[]> {
  const nearby = sources.plan.neighbours.filter((input) => runs.outputOf(input) !== undefined);
  const plan = planMutants(source, sources.open.tests, nearby, vetVariant(subject.artifact));
  if (plan === undefined) return [];
  if (plan.mutants.length === 0) return plan.refused === 0 ? [] : [refusedByGate('memorized-tests', plan.refused)];
  const variants = [source, ...plan.mutants.map((mutant) => mutant.source)];
  return [judgeMutants(plan, await runProbe(verifier, subject.artifact, { variants }, plan, op))];
}

async function growthChecks(
  { subject, sources, verifier }: Probed,
  source: string,
  op: CallOptions,
): Promise<CheckResult[]> {
  const plan = planGrowth(sources.plan.bases, sources.isValid);
  const counted = withWorkCounters(source);
  if (plan.calls.length === 0 || counted === undefined) return [];
  if (!vetCounted(subject.artifact)(counted)) return [refusedByGate('growth', 1)];
  const program = { variants: [counted], countsWork: true };
  return [judgeGrowth(plan, await runProbe(verifier, subject.artifact, program, plan, op))];
}

async function clockChecks(
  { subject, sources, verifier }: Probed,
  source: string,
  op: CallOptions,
): Promise<CheckResult[]> {
  const plan = planShiftedCalls(sources.open.tests);
  if (plan.calls.length === 0) return [];
  const program = { variants: [source], shiftsClock: true };
  return [judgeShiftedCalls(plan, await runProbe(verifier, subject.artifact, program, plan, op))];
}

function refusedByGate(check: CheckName, variants: number): CheckResult {
  const reason = 'the static gate refuses the versions of the source that the check would run';
  return withoutVariants(skippedCheck(check, 'Ask', reason), variants);
}
