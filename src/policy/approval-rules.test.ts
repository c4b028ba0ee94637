import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { approvalRules, decidedByTimeout, dueSteps, msUntilNext, requestTimes } from './approval-rules.ts';

const created = new Date('2031-01-01T00:00:00.000Z');
const after = (milliseconds: number): Date => new Date(created.getTime() + milliseconds);

describe('the rules for approvals', () => {
  it('a request without settings waits without an end', () => {
    assert.deepEqual(approvalRules(undefined, 'low'), { onTimeout: 'Wait', escalation: [] });
    assert.deepEqual(requestTimes(approvalRules({}, 'low'), created), {});
  });

  it('the settings of a risk replace those of all requests one by one, and do not apply to promotions', () => {
    const approvals = {
      timeout: '4h',
      onTimeout: 'Deny' as const,
      byRisk: [
        { risk: 'low' as const, timeout: '10m', onTimeout: 'Approve' as const },
        { risk: 'critical' as const, onTimeout: 'Wait' as const },
      ],
    };
    const outcomes = (['low', 'medium', 'critical', undefined] as const).map((risk) => {
      const { timeoutMs, onTimeout } = approvalRules(approvals, risk);
      return [timeoutMs, onTimeout];
    });
    assert.deepEqual(outcomes, [
      [600_000, 'Approve'],
      [14_400_000, 'Deny'],
      [14_400_000, 'Wait'],
      [14_400_000, 'Deny'],
    ]);
  });

  it('no timeout approves a call of high or critical risk, whatever the policy says', () => {
    for (const risk of ['high', 'critical'] as const) {
      const rules = approvalRules({ byRisk: [{ risk, timeout: '1s', onTimeout: 'Approve' }] }, risk);
      assert.equal(decidedByTimeout(requestTimes(rules, created), after(1_000)), 'Pending');
    }
  });

  it('a timeout decides from its time on, and only where it denies or approves', () => {
    for (const [onTimeout, decision] of [
      ['Deny', 'Deny'],
      ['Approve', 'Approve'],
      ['Wait', 'Pending'],
    ] as const) {
      const times = requestTimes(
        approvalRules({ byRisk: [{ risk: 'low', timeout: '1s', onTimeout }] }, 'low'),
        created,
      );
      assert.equal(decidedByTimeout(times, after(999)), 'Pending');
      assert.equal(decidedByTimeout(times, after(1_000)), decision);
    }
    assert.equal(decidedByTimeout({ expiresAt: 'never', onTimeout: 'Approve' }, created), 'Pending');
  });

  it('the steps of an escalation have times, in their order', () => {
    const rules = approvalRules(
      {
        escalation: [
          { after: '1h', to: ['b'] },
          { after: '30m', to: ['a'] },
        ],
      },
      'low',
    );
    assert.deepEqual(requestTimes(rules, created).escalation, [
      { at: '2031-01-01T00:30:00.000Z', to: ['a'] },
      { at: '2031-01-01T01:00:00.000Z', to: ['b'] },
    ]);
  });

  it('steps are due from their times on, and the next moment is that of a step or of a denial', () => {
    const escalation = [
      { at: after(1_000).toISOString(), to: ['a'] },
      { at: after(3_000).toISOString(), to: ['b'] },
    ];
    const denied = { escalation, expiresAt: after(2_000).toISOString(), onTimeout: 'Deny' };
    const due = (milliseconds: number) => dueSteps({ escalation }, after(milliseconds)).map(({ to }) => to[0]);
    assert.deepEqual([due(999), due(1_000), due(9_000)], [[], ['a'], ['a', 'b']]);
    assert.deepEqual(
      [0, 1_000, 2_000, 3_000].map((now) => msUntilNext(denied, after(now))),
      [1_000, 1_000, 1_000, undefined],
    );
    assert.equal(msUntilNext({ ...denied, escalation: [], onTimeout: 'Wait' }, created), undefined);
  });
});
