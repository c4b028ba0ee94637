import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { createManifestLoader } from '../api/manifests.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import { isTemperError } from '../lib/errors.ts';
import { FakeClock } from '../lib/fake-clock.testing.ts';
import { ulids } from '../lib/ids.ts';
import { member, textAt } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { memoryRecordStore } from '../lib/record-store.ts';
import { createSecretRedactor } from '../telemetry/secret-redactor.ts';
import type { ApprovalInput } from '../tools/approvals.ts';
import { approvalRules } from '../policy/approval-rules.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import { createFileApprovals, expireAbandonedRequests, type FileApprovals } from './approvals.ts';
import type { UserDecision } from './decision-files.ts';

function anOp(milliseconds = 5_000): CallOptions {
  return { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + milliseconds, key: 'k' };
}

const LOADER = createManifestLoader();
const NO_TURNS = { agent: 'analyst', namespace: 'team', has: () => Promise.resolve(false) };

const ask: ApprovalInput = {
  type: 'ToolCall',
  agent: 'analyst',
  tool: 'deploy_site',
  subject: 'sha256:x',
  binding: { call: { tool: 'deploy_site', argumentsDigest: `sha256:${'0'.repeat(64)}`, callId: 'call-1' } },
  risk: 'high',
  reason: 'needs an approval',
};

function createFixture(settings: TrustPolicySpec['approvals'] = {}, clock: Clock = systemClock, hasApprover = true) {
  const records = memoryRecordStore();
  /** A later process on the same records. */
  const restart = (current = settings): FileApprovals =>
    createFileApprovals({
      records,
      clock,
      ids: ulids,
      namespace: 'team',
      policy: { name: 'strict', rules: (risk) => approvalRules(current, risk) },
      redact: createSecretRedactor(['s3cr3t-of-env']).redact,
      hasApprover,
    });
  return { records, restart, approvals: restart() };
}

function aDecision(target: string, verb: UserDecision['verb']): UserDecision {
  return { id: 'd-1', verb, target, reason: 'looked at it', by: 'user/kim', time: '2026-01-01T00:00:00.000Z' };
}

describe('file approvals', () => {
  it('a pending approval resolves with the decision', async () => {
    const { approvals, records } = createFixture();
    const id = await approvals.request(ask);
    const waiting = approvals.waitForDecision(id, anOp());
    await approvals.decide(aDecision(id, 'Approve'));
    assert.deepEqual(await waiting, { decision: 'Approve', by: 'user/kim', reason: 'looked at it' });
    const request = await records.get('approvalrequests', id);
    assert.equal(member(member(request, 'status'), 'decision'), 'Approve');
  });

  it('a decision before the first waiter is stored, and the first decision is final', async () => {
    const { approvals } = createFixture();
    const id = await approvals.request(ask);
    await approvals.decide(aDecision(id, 'Deny'));
    await approvals.decide(aDecision(id, 'Approve'));
    assert.equal((await approvals.waitForDecision(id, anOp())).decision, 'Deny');
  });

  it('a request has the arguments of its call without the secrets of the process, and is a valid object', async () => {
    const { approvals, records } = createFixture();
    const id = await approvals.request({ ...ask, arguments: { host: 'a.example', key: 's3cr3t-of-env' } });
    const request = await records.get('approvalrequests', id);
    assert.equal(textAt(request, ['spec', 'arguments']), '{"host":"a.example","key":"[redacted]"}');
    assert.deepEqual(LOADER.validate(request ?? null), []);
  });

  it('equal asks share one request, and other arguments create a new one', async () => {
    const { approvals } = createFixture();
    const first = await approvals.request(ask);
    assert.equal(await approvals.request(ask), first);
    assert.notEqual(await approvals.request({ ...ask, subject: 'sha256:y' }), first);
  });

  it('an agent has at most five pending requests', async () => {
    const { approvals } = createFixture();
    for (let index = 0; index < 5; index += 1) await approvals.request({ ...ask, subject: `sha256:${index}` });
    await assert.rejects(approvals.request({ ...ask, subject: 'sha256:more' }), (error) =>
      isTemperError(error, 'TEMPER_QUOTA_EXCEEDED'),
    );
    await approvals.request({ ...ask, agent: 'other', subject: 'sha256:more' });
  });

  it('a timeout denies a request only when the policy says so', async () => {
    const clock = new FakeClock();
    const unlimited: CallOptions = { ...anOp(), deadline: Number.POSITIVE_INFINITY };
    const [strict, lenient] = (['Deny', 'Wait'] as const).map((onTimeout) =>
      createFixture({ onTimeout, timeout: '1m' }, clock),
    );
    assert.ok(strict !== undefined && lenient !== undefined);
    const [id, other] = [await strict.approvals.request(ask), await lenient.approvals.request(ask)];
    const denied = assert.rejects(strict.approvals.waitForDecision(id, unlimited), (error) =>
      isTemperError(error, 'TEMPER_APPROVAL_TIMEOUT'),
    );
    const waiting = lenient.approvals.waitForDecision(other, unlimited);
    await clock.advance(3_600_000);
    await denied;
    await lenient.approvals.decide(aDecision(other, 'Approve'));
    assert.equal((await waiting).decision, 'Approve');
  });

  it('a timeout approves a call only while the policy still has it', async () => {
    const clock = new FakeClock();
    const call: ApprovalInput = { ...ask, risk: 'low', session: 's-1' };
    const settings = { byRisk: [{ risk: 'low' as const, timeout: '1m', onTimeout: 'Approve' as const }] };
    for (const [later, expected] of [
      [settings, 'Approve'],
      [{}, 'TEMPER_APPROVAL_TIMEOUT'],
      [{ timeout: '1m', onTimeout: 'Deny' as const }, 'TEMPER_APPROVAL_TIMEOUT'],
    ] as const) {
      const { approvals, restart } = createFixture(settings, clock, false);
      const id = await approvals.request(call);
      assert.deepEqual(await approvals.decisionOrPark(id, anOp()), { decision: 'Parked' });
      await clock.advance(60_000);
      const next = restart(later);
      assert.equal(await next.request(call), id);
      const outcome = await next.decisionOrPark(id, anOp()).then(
        ({ decision }) => decision,
        (error: unknown) => (isTemperError(error) ? error.code : String(error)),
      );
      assert.equal(outcome, expected);
    }
  });
});

describe('stored requests and approvals', () => {
  it('stored requests and approvals match the schemas of their kinds', async () => {
    const { approvals, records } = createFixture();
    const id = await approvals.request(ask);
    const binding = { promotion: { tool: 'csv_rows', digest: `sha256:${'1'.repeat(64)}`, tier: 'Shared' as const } };
    const other = await approvals.request({ ...ask, type: 'PromoteTool', subject: 'sha256:p', binding });
    await approvals.decide(aDecision(id, 'Approve'));
    await approvals.decide(aDecision(other, 'Deny'));
    for (const collection of ['approvalrequests', 'approvals']) {
      const all = await records.list(collection);
      assert.equal(all.length, 2);
      for (const { value } of all) assert.deepEqual(LOADER.validate(value), [], JSON.stringify(value));
    }
  });
});

describe('a promotion in a state folder', () => {
  const binding = { promotion: { tool: 'csv_rows', digest: `sha256:${'1'.repeat(64)}`, tier: 'Shared' as const } };
  const promotion: ApprovalInput = { ...ask, type: 'PromoteTool', subject: 'sha256:p', binding };
  const unlimited: CallOptions = { ...anOp(), deadline: Number.POSITIVE_INFINITY };

  it('the timeout of the policy denies a promotion, once and also for a later process, and never approves one', async () => {
    const clock = new FakeClock();
    const byRisk = [{ risk: 'high' as const, timeout: '1s' }];
    const { approvals, restart, records } = createFixture({ timeout: '1h', onTimeout: 'Deny', byRisk }, clock);
    const id = await approvals.request(promotion);
    const waiting = approvals.waitForDecision(id, unlimited);
    await clock.advance(3_600_000);
    const denied = { decision: 'Deny', by: 'policy/strict', reason: 'no approver decided before the timeout' };
    assert.deepEqual(await waiting, denied);
    const later = restart();
    assert.equal(await later.request(promotion), id);
    await later.decide(aDecision(id, 'Approve'));
    assert.deepEqual(await later.waitForDecision(id, unlimited), denied);
    const request = (await records.get('approvalrequests', id)) ?? null;
    assert.deepEqual(member(request, 'status'), { decision: 'Expired', decidedBy: 'policy/strict' });
    assert.deepEqual(LOADER.validate(request), []);
  });

  it('a promotion that an approver decided in time is not denied later', async () => {
    const clock = new FakeClock();
    const { approvals, restart } = createFixture({ timeout: '1h', onTimeout: 'Deny' }, clock);
    const id = await approvals.request(promotion);
    await approvals.decide(aDecision(id, 'Approve'));
    await clock.advance(7_200_000);
    assert.equal((await restart().waitForDecision(id, unlimited)).decision, 'Approve');
  });

  it('a promotion waits longer than its timeout where the policy lets it wait', async () => {
    const clock = new FakeClock();
    const { approvals } = createFixture({ timeout: '1h', onTimeout: 'Wait' }, clock);
    const id = await approvals.request(promotion);
    const waiting = approvals.waitForDecision(id, unlimited);
    await clock.advance(7_200_000);
    await approvals.decide(aDecision(id, 'Approve'));
    assert.equal((await waiting).decision, 'Approve');
  });
});

describe('a call that can be parked', () => {
  const parkable: ApprovalInput = { ...ask, session: 's-1', risk: 'low' };

  it('a call is parked where no approver is, and the decision and its single use outlive the process', async () => {
    const { approvals, restart, records } = createFixture({}, systemClock, false);
    const id = await approvals.request(parkable);
    assert.deepEqual(await approvals.decisionOrPark(id, anOp()), { decision: 'Parked' });
    const later = restart();
    assert.equal(await later.request(parkable), id);
    await later.decide(aDecision(id, 'Approve'));
    assert.equal((await later.decisionOrPark(id, anOp())).decision, 'Approve');
    await later.use(id, anOp());
    await later.use(id, anOp());
    assert.deepEqual(LOADER.validate((await records.get('approvalrequests', id)) ?? null), []);
    await assert.rejects(restart().use(id, anOp()), (error) => isTemperError(error, 'TEMPER_APPROVAL_USED'));
    await assert.rejects(later.use(id, { ...anOp(), key: 'other' }), (error) =>
      isTemperError(error, 'TEMPER_APPROVAL_USED'),
    );
  });

  it('a call waits where an approver is, is parked at its deadline, and stays pending after an interrupt', async () => {
    const { approvals, records } = createFixture();
    const id = await approvals.request(parkable);
    assert.deepEqual(await approvals.decisionOrPark(id, anOp(5)), { decision: 'Parked' });
    const controller = new AbortController();
    const waiting = approvals.decisionOrPark(id, { ...anOp(), signal: controller.signal });
    controller.abort(new Error('enough'));
    await assert.rejects(waiting);
    assert.equal(textAt(await records.get('approvalrequests', id), ['status', 'decision'], 'none'), 'none');
  });

  it('a timeout approves a parked call of low risk in the name of the policy, or denies it', async () => {
    const clock = new FakeClock();
    const byRisk = [{ risk: 'low' as const, timeout: '10m', onTimeout: 'Approve' as const }];
    const [lenient, strict] = [
      createFixture({ byRisk }, clock, false),
      createFixture({ timeout: '10m', onTimeout: 'Deny' }, clock, false),
    ];
    const [id, other] = [await lenient.approvals.request(parkable), await strict.approvals.request(parkable)];
    assert.equal((await lenient.approvals.decisionOrPark(id, anOp())).decision, 'Parked');
    await clock.advance(600_000);
    const decided = await lenient.restart().decisionOrPark(id, anOp());
    assert.deepEqual([decided.decision, 'by' in decided && decided.by], ['Approve', 'policy/strict']);
    for (let attempt = 0; attempt < 2; attempt += 1) {
      await assert.rejects(strict.restart().decisionOrPark(other, anOp()), (error) =>
        isTemperError(error, 'TEMPER_APPROVAL_TIMEOUT'),
      );
    }
    await strict.approvals.decide(aDecision(other, 'Approve'));
    assert.equal(await strict.records.get('approvals', other), undefined, 'an expired request cannot be decided');
  });

  it('only the requests of turns that can be resumed outlive a restart', async () => {
    const { approvals, records } = createFixture();
    const id = await approvals.request(parkable);
    const has = async (session: string, callId: string): Promise<boolean> => session === 's-1' && callId === 'call-1';
    await expireAbandonedRequests(records, [{ ...NO_TURNS, has }]);
    assert.equal(textAt(await records.get('approvalrequests', id), ['status', 'decision'], 'none'), 'none');
    await expireAbandonedRequests(records, [{ ...NO_TURNS, agent: 'other' }]);
    assert.equal(textAt(await records.get('approvalrequests', id), ['status', 'decision'], 'none'), 'none');
    await expireAbandonedRequests(records, [NO_TURNS]);
    assert.equal(textAt(await records.get('approvalrequests', id), ['status', 'decision']), 'Expired');
    assert.notEqual(await approvals.request(parkable), '', 'an expired request is replaced');
    assert.equal(textAt(await records.get('approvalrequests', id), ['status', 'decision'], 'none'), 'none');
  });
});

describe('abandoned requests', () => {
  it('an abandoned tool-call request expires and frees its slot, while a promotion request stays pending', async () => {
    const { approvals, records } = createFixture();
    const call = await approvals.request(ask);
    const promotion = await approvals.request({ ...ask, type: 'PromoteTool', subject: 'sha256:p' });
    await expireAbandonedRequests(records, [NO_TURNS]);
    assert.equal(textAt(await records.get('approvalrequests', call), ['status', 'decision']), 'Expired');
    assert.equal(textAt(await records.get('approvalrequests', promotion), ['status', 'decision'], 'none'), 'none');
    for (let index = 0; index < 4; index += 1) await approvals.request({ ...ask, subject: `sha256:${index}` });
  });

  it('a request expires when its caller cancels', async () => {
    const { approvals, records } = createFixture();
    const id = await approvals.request(ask);
    const controller = new AbortController();
    const waiting = approvals.waitForDecision(id, { ...anOp(), signal: controller.signal });
    controller.abort(new Error('enough'));
    await assert.rejects(waiting);
    assert.equal(textAt(await records.get('approvalrequests', id), ['status', 'decision']), 'Expired');
  });
});
