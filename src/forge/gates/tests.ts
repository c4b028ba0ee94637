import { printable } from '../../lib/escape.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import type { Json } from '../../lib/json.ts';
import type { SchemaCompiler } from '../../tools/schemas.ts';
import { differenceFrom, sameJson } from '../compare.ts';
import type { OpenArtifact } from '../open-artifact.ts';
import type { Violation } from '../request.ts';
import type { TestResult } from '../types.ts';

const SHOWN_CASES = 5;
const SHOWN_CHARACTERS = 240;
const KEPT_CODES: readonly ErrorCode[] = ['TEMPER_FORGE_COMPOSE', 'TEMPER_SANDBOX_UNAVAILABLE', 'TEMPER_CANCELLED'];

/** A test must be a call the tool would accept. */
export function checkTestInputs(open: OpenArtifact, schemas: SchemaCompiler): Violation[] {
  const check = schemas.check(open.inputSchema);
  return open.tests.flatMap((test, index) => {
    const problems = check(test.input);
    if (problems.length === 0) return [];
    const message = `case ${index + 1}: its input breaks inputSchema: ${problems.join('; ')}`;
    return [{ code: 'TEMPER_FORGE_TEST_FAILED', message: printable(message, 600) }];
  });
}

/** Each case passed both times and gave the same both times. */
export function checkResults(open: OpenArtifact, results: readonly TestResult[]): Violation[] {
  const violations: Violation[] = [];
  for (let index = 0; index < open.tests.length; index += 1) {
    const runs = results.filter((result) => result.case === index + 1);
    const violation = checkCase(open, index, runs);
    if (violation !== undefined) violations.push(violation);
  }
  if (violations.length <= SHOWN_CASES) return violations;
  const more: Violation = {
    code: 'TEMPER_FORGE_TEST_FAILED',
    message: `and ${violations.length - SHOWN_CASES} more cases`,
  };
  return [...violations.slice(0, SHOWN_CASES), more];
}

/** Cases that passed both times, and the others. */
export function countCases(open: OpenArtifact, results: readonly TestResult[]): { passed: number; failed: number } {
  let passed = 0;
  for (let index = 1; index <= open.tests.length; index += 1) {
    const runs = results.filter((result) => result.case === index);
    if (runs.length === 2 && runs.every((result) => result.passed)) passed += 1;
  }
  return { passed, failed: open.tests.length - passed };
}

function checkCase(open: OpenArtifact, index: number, runs: readonly TestResult[]): Violation | undefined {
  const place = `case ${index + 1}`;
  const [first, second] = runs;
  if (first !== undefined && second !== undefined && !isFrozen(open) && !sameResult(first, second)) {
    const message = `${place}: two runs gave ${describe(first)} and ${describe(second)}; remove what varies, or declare it`;
    return { code: 'TEMPER_FORGE_NONDETERMINISTIC', message };
  }
  const bad = runs.find((result) => !result.passed);
  if (bad === undefined) return undefined;
  if (bad.failure !== undefined) {
    return { code: codeOf(bad.failure.code), message: `${place}: ${failureText(bad.failure)}` };
  }
  return {
    code: 'TEMPER_FORGE_TEST_FAILED',
    message: `${place}: ${mismatch(open.tests[index]?.expectedOutput, bad.got)}`,
  };
}

function mismatch(expected: Json = null, got: Json = null): string {
  const where = differenceFrom(expected, got) ?? '';
  const at = where === '' ? '' : ` (at ${printable(where, 80)})`;
  return `expected ${shownJson(expected)}, got ${shownJson(got)}${at}`;
}

/** A tool that declared a clock, randomness or the network may answer differently each time. */
function isFrozen({ artifact }: OpenArtifact): boolean {
  return artifact.requires.apis.some((api) => api === 'clock' || api === 'random' || api === 'fetch');
}

function sameResult(first: TestResult, second: TestResult): boolean {
  if (first.failure !== undefined || second.failure !== undefined) return first.failure?.code === second.failure?.code;
  return sameJson(first.got ?? null, second.got ?? null);
}

/** A missing fixture is a fault of the request, a missing sandbox is nobody's; whatever else happens in a test fails it. */
function codeOf(code: ErrorCode): ErrorCode {
  return KEPT_CODES.includes(code) ? code : 'TEMPER_FORGE_TEST_FAILED';
}

function describe(result: TestResult): string {
  return result.failure === undefined ? shownJson(result.got ?? null) : failureText(result.failure);
}

function failureText({ code, message }: NonNullable<TestResult['failure']>): string {
  return `${printable(message, SHOWN_CHARACTERS * 2)} (${code})`;
}

function shownJson(value: Json): string {
  return printable(JSON.stringify(value), SHOWN_CHARACTERS);
}
