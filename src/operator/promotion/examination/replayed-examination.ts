import { Check } from 'typebox/value';
import { VerificationOutputs } from '../../../gateway-api/verification/verification-schemas.ts';
import type { Digest } from '../../../lib/canonical.ts';
import { isTemperError } from '../../../lib/errors.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import type { Json } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { createExaminer } from '../../../tempering/examination/examiner.ts';
import { MAX_LIMIT_FAILURES } from '../../../tempering/examination/input-runs.ts';
import type { TesterAnswer } from '../../../tempering/examination/testers/ask-tester.ts';
import type { ExaminationReport, ExaminationSubject } from '../../../tempering/examination/types.ts';
import type { RerunOutcome, Verifier } from '../../../tempering/types.ts';
import { assertRan, outcomeOf } from '../../../tempering/verification/compare-outputs.ts';
import { isLimitFailure } from '../../../tempering/verification/verification-case.ts';
import { createSchemaCompiler } from '../../../tools/json-schema/compiler.ts';
import { type ExaminationRun, roundWork, runDigest } from './round-work.ts';

/** How far an examination is. */
export type ExaminationProgress =
  | { readonly kind: 'report'; readonly report: ExaminationReport }
  /** What the pod has to run next. */
  | { readonly kind: 'round'; readonly run: ExaminationRun }
  /** It needs the cases of the testers. */
  | { readonly kind: 'testers' }
  /** It says nothing about the tool. */
  | { readonly kind: 'unusable'; readonly problem: string };

/** A round that the pod ran: the digest of what it got, and what it sent. */
export interface RanRound {
  readonly digest: Digest;
  readonly sent: Json;
}

export interface RanExamination {
  readonly attempt: string;
  readonly rounds: readonly RanRound[];
  /** The models that the policy names. */
  readonly testers: readonly string[];
  /** Undefined until a gateway has asked them. */
  readonly answers: readonly TesterAnswer[] | undefined;
}

/** Inputs of one round. Longer ones take several rounds. */
const INPUTS_PER_ROUND = { count: 600, bytes: 2 * 1_024 * 1_024 };

/**
 * Repeats the examination from its beginning with what the rounds gave so far, up to the first run without outputs. An examination of
 * one digest is always the same, so the rounds are its whole state.
 */
export async function replayExamination(
  subject: ExaminationSubject,
  ran: RanExamination,
  op: CallOptions,
): Promise<ExaminationProgress> {
  const { testers: names, answers } = ran;
  const examiner = createExaminer({
    verifier: replayedRuns(ran),
    schemas: createSchemaCompiler(),
    testers: {
      names,
      ask: async () => {
        if (answers === undefined) throw new ExaminationEnd({ kind: 'testers' });
        return answersOf(names, answers);
      },
    },
    inputsPerRun: INPUTS_PER_ROUND,
  });
  try {
    return { kind: 'report', report: await examiner.examine(subject, op) };
  } catch (error) {
    if (error instanceof ExaminationEnd) return error.progress;
    throw error;
  }
}

/** Ends the repetition where something is missing. */
class ExaminationEnd extends Error {
  readonly progress: ExaminationProgress;

  constructor(progress: ExaminationProgress) {
    super(progress.kind);
    this.progress = progress;
  }
}

/** Two answers, also when the policy changed after the testers were asked. */
function answersOf(names: readonly string[], answers: readonly TesterAnswer[]): TesterAnswer[] {
  return names.map(
    (model, index): TesterAnswer =>
      answers[index] ?? { model, cases: [], dropped: 0, promptDigest: '', problem: 'it was not asked' },
  );
}

function replayedRuns({ attempt, rounds }: RanExamination): Pick<Verifier, 'outputs'> {
  let next = 0;
  return {
    async outputs(artifact, inputs) {
      const run = { artifact, inputs };
      const position = next;
      next += 1;
      const ran = rounds[position];
      if (ran === undefined) throw new ExaminationEnd({ kind: 'round', run });
      const outcomes = readRound(run, { attempt, round: position + 1 }, ran);
      if ('problem' in outcomes) throw new ExaminationEnd({ kind: 'unusable', ...outcomes });
      return outcomes.outcomes;
    },
  };
}

/** What the pod sent for a round, checked: the pod may be hostile. */
function readRound(
  run: ExaminationRun,
  place: { attempt: string; round: number },
  { digest, sent }: RanRound,
): { outcomes: RerunOutcome[] } | { problem: string } {
  const work = roundWork(run, place, new Map());
  if (runDigest(work) !== digest)
    return { problem: 'the version that the tool replaces, or a tool in service, changed' };
  if (!Check(VerificationOutputs, sent)) return { problem: 'the pod sent outputs of another form' };
  const { attempt, round, outputs } = sent;
  if (attempt !== place.attempt || round !== place.round) {
    return { problem: 'the pod sent outputs of another verification' };
  }
  const limited = outputs.filter((runs) => runs.some(isLimitFailure)).length;
  const isComplete = outputs.length === run.inputs.length;
  if (!isComplete && (outputs.length > run.inputs.length || limited < MAX_LIMIT_FAILURES)) {
    return { problem: `the pod sent ${outputs.length} outputs for ${run.inputs.length} inputs of the examination` };
  }
  try {
    outputs.forEach(assertRan);
  } catch (error) {
    if (isTemperError(error)) return { problem: printable(error.message, 300) };
    throw error;
  }
  return { outcomes: outputs.map((runs) => outcomeOf(run.artifact, runs)) };
}
