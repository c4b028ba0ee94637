import { differenceFrom, sameJson } from '../../../forge/test-runs/compare-json.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../lib/json.ts';
import type { ClaimName } from '../types.ts';
import { onlyMember } from './claims.ts';
import type { Relation, RelationSources } from './relation.ts';

const MAX_INPUTS = 24;

type Expectation = (items: readonly Json[], output: Json) => boolean;

/** What a plain claim says about the output for a list of numbers. */
const NUMBER_RESULTS: Partial<Record<ClaimName, Expectation>> = {
  sum: (items, output) => isNear(sumOf(items), output),
  mean: (items, output) => items.length === 0 || isNear(sumOf(items) / items.length, output),
  minimum: (items, output) => items.length === 0 || isNear(Math.min(...(items as number[])), output),
  maximum: (items, output) => items.length === 0 || isNear(Math.max(...(items as number[])), output),
};

/** What a plain claim says about the output list for an input list. */
const LIST_RESULTS: Partial<Record<ClaimName, Expectation>> = {
  sorted: (items, output) => Array.isArray(output) && isSorted(output) && sameJson(textsOf(items), textsOf(output)),
  reversed: (items, output) => sameJson(items.toReversed(), output),
  distinct: (items, output) =>
    Array.isArray(output) && sameJson([...new Set(textsOf(items))].toSorted(), textsOf(output)),
};

/** What a plain claim says about the output text for an input text. */
const TEXT_RESULTS: Partial<Record<ClaimName, (text: string, output: Json) => boolean>> = {
  'upper-case': (text, output) => typeof output === 'string' && isAscii(text, output, text.toUpperCase()),
  'lower-case': (text, output) => typeof output === 'string' && isAscii(text, output, text.toLowerCase()),
  reversed: (text, output) =>
    typeof output === 'string' && isAscii(text, output, Array.from(text).toReversed().join('')),
};

/** Outputs that follow from the input, when the name claims one plain operation on the only member of the input. */
export function claimedResults({ open, claims, plan }: RelationSources): Relation[] {
  const input = onlyMember(open.inputSchema, ['array', 'string']);
  const output = onlyMember(open.outputSchema, ['array', 'string', 'number', 'integer']);
  if (input === undefined || output === undefined) return [];
  return claims.flatMap(({ claim }) =>
    [...plan.bases, ...plan.boundaries, ...plan.neighbours].slice(0, MAX_INPUTS).flatMap((base): Relation[] => {
      const expectation = expectationOf(claim, base[input]);
      return expectation === undefined ? [] : [relation(claim, base, output, expectation)];
    }),
  );
}

function expectationOf(claim: ClaimName, value: Json | undefined): ((output: Json) => boolean) | undefined {
  if (typeof value === 'string') {
    const expectation = TEXT_RESULTS[claim];
    return expectation === undefined ? undefined : (output) => expectation(value, output);
  }
  if (!Array.isArray(value)) return undefined;
  const isNumeric = value.every((item) => typeof item === 'number');
  const isPlain = isNumeric || value.every((item) => typeof item === 'string');
  const expectation = isNumeric
    ? (NUMBER_RESULTS[claim] ?? LIST_RESULTS[claim])
    : isPlain
      ? LIST_RESULTS[claim]
      : undefined;
  return expectation === undefined ? undefined : (output) => expectation(value, output);
}

function relation(
  claim: ClaimName,
  base: JsonObject,
  member: string,
  expectation: (output: Json) => boolean,
): Relation {
  return {
    check: 'claimed-result',
    base,
    other: base,
    reason: `the output is not the one that the name claims (${claim})`,
    isTotal: false,
    holds(_first, output) {
      const value = isJsonObject(output) ? output[member] : undefined;
      return value === undefined || value === null || expectation(value);
    },
  };
}

function sumOf(items: readonly Json[]): number {
  return (items as readonly number[]).reduce((sum, item) => sum + item, 0);
}

/** A tool may round for its users; less than half of a hundredth is no disagreement. */
function isNear(expected: number, output: Json): boolean {
  if (typeof output !== 'number') return false;
  return differenceFrom(expected, output) === undefined || Math.abs(expected - output) <= 0.005;
}

function isSorted(items: readonly Json[]): boolean {
  return items.every((item, index) => {
    const previous = items[index - 1];
    if (previous === undefined) return true;
    if (typeof item === 'number' && typeof previous === 'number') return previous <= item;
    return true;
  });
}

function textsOf(items: readonly Json[]): string[] {
  return items.map((item) => JSON.stringify(item)).toSorted();
}

/** Letters outside ASCII have several defensible results. */
function isAscii(text: string, output: string, expected: string): boolean {
  return /[^\x20-\x7e]/.test(text) || output === expected;
}
