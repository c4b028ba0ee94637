import { RE2JS } from 're2js';
import { printable } from '../../lib/printable.ts';

/** Limits of a regular expression in a schema, so that one match stays cheap. */
const LIMITS = { length: 256, instructions: 1_000 };

/** Units of work of one matcher step; a match takes as many steps as its characters times its instructions. */
const UNITS_PER_STEP = 4;

/** A pattern for a linear-time engine; patterns never run on the native engine. */
export interface CompiledPattern {
  test(text: string): boolean;
  /** The cache key of the validator; different patterns must have different keys. */
  toString(): string;
}

/** The reason why a pattern cannot be used; undefined for a valid pattern. */
export function patternProblem(pattern: string): { problem: 'invalid' | 'unsafe'; message: string } | undefined {
  if (pattern.length > LIMITS.length) {
    return { problem: 'unsafe', message: `a pattern has at most ${LIMITS.length} characters; shorten it` };
  }
  const compiled = compile(pattern);
  if (compiled === undefined) {
    return {
      problem: 'invalid',
      message: `pattern ${printable(JSON.stringify(pattern), 80)} cannot be matched in linear time; write it without look-around and back-references`,
    };
  }
  if (compiled.programSize() > LIMITS.instructions) {
    return { problem: 'unsafe', message: 'the pattern repeats too much; use smaller counts' };
  }
  return undefined;
}

/** Compiles a validated pattern. `spend` receives the work of each match before the match runs. */
export function compilePattern(pattern: string, spend: (cost: number) => void): CompiledPattern {
  const compiled = compile(pattern);
  if (compiled === undefined) throw new SyntaxError('the pattern was not validated');
  const size = compiled.programSize();
  return {
    test(text) {
      spend(UNITS_PER_STEP * text.length * size);
      return compiled.test(text);
    },
    toString: () => `re2:${pattern}`,
  };
}

function compile(pattern: string): RE2JS | undefined {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(pattern));
  } catch {
    // A pattern that the engine refuses is not usable; the caller reports it.
    return undefined;
  }
}
