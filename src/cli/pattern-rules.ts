import type { PatternRules } from '../api/findings.ts';
import { isTemperError } from '../lib/errors.ts';
import { includes } from '../policy/inclusion.ts';
import { compilePattern } from '../policy/patterns.ts';

/** The pattern language of decisions, for the checks of manifests: what is refused at run time is refused here. */
export const PATTERN_RULES: PatternRules = {
  flaw(text, kind) {
    try {
      compilePattern(text, kind);
      return undefined;
    } catch (error) {
      if (!isTemperError(error, 'TEMPER_PATTERN_INVALID')) throw error;
      return error.message;
    }
  },
  covers(ceiling, text, kind) {
    return includes(
      ceiling.map((pattern) => compilePattern(pattern, kind)),
      compilePattern(text, kind),
    );
  },
};
