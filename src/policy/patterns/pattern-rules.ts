import type { PatternKind, PatternRules } from '../../api/findings.ts';
import { isTemperError } from '../../lib/errors.ts';
import { includes } from './pattern-containment.ts';
import { compilePattern } from './pattern.ts';

/** The pattern language for the manifest checks. The decisions use the same functions, so both agree about every pattern. */
export const PATTERN_RULES: PatternRules = {
  patternError: patternFlaw,
  covers: (ceiling, text, kind) =>
    includes(
      ceiling.map((pattern) => compilePattern(pattern, kind)),
      compilePattern(text, kind),
    ),
};

function patternFlaw(text: string, kind: PatternKind): string | undefined {
  try {
    compilePattern(text, kind);
    return undefined;
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_PATTERN_INVALID')) throw error;
    return `character ${error.details.position as number}: ${error.details.why as string}`;
  }
}
