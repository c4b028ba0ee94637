import { RE2JS } from 're2js';
import { printable } from '../lib/escape.ts';

/** What a regular expression in a schema may be, so that one match stays cheap. */
const LIMITS = { length: 256, instructions: 1_000 };

/** Steps of the matcher one validation may spend on patterns: characters times instructions. */
export const PATTERN_BUDGET = 20_000_000;

/** Thrown out of a validation whose patterns cost too much; the value is then refused. */
export class PatternBudgetError extends Error {}

/** Patterns run on a linear-time engine, never on the native one. */
export interface CompiledPattern {
  test(text: string): boolean;
  /** The validator keys patterns by this; it must differ where the patterns differ. */
  toString(): string;
}

/** Why a pattern cannot be used; undefined when it can. */
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

/** Compiles a pattern that was vetted. `spend` is told the cost of each match before it runs. */
export function compilePattern(pattern: string, spend: (cost: number) => void): CompiledPattern {
  const compiled = compile(pattern);
  if (compiled === undefined) throw new SyntaxError('the pattern was not vetted');
  const size = compiled.programSize();
  return {
    test(text) {
      spend(text.length * size);
      return compiled.test(text);
    },
    toString: () => `re2:${pattern}`,
  };
}

function compile(pattern: string): RE2JS | undefined {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(pattern));
  } catch {
    // Whatever the engine dislikes is not usable here; the caller says so.
    return undefined;
  }
}
