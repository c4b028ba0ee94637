import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ToolVerification } from '../../api/v1alpha1/emergenttool.ts';
import { aTool, NONCE } from '../tool/tool.testing.ts';
import { afterRerun, attemptOf, endsService, neededRerun, type RerunOrder, runsInputs } from './rerun-plan.ts';
import { revocationOf } from './revocation.ts';

const NOW = new Date('2031-05-05T12:00:00Z');
const PLANNED = { type: 'Active', status: 'True', reason: 'Approved', message: 'in service' } as const;
const REFUSED = { ...PLANNED, status: 'False', reason: 'ApprovalMissing' } as const;
const DAY_MS = 24 * 3_600_000;
const PASSED: ToolVerification = {
  result: 'Passed',
  verifiedAt: '2031-05-01T12:00:00Z',
  observedGeneration: 1,
  tests: 3,
  failedTests: 0,
  reruns: 0,
  successes: 0,
};

const shared = (verification?: ToolVerification) =>
  aTool(
    { tier: 'Shared', requestNonce: NONCE },
    verification === undefined ? {} : { status: { active: true, verification } },
  );
const agents = (verification?: ToolVerification) =>
  aTool(
    { tier: 'Agent', agent: 'analyst' },
    { status: { active: true, ...(verification === undefined ? {} : { verification }) } },
  );
const causeOf = (
  tool: ReturnType<typeof aTool>,
  reverifyEveryMs?: number,
  planned: typeof PLANNED | typeof REFUSED = PLANNED,
) => neededRerun(tool, planned, { now: NOW, reverifyEveryMs, losses: [], requests: [] })?.cause;

describe('when the tests of a tool run again', () => {
  it('an approved Shared tool runs them once on this cluster, and again for an edited spec', () => {
    assert.equal(causeOf(shared()), 'Approval');
    assert.equal(causeOf(shared(PASSED)), undefined);
    assert.equal(causeOf(shared({ ...PASSED, observedGeneration: 0 })), 'Approval');
    assert.equal(causeOf(shared(), undefined, REFUSED), undefined, 'a tool without its approval uses no pod');
    assert.equal(causeOf(agents()), undefined, 'a verification created the tool of tier Agent');
  });

  it('a tool in service runs them at the interval of the policy, and a failed one never', () => {
    assert.equal(causeOf(shared(PASSED), 5 * DAY_MS), undefined);
    assert.equal(causeOf(shared(PASSED), 4 * DAY_MS), 'Schedule');
    assert.equal(causeOf(agents(PASSED), 4 * DAY_MS), 'Schedule');
    assert.equal(causeOf(agents(), DAY_MS / 2), 'Schedule', 'its creation counts');
    assert.equal(causeOf(shared({ ...PASSED, result: 'Failed' }), DAY_MS), undefined);
  });

  it('a run has one name until it has a result', () => {
    assert.equal(attemptOf(shared()), attemptOf(shared()));
    assert.notEqual(attemptOf(shared()), attemptOf(shared(PASSED)));
  });
});

describe('a run because of what agents lost', () => {
  const DEACTIVATED = { ...PLANNED, status: 'False', reason: 'Deactivated' } as const;
  const NONE = { now: NOW, reverifyEveryMs: undefined, losses: [], requests: [] };
  const [early, late] = ['2031-05-01T11:00:00Z', '2031-05-02T12:00:00Z'];

  it('one agent alone starts no run of a Shared tool, and two do, once after each run', () => {
    const cause = (losses: string[]) => neededRerun(shared(PASSED), PLANNED, { ...NONE, losses })?.cause;
    assert.equal(cause([late]), undefined);
    assert.equal(cause([late, early]), undefined, 'one of them is older than the last run');
    assert.equal(cause([late, late]), 'Outcomes');
    assert.equal(neededRerun(agents(PASSED), PLANNED, { ...NONE, losses: [late, late] }), undefined);
  });

  it('a deactivated tool of tier Agent runs its tests when a user asks, and not before', () => {
    const cause = (tool: ReturnType<typeof aTool>, requests: string[]) =>
      neededRerun(tool, DEACTIVATED, { ...NONE, requests })?.cause;
    assert.equal(cause(agents(PASSED), []), undefined);
    assert.equal(cause(agents(PASSED), [early]), undefined);
    assert.equal(cause(agents(PASSED), [late]), 'Reactivation');
    assert.equal(cause(agents({ ...PASSED, result: 'Failed' }), [late]), 'Reactivation', 'a user may ask again');
    assert.equal(neededRerun(shared(PASSED), REFUSED, { ...NONE, requests: [late] }), undefined);
  });

  it('a failed run ends the service of what was in service, and a tool of tier Agent stays as it is', () => {
    const order = (cause: RerunOrder['cause']) => ({ cause, attempt: 'one' });
    const ends = (tool: ReturnType<typeof aTool>) =>
      (['Approval', 'Schedule', 'Outcomes', 'Reactivation'] as const).filter((cause) =>
        endsService(tool, order(cause)),
      );
    assert.deepEqual(ends(shared()), ['Schedule', 'Outcomes', 'Reactivation']);
    assert.deepEqual(ends(agents()), ['Schedule', 'Outcomes']);
    assert.deepEqual(
      [shared(), agents()].map((tool) => runsInputs(tool, order('Reactivation'))),
      [false, true],
    );
  });
});

describe('whether a tool is in service after a run', () => {
  const reasonOf = (...args: Parameters<typeof afterRerun>): string => {
    const { status, reason } = afterRerun(...args);
    return `${status} ${reason}`;
  };
  const ended = (result: 'Passed' | 'Failed') =>
    ({
      kind: 'ended',
      verification: { ...PASSED, result },
      problem: result === 'Failed' ? '1 of 3 tests failed' : undefined,
    }) as const;
  const NONE = { kind: 'none' } as const;
  const WAITING = { kind: 'waiting', message: 'waits', retryMs: 1 } as const;

  it('a Shared tool without a passing run is never in service', () => {
    assert.equal(reasonOf(shared(), PLANNED, NONE), 'False Verifying');
    assert.equal(reasonOf(shared(), PLANNED, WAITING), 'False Verifying');
    assert.equal(reasonOf(shared({ ...PASSED, observedGeneration: 0 }), PLANNED, WAITING), 'False Verifying');
    assert.equal(reasonOf(shared(), PLANNED, ended('Failed')), 'False VerificationFailed');
    assert.equal(reasonOf(shared({ ...PASSED, result: 'Failed' }), PLANNED, NONE), 'False VerificationFailed');
    assert.equal(reasonOf(shared(), PLANNED, ended('Passed')), 'True Approved');
    assert.equal(reasonOf(shared(PASSED), PLANNED, WAITING), 'True Approved', 'it stays during a scheduled run');
    assert.equal(reasonOf(shared(PASSED), REFUSED, NONE), 'False ApprovalMissing');
  });

  it('a tool of tier Agent leaves service with a failed run only', () => {
    assert.equal(reasonOf(agents(), PLANNED, WAITING), 'True Approved');
    assert.equal(reasonOf(agents(), PLANNED, ended('Failed')), 'False VerificationFailed');
  });

  it('the revocation of a demotion has the nonce of the tool, and is the same when it is repeated', () => {
    const { spec, metadata } = revocationOf(shared(), 'operator', 'tests\u001b failed');
    assert.deepEqual([spec.decision, spec.nonce, spec.approvedBy.username], ['Revoke', NONCE, 'operator']);
    assert.ok(!spec.reason?.includes('\u001b'));
    assert.equal(revocationOf(shared(), 'operator', 'x').metadata.name, metadata.name);
    assert.match(revocationOf(agents(), 'operator', 'x').spec.nonce, /^[0-9a-f]{26}$/);
  });
});
