import { printable } from '../../lib/printable.ts';
import type { CheckResult, ExaminationReport, TesterResult } from './types.ts';

/** The thresholds of a policy (`promotion.toAgent.examination`). */
export interface ExaminationRules {
  /** Disagreements of all refusing checks together, above which the examination refuses. */
  maxDisagreements: number;
  /** Share of the generated inputs on which the tool may fail. */
  maxFailedInputsPercent: number;
}

export type ExaminationVerdict =
  | { outcome: 'Pass' }
  /** A user decides. `topics` names the checks, without any text of an author. */
  | { outcome: 'Ask'; reasons: string[]; topics: string[] }
  | { outcome: 'Refuse'; reasons: string[] };

/** Fewer generated inputs than this say nothing about a share. */
const MIN_GENERATED_INPUTS = 8;

/** What follows from a report. Pure; a cluster and `temper run` use the same rules. */
export function examinationVerdict(report: ExaminationReport, rules: ExaminationRules): ExaminationVerdict {
  const refusals = [
    ...refusingChecks(report.checks, rules),
    ...failedInputs(report.checks, rules),
    ...redundancies(report.checks),
  ];
  const testers = testerVerdict(report.testers);
  if (testers.outcome === 'Refuse') refusals.push(...testers.reasons);
  if (refusals.length > 0) return { outcome: 'Refuse', reasons: refusals };
  const open = report.checks.filter(({ consequence, disagreements }) => consequence === 'Ask' && disagreements > 0);
  const asked = testers.outcome === 'Ask' ? testers : { reasons: [], topics: [] };
  const reasons = [...open.map(checkReason), ...asked.reasons];
  const topics = [...new Set([...open.map(({ check }) => check), ...asked.topics])];
  return reasons.length > 0 ? { outcome: 'Ask', reasons, topics } : { outcome: 'Pass' };
}

function refusingChecks(checks: readonly CheckResult[], { maxDisagreements }: ExaminationRules): string[] {
  const refusing = checks.filter(
    ({ check, consequence, disagreements }) => check !== 'redundancy' && consequence === 'Refuse' && disagreements > 0,
  );
  const total = refusing.reduce((sum, { disagreements }) => sum + disagreements, 0);
  return total > maxDisagreements ? refusing.map(checkReason) : [];
}

/** A tool that does what another one does is no mistake that a policy could tolerate: the other one is there to be called. */
function redundancies(checks: readonly CheckResult[]): string[] {
  const { examples = [] } = checks.find(({ check }) => check === 'redundancy') ?? {};
  return examples.map(({ reason }) => printable(`redundancy: ${reason}`, 600));
}

function failedInputs(checks: readonly CheckResult[], { maxFailedInputsPercent }: ExaminationRules): string[] {
  const generated = checks.find(({ check }) => check === 'generated-inputs');
  if (generated === undefined || generated.cases < MIN_GENERATED_INPUTS) return [];
  const percent = (generated.disagreements / generated.cases) * 100;
  return percent > maxFailedInputsPercent
    ? [`generated-inputs: it fails on ${generated.disagreements} of ${generated.cases} inputs that its schema allows`]
    : [];
}

/** Both against the tool refuse it; one against it, or none with evidence, asks a user. */
function testerVerdict(testers: readonly TesterResult[]): ExaminationVerdict {
  if (testers.length === 0) return { outcome: 'Pass' };
  const against = testers.filter(({ verdict }) => verdict === 'Disagrees');
  const evidence = testers.filter(({ verdict }) => verdict !== 'None');
  const reasons = against.map(
    ({ model, disagreements, cases }) =>
      `testers: ${printable(model, 128)} expects another result in ${disagreements} of ${cases} cases`,
  );
  if (against.length >= 2) return { outcome: 'Refuse', reasons };
  if (against.length === 1) return { outcome: 'Ask', reasons, topics: ['testers'] };
  if (evidence.length > 0) return { outcome: 'Pass' };
  const problems = testers.map(
    ({ model, problem = '' }) => `testers: no usable cases of ${printable(model, 128)}: ${printable(problem, 200)}`,
  );
  return { outcome: 'Ask', reasons: problems, topics: ['testers'] };
}

function checkReason({ check, disagreements, cases, examples }: CheckResult): string {
  const [first] = examples;
  const example = first === undefined ? '' : `: ${first.reason}`;
  return printable(`${check}: ${disagreements} of ${cases} cases${example}`, 400);
}

function comparedTools({ checks, incomparableTools }: ExaminationReport): Record<string, number> {
  const comparison = checks.find(({ check }) => check === 'redundancy');
  if (comparison === undefined) return {};
  const { cases, disagreements } = comparison;
  return { comparedTools: cases, redundantTools: disagreements, incomparableTools: incomparableTools ?? 0 };
}

function refusedVariants({ checks }: ExaminationReport): Record<string, number> {
  const total = checks.reduce((sum, { refusedVariants: refused = 0 }) => sum + refused, 0);
  return total === 0 ? {} : { refusedVariants: total };
}

/** The counts of a report as whole numbers, for the panel, which reads no text of an author, and for the audit record. */
export function examinationFigures(report: ExaminationReport): Record<string, number> {
  const sum = (results: readonly CheckResult[], of: 'cases' | 'disagreements'): number =>
    results.reduce((total, result) => total + result[of], 0);
  const by = (consequence: CheckResult['consequence']): CheckResult[] =>
    report.checks.filter((result) => result.consequence === consequence);
  return {
    examinedInputs: report.inputs,
    checkCases: sum(report.checks, 'cases'),
    refusingDisagreements: sum(by('Refuse'), 'disagreements'),
    openQuestions: sum(by('Ask'), 'disagreements'),
    failedGeneratedInputs: sum(
      by('Note').filter(({ check }) => check === 'generated-inputs'),
      'disagreements',
    ),
    testersWithEvidence: report.testers.filter(({ verdict }) => verdict !== 'None').length,
    testersAgainst: report.testers.filter(({ verdict }) => verdict === 'Disagrees').length,
    ...refusedVariants(report),
    ...comparedTools(report),
  };
}
