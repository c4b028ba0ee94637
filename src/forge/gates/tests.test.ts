import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { aRequest, artifactOf } from '../forge.testing.ts';
import { parseArtifact } from '../parse-artifact.ts';
import type { TestResult } from '../types.ts';
import { checkResults } from './tests.ts';

const tested = parseArtifact(artifactOf(aRequest({ testCases: [{ input: { n: 2 }, expectedOutput: { twice: 4 } }] })));

const USAGE = { case: 1, milliseconds: 1, heapBytes: 1 };
const good = (run: 1 | 2): TestResult => ({ ...USAGE, run, passed: true, got: { twice: 4 } });
const bad = (run: 1 | 2, code: ErrorCode, message: string): TestResult => ({
  ...USAGE,
  run,
  passed: false,
  failure: { code, message },
});

function violations(...results: TestResult[]) {
  assert.ok(!('malformed' in tested));
  return checkResults(tested, results);
}

describe('the results of the test runs', () => {
  const memory = (run: 1 | 2) => bad(run, 'TEMPER_SANDBOX_MEMORY', 'the tool used more than its limit of 32 MiB');
  const time = (run: 1 | 2) => bad(run, 'TEMPER_SANDBOX_TIMEOUT', 'the tool did not finish within 1000 ms');
  const crash = (run: 1 | 2) => bad(run, 'TEMPER_SANDBOX_CRASHED', 'the process of the tool ended: SIGABRT');
  const ENDED: Record<string, [runs: TestResult[], named: RegExp]> = {
    'memory and then time': [[memory(1), time(2)], /32 MiB \(TEMPER_SANDBOX_MEMORY\)/],
    'time and then memory': [[time(1), memory(2)], /32 MiB \(TEMPER_SANDBOX_MEMORY\)/],
    'a crash and then time': [[crash(1), time(2)], /within 1000 ms \(TEMPER_SANDBOX_TIMEOUT\)/],
    'time in one run of two': [[good(1), time(2)], /within 1000 ms \(TEMPER_SANDBOX_TIMEOUT\)/],
    'memory in the only run': [[memory(1)], /32 MiB \(TEMPER_SANDBOX_MEMORY\)/],
  };
  for (const [name, [runs, named]] of Object.entries(ENDED)) {
    it(`the gate names the resource when the runs end by ${name}`, () => {
      const [violation, ...others] = violations(...runs);
      assert.equal(violation?.code, 'TEMPER_FORGE_TEST_FAILED');
      assert.match(violation.message, named);
      assert.deepEqual(others, []);
    });
  }

  it('the gate reports two different outputs, and an output beside an exception, as nondeterminism', () => {
    const other: TestResult = { ...good(2), passed: false, got: { twice: 5 } };
    const exception = bad(2, 'TEMPER_SANDBOX_EXCEPTION', 'Error: no');
    for (const second of [other, exception]) {
      assert.equal(violations(good(1), second)[0]?.code, 'TEMPER_FORGE_NONDETERMINISTIC');
    }
  });
});
