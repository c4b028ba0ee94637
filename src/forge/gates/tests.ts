import { printable } from '../../lib/printable.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import type { Json } from '../../lib/json.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { differenceFrom, sameJson } from '../test-runs/compare-json.ts';
import type { ParsedArtifact } from '../parse-artifact.ts';
import type { ForgeViolation } from '../request.ts';
import type { TestResult } from '../types.ts';

const MAX_SHOWN_CASES = 5;
const MAX_SHOWN_CHARACTERS = 240;
/** Failures of what surrounds the tool. They say nothing about the tool, and may hit one of two runs only. */
const ENVIRONMENT_CODES: readonly ErrorCode[] = [
  'TEMPER_SANDBOX_UNAVAILABLE',
  'TEMPER_CANCELLED',
  'TEMPER_QUOTA_EXCEEDED',
  'TEMPER_LEDGER_UNAVAILABLE',
  'TEMPER_APPROVAL_DENIED',
  'TEMPER_APPROVAL_TIMEOUT',
];
/**
 * Failures of a run that ended because it used too much, the most telling first. The load of the machine decides which of them
 * ends a run first, and whether a run near a limit ends at all, so two runs that differ only in this are no proof of chance.
 */
const RESOURCE_CODES: readonly ErrorCode[] = [
  'TEMPER_SANDBOX_MEMORY',
  'TEMPER_SANDBOX_TIMEOUT',
  'TEMPER_TOOL_TIMEOUT',
  'TEMPER_SANDBOX_CRASHED',
];
const PASSED_THROUGH_CODES: readonly ErrorCode[] = ['TEMPER_FORGE_COMPOSE', ...ENVIRONMENT_CODES];

/** What to do about the messages of the engine on BigInt values; the sandbox itself names the member and the remedy. */
const BIGINT_REMEDIES: readonly (readonly [message: RegExp, remedy: string])[] = [
  [/Cannot mix BigInt/, 'convert one side: Number(big), or BigInt(number)'],
  [/serialize a BigInt/, 'convert it with Number() or String()'],
];

/** Checks that every test input matches the input schema, so that each test is a call that the tool accepts. */
export function checkTestInputs(open: ParsedArtifact, schemas: SchemaCompiler): ForgeViolation[] {
  const check = schemas.check(open.inputSchema);
  return open.tests.flatMap((test, index) => {
    const problems = check(test.input);
    if (problems.length === 0) return [];
    const message = `case ${index + 1}: its input does not match inputSchema: ${problems.join('; ')}`;
    return [{ code: 'TEMPER_FORGE_TEST_FAILED', message: printable(message, 600) }];
  });
}

/** Checks that each case passed in both runs with the same output. */
export function checkResults(open: ParsedArtifact, results: readonly TestResult[]): ForgeViolation[] {
  const violations: ForgeViolation[] = [];
  for (let index = 0; index < open.tests.length; index += 1) {
    const runs = results.filter((result) => result.case === index + 1);
    const violation = checkCase(open, index, runs);
    if (violation !== undefined) violations.push(violation);
  }
  if (violations.length <= MAX_SHOWN_CASES) return violations;
  const more: ForgeViolation = {
    code: 'TEMPER_FORGE_TEST_FAILED',
    message: `and ${violations.length - MAX_SHOWN_CASES} more cases`,
  };
  return [...violations.slice(0, MAX_SHOWN_CASES), more];
}

/** Counts the cases that passed in both runs, and the others. */
export function countCases(open: ParsedArtifact, results: readonly TestResult[]): { passed: number; failed: number } {
  let passed = 0;
  for (let index = 1; index <= open.tests.length; index += 1) {
    const runs = results.filter((result) => result.case === index);
    if (runs.length === 2 && runs.every((result) => result.passed)) passed += 1;
  }
  return { passed, failed: open.tests.length - passed };
}

function checkCase(open: ParsedArtifact, index: number, runs: readonly TestResult[]): ForgeViolation | undefined {
  const label = `case ${index + 1}`;
  const [first, second] = runs;
  const ended = firstFailure(runs, ENVIRONMENT_CODES) ?? firstFailure(runs, RESOURCE_CODES);
  if (ended !== undefined) return { code: codeOf(ended.code), message: `${label}: ${failureText(ended)}` };
  if (first !== undefined && second !== undefined && !mayVary(open) && !sameResult(first, second)) {
    const message = `${label}: two runs gave ${describe(first)} and ${describe(second)}; remove what varies, or declare it`;
    return { code: 'TEMPER_FORGE_NONDETERMINISTIC', message };
  }
  const bad = runs.find((result) => !result.passed);
  if (bad === undefined) return undefined;
  if (bad.failure !== undefined) {
    return { code: codeOf(bad.failure.code), message: `${label}: ${failureText(bad.failure)}` };
  }
  return {
    code: 'TEMPER_FORGE_TEST_FAILED',
    message: `${label}: ${mismatch(open.tests[index]?.expectedOutput, bad.got)}`,
  };
}

/** The failure with the first of these codes. */
function firstFailure(runs: readonly TestResult[], codes: readonly ErrorCode[]): TestResult['failure'] {
  const failures = runs.flatMap(({ failure }) => failure ?? []);
  return codes.flatMap((code) => failures.filter((failure) => failure.code === code))[0];
}

function mismatch(expected: Json = null, got: Json = null): string {
  const where = differenceFrom(expected, got) ?? '';
  const at = where === '' ? '' : ` (at ${printable(where, 80)})`;
  return `expected ${shownJson(expected)}, got ${shownJson(got)}${at}`;
}

/** Whether the tool declared a clock, randomness or the network, so that its output may vary between runs. */
function mayVary({ artifact }: ParsedArtifact): boolean {
  return artifact.requires.apis.some((api) => api === 'clock' || api === 'random' || api === 'fetch');
}

function sameResult(first: TestResult, second: TestResult): boolean {
  if (first.failure !== undefined || second.failure !== undefined) return first.failure?.code === second.failure?.code;
  return sameJson(first.got ?? null, second.got ?? null);
}

/** Keeps the codes that are no fault of the tool's code: a missing fixture, an unavailable sandbox, a cancellation. Any other failure fails the test. */
function codeOf(code: ErrorCode): ErrorCode {
  return PASSED_THROUGH_CODES.includes(code) ? code : 'TEMPER_FORGE_TEST_FAILED';
}

function describe(result: TestResult): string {
  return result.failure === undefined ? shownJson(result.got ?? null) : failureText(result.failure);
}

function failureText({ code, message }: NonNullable<TestResult['failure']>): string {
  const remedy = BIGINT_REMEDIES.find(([pattern]) => pattern.test(message))?.[1];
  return `${shortened(message)}${remedy === undefined ? '' : `; ${remedy}`} (${code})`;
}

/** The reason of a failure in a chain of steps is at the end, so a long message loses its middle. */
function shortened(message: string): string {
  const limit = MAX_SHOWN_CHARACTERS * 2;
  if (message.length <= limit) return printable(message);
  return `${printable(message.slice(0, limit / 3))} … ${printable(message.slice(-limit))}`;
}

function shownJson(value: Json): string {
  return printable(JSON.stringify(value), MAX_SHOWN_CHARACTERS);
}
