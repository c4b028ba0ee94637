import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { promotionRules } from '../promotion/promotion-rules.ts';
import type { CheckResult, ExaminationReport, TesterVerdict } from './types.ts';
import { examinationFigures, examinationVerdict } from './verdict.ts';

const RULES = promotionRules({}).examination;

function aReport(testers: TesterVerdict[], checks: CheckResult[] = []): ExaminationReport {
  return {
    digest: 'sha256:0',
    claims: [],
    checks,
    testers: testers.map((verdict, index) => ({
      model: `test/${index}`,
      verdict,
      cases: 5,
      dropped: 0,
      disagreements: verdict === 'Disagrees' ? 1 : 0,
      examples: [],
      promptDigest: '',
    })),
    inputs: 30,
  };
}

function aCheck(changes: Partial<CheckResult>): CheckResult {
  return { check: 'state', consequence: 'Refuse', cases: 20, disagreements: 1, examples: [], ...changes };
}

function outcome(report: ExaminationReport, rules = RULES): string {
  return examinationVerdict(report, rules).outcome;
}

describe('the verdict of an examination', () => {
  const TABLE: [TesterVerdict[], string][] = [
    [[], 'Pass'],
    [['Agrees', 'Agrees'], 'Pass'],
    [['Agrees', 'None'], 'Pass'],
    [['None', 'None'], 'Ask'],
    [['Disagrees', 'Agrees'], 'Ask'],
    [['None', 'Disagrees'], 'Ask'],
    [['Disagrees', 'Disagrees'], 'Refuse'],
  ];
  for (const [testers, expected] of TABLE) {
    it(`testers that say ${testers.join(' and ') || 'nothing, because there are none,'} lead to ${expected}`, () => {
      assert.equal(outcome(aReport(testers)), expected);
    });
  }

  it('a refusing check refuses, also when both testers agree, unless the policy tolerates its disagreements', () => {
    const report = aReport(['Agrees', 'Agrees'], [aCheck({}), aCheck({ check: 'clock', disagreements: 2 })]);
    assert.equal(outcome(report), 'Refuse');
    assert.equal(outcome(report, { ...RULES, maxDisagreements: 3 }), 'Pass');
    assert.equal(outcome(report, { ...RULES, maxDisagreements: 2 }), 'Refuse');
  });

  it('a redundant tool is refused, however many disagreements the policy tolerates', () => {
    const example = { input: '{}', got: '1', reason: '"other" at tier Shared gives the same outputs' };
    const redundant = aCheck({ check: 'redundancy', cases: 3, examples: [example] });
    const verdict = examinationVerdict(aReport(['Agrees', 'Agrees'], [redundant]), { ...RULES, maxDisagreements: 9 });
    assert.deepEqual(verdict, { outcome: 'Refuse', reasons: [`redundancy: ${example.reason}`] });
    const figures = examinationFigures({ ...aReport([], [redundant]), incomparableTools: 2 });
    assert.deepEqual([figures['comparedTools'], figures['redundantTools'], figures['incomparableTools']], [3, 1, 2]);
  });

  it('growth of the work alone never refuses, and is a question that names the check', () => {
    const verdict = examinationVerdict(aReport([], [aCheck({ check: 'growth', consequence: 'Ask' })]), RULES);
    assert.ok(verdict.outcome === 'Ask');
    assert.deepEqual(verdict.topics, ['growth']);
  });

  it('failures on generated inputs refuse above the share of the policy', () => {
    const failing = (disagreements: number): ExaminationReport =>
      aReport([], [aCheck({ check: 'generated-inputs', consequence: 'Note', cases: 20, disagreements })]);
    assert.equal(outcome(failing(18)), 'Pass');
    assert.equal(outcome(failing(19)), 'Refuse');
    assert.equal(outcome(failing(3), { ...RULES, maxFailedInputsPercent: 10 }), 'Refuse');
  });

  it('the panel gets whole numbers and no text', () => {
    const figures = examinationFigures(aReport(['Agrees', 'Disagrees'], [aCheck({ disagreements: 4 })]));
    assert.ok(Object.values(figures).every((value) => Number.isInteger(value)));
    assert.equal(figures['refusingDisagreements'], 4);
    assert.equal(figures['testersAgainst'], 1);
  });
});
