import type { JsonObject } from '../../lib/json.ts';
import type { RegisteredTool, RerunOutcome } from '../../tempering/types.ts';

/** What an examination found. `facts` are numbers that the panel sees. */
type ExaminationResult =
  | { passed: true; facts: Readonly<Record<string, number>> }
  | { passed: false; reason: string; facts: Readonly<Record<string, number>> };

/**
 * A check of a tool between the re-runs and the panel. It may have the verifier run further inputs, and decides from their outcomes and
 * from the artifact alone: both functions are pure and are called again after a restart.
 */
export interface Examination {
  readonly name: string;
  /** Inputs that the verifier runs after the tests and the recorded inputs. */
  inputs(tool: Pick<RegisteredTool, 'artifact'>): readonly JsonObject[];
  /** `outcomes` has one entry per input. */
  examine(tool: Pick<RegisteredTool, 'artifact'>, outcomes: readonly RerunOutcome[]): ExaminationResult;
}

/** The examinations of each promotion, in order. The first that does not pass refuses the promotion. */
export const EXAMINATIONS: readonly Examination[] = [];
