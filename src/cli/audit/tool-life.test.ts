import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../lib/json.ts';
import { toolLife } from './tool-life.ts';

function lifeOf(action: string, facts: JsonObject): string | undefined {
  const record = { seq: 1, time: '2026-01-01T00:00:00Z', action, actor: 'system', subject: 'sha256:0', facts };
  return toolLife([record], 'sha256:0')[0]?.text;
}

describe('the life of a tool', () => {
  it('an examination has its counts', () => {
    const figures = { examinedInputs: 52, checkCases: 310, refusingDisagreements: 1, openQuestions: 0 };
    const text = 'Agent, 52 inputs, 310 cases of checks, 1 refusing disagreements, 0 open questions';
    assert.equal(lifeOf('tool.examined', { tier: 'Agent', ...figures }), text);
  });

  it('contradicted reports have their numbers, and a count that is no number has none', () => {
    assert.equal(
      lifeOf('tool.reports-contradicted', { tests: 1, uses: 5 }),
      '1 contradicted tests, 5 contradicted uses',
    );
    assert.equal(lifeOf('tool.reports-contradicted', { tests: 'x', uses: 5 }), '5 contradicted uses');
  });
});
