import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { digestOf } from '../../lib/canonical.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import type { RerunOutcome } from '../types.ts';
import { contradictedReports, describeContradictions } from './contradicted-reports.ts';
import type { CaseOutputs, RunOutput } from './verification-case.ts';

const gives = (value: number): RunOutput => ({ ok: true, output: { value } });
const fails = (code: ErrorCode): RunOutput & RerunOutcome => ({ ok: false, code, message: '' });
const TEST = { tests: [{ input: {}, expectedOutput: { value: 1 }, fixtures: [] }] };
const USE = { output: digestOf({ value: 1 }) };

describe('reports of an agent pod about its tools', () => {
  const TESTS: [what: string, runs: CaseOutputs, contradicted: number][] = [
    ['that passes again', [gives(1), gives(1)], 0],
    ['that gives another output', [gives(2), gives(2)], 1],
    ['whose two runs differ', [gives(1), gives(2)], 0],
    ['that throws', [fails('TEMPER_SANDBOX_EXCEPTION'), fails('TEMPER_SANDBOX_EXCEPTION')], 1],
    ['that throws once', [fails('TEMPER_SANDBOX_EXCEPTION'), gives(1)], 0],
    ['that ran out of time', [fails('TEMPER_SANDBOX_TIMEOUT'), fails('TEMPER_SANDBOX_TIMEOUT')], 0],
    ['whose sandbox was away', [fails('TEMPER_SANDBOX_UNAVAILABLE'), fails('TEMPER_SANDBOX_UNAVAILABLE')], 0],
  ];
  for (const [what, runs, contradicted] of TESTS) {
    it(`a test ${what} contradicts ${contradicted} reports`, () => {
      assert.equal(contradictedReports(TEST, [runs], [], []).tests, contradicted);
    });
  }

  it('a re-run contradicts a reported output when the tool itself causes the difference, and a failed use reports none', () => {
    const usesOf = (outcome: RerunOutcome, use: { output?: typeof USE.output } = USE) =>
      contradictedReports({ tests: [] }, [], [use], [outcome]).uses;
    assert.equal(usesOf(fails('TEMPER_REPLAY_MISMATCH')), 1);
    assert.equal(usesOf(fails('TEMPER_SANDBOX_EXCEPTION')), 1);
    assert.equal(usesOf(fails('TEMPER_SANDBOX_MEMORY')), 0);
    assert.equal(usesOf({ ok: true, output: { value: 1 } }), 0);
    assert.equal(usesOf(fails('TEMPER_SANDBOX_EXCEPTION'), {}), 0);
  });

  it('contradicted reports are described by their kinds, and nothing is said without one', () => {
    assert.equal(describeContradictions({ tests: 0, uses: 0 }), undefined);
    assert.match(describeContradictions({ tests: 1, uses: 2 }) ?? '', /1 tests .*, 2 outputs/);
  });
});
