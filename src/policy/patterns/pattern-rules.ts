import type { PatternKind, PatternRules } from '../../api/findings.ts';
import { isTemperError } from '../../lib/errors.ts';
import { includes, newSearchBudget, type SearchBudget } from './pattern-containment.ts';
import { compilePattern } from './pattern.ts';

/** The pattern language for the manifest checks. The decisions use the same functions, so both agree about every pattern. */
export const PATTERN_RULES: PatternRules = {
  patternError,
  covers: (ceiling, text, kind) => covers(ceiling, text, kind),
};

/**
 * The same language for objects of untrusted users, which may have a hundred patterns in each list: all comparisons of one object share
 * the budget of one. A hundred ordinary patterns use a third of it. Beyond it a pattern counts as not covered.
 */
export class BoundedPatternRules implements PatternRules {
  readonly patternError = patternError;
  #budget: SearchBudget = newSearchBudget();

  /** Call it before each object. */
  startObject(): void {
    this.#budget = newSearchBudget();
  }

  covers(ceiling: readonly string[], text: string, kind: PatternKind): boolean {
    return covers(ceiling, text, kind, this.#budget);
  }
}

function covers(ceiling: readonly string[], text: string, kind: PatternKind, budget = newSearchBudget()): boolean {
  if (budget.steps < 0) return false;
  const outer = ceiling.map((pattern) => compilePattern(pattern, kind));
  return includes(outer, compilePattern(text, kind), budget);
}

function patternError(text: string, kind: PatternKind): string | undefined {
  try {
    compilePattern(text, kind);
    return undefined;
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_PATTERN_INVALID')) throw error;
    return `character ${error.details.position as number}: ${error.details.why as string}`;
  }
}
