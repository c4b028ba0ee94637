import type { TestCase } from '../../../forge/request.ts';
import { parseSource } from '../../../forge/static/parse.ts';
import { isJsonObject, type Json } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { checkResult, shownValue, skippedCheck, withoutVariants } from '../check-result.ts';
import { scalarsOf } from '../inputs/nodes.ts';
import type { CheckResult, Consequence, Disagreement } from '../types.ts';
import { literalsOf, type SourceLiteral, type TableKeys } from './literals.ts';
import type { ProbeCall } from './probe-source.ts';
import { MAX_VARIANT_CHARACTERS, type ProbeResult } from './run-probe.ts';
import type { VetSource } from './vetted-variants.ts';

const MAX_MUTANTS = 24;
const MAX_TESTS = 12;
const MAX_NEIGHBOURS = 40;
const MAX_SCALARS = 200;
/** Different results of other inputs, from which on the tool computes and does not look up. */
const COMPUTED_RESULTS = 3;

/** The versions of a tool in which one literal of its tests has another value. */
export interface MutationPlan {
  tests: TestCase[];
  neighbours: Json[];
  inputs: Json[];
  mutants: { literal: SourceLiteral; source: string }[];
  /** Versions that may not run. */
  refused: number;
  calls: ProbeCall[];
}

/**
 * Finds the literals of the source that also stand in a test, and changes one after the other. A literal whose change alters the result
 * of a test and of no input near it serves the test alone. A version that `vet` refuses does not run.
 */
export function planMutants(
  source: string,
  tests: readonly TestCase[],
  nearby: readonly Json[],
  vet: VetSource,
): MutationPlan | undefined {
  const { program } = parseSource(source);
  if (program === undefined) return undefined;
  const stated = tests.filter(({ expectedOutput }) => expectedOutput !== undefined).slice(0, MAX_TESTS);
  const inTests = new Set(stated.flatMap(({ input, expectedOutput = null }) => textsOf([input, expectedOutput])));
  const literals = literalsOf(program, source).filter(({ value }) => inTests.has(String(value)));
  let remaining = MAX_VARIANT_CHARACTERS - source.length;
  const made = literals.slice(0, MAX_MUTANTS).flatMap((literal) => {
    remaining -= source.length + 40;
    return remaining < 0 ? [] : [{ literal, source: mutate(source, literal) }];
  });
  const mutants = made.filter((mutant) => vet(mutant.source));
  const neighbours = nearby.slice(0, MAX_NEIGHBOURS);
  const inputs = [...stated.map(({ input }) => input), ...neighbours];
  const variants = [source, ...mutants];
  const calls = variants.flatMap((_, variant) => inputs.map((_input, index): ProbeCall => [variant, index, 0]));
  return { tests: stated, neighbours, inputs, mutants, refused: made.length - mutants.length, calls };
}

/** Numbers as texts, so that a key that the language turns into a text is found. */
function textsOf(value: Json): string[] {
  return scalarsOf(value, MAX_SCALARS).map(String);
}

function mutate(source: string, { value, start, end, isBareKey }: SourceLiteral): string {
  const changed =
    typeof value === 'number'
      ? String(value + 1_000_003)
      : isBareKey
        ? `temper_${value}`
        : JSON.stringify(`temper ${value}`);
  return `${source.slice(0, start)}${changed}${source.slice(end)}`;
}

export function judgeMutants(
  plan: MutationPlan,
  probed: { results: readonly ProbeResult[] } | { problem: string },
): CheckResult {
  if ('problem' in probed) return withoutVariants(skippedCheck('memorized-tests', 'Ask', probed.problem), plan.refused);
  const rows = [undefined, ...plan.mutants].map((_, variant) =>
    probed.results.slice(variant * plan.inputs.length, (variant + 1) * plan.inputs.length),
  );
  const [original = [], ...changed] = rows;
  const served = new Map<number, SourceLiteral>();
  for (const [number, { literal }] of plan.mutants.entries()) {
    for (const index of servedTests(plan, literal, original, changed[number] ?? [])) {
      if (!served.has(index)) served.set(index, literal);
    }
  }
  const disagreements = [...served].map(([index, literal]) => disagreementOf(plan, index, literal, original));
  const consequence = consequenceOf(served.size, plan.tests.length);
  return withoutVariants(checkResult('memorized-tests', consequence, plan.tests.length, disagreements), plan.refused);
}

/** One exceptional value may be honest; a tool that answers most of its tests from literals has learned them. */
function consequenceOf(served: number, tests: number): Consequence {
  if (served === tests || (served > 1 && 2 * served >= tests)) return 'Refuse';
  return 3 * served >= tests ? 'Ask' : 'Note';
}

/** The tests that this literal alone serves: no other input depends on it, and the tool computes the results of other inputs. */
function servedTests(
  plan: MutationPlan,
  { value, tables }: SourceLiteral,
  original: readonly ProbeResult[],
  mutant: readonly ProbeResult[],
): number[] {
  const isChanged = (index: number): boolean =>
    original[index]?.text !== mutant[index]?.text || original[index]?.failed !== mutant[index]?.failed;
  const others = plan.inputs.slice(plan.tests.length).map((_, offset) => plan.tests.length + offset);
  const usable = others.filter((index) => original[index]?.failed === false);
  const results = new Set(usable.map((index) => original[index]?.text));
  if (results.size < COMPUTED_RESULTS || others.some(isChanged)) return [];
  if (tables.some((table) => hasOtherEntries(table, plan.tests))) return [];
  return plan.tests.flatMap((test, index) => (isChanged(index) && holds(test, value) ? [index] : []));
}

/** An honest table has more entries than the tests use. An object with the names of members is no table. */
function hasOtherEntries(table: TableKeys, tests: readonly TestCase[]): boolean {
  const members = new Set(
    tests.flatMap(({ input, expectedOutput = null }) => [input, expectedOutput].flatMap(memberNames)),
  );
  if (table.every((key) => members.has(String(key)))) return false;
  return table.some((key) => !tests.some((test) => holds(test, key)));
}

function memberNames(value: Json): string[] {
  return isJsonObject(value) ? Object.keys(value) : [];
}

function holds({ input, expectedOutput = null }: TestCase, value: string | number): boolean {
  return textsOf([input, expectedOutput]).includes(String(value));
}

function disagreementOf(
  { tests }: MutationPlan,
  index: number,
  { value }: SourceLiteral,
  original: readonly ProbeResult[],
): Disagreement {
  return {
    input: shownValue(tests[index]?.input ?? null),
    expected: `a result that does not rest on the literal ${shownValue(value)} alone`,
    got: printable(original[index]?.text ?? '', 200),
    reason: 'a literal of the source serves this test and no input near it',
  };
}
