import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { ApprovalRecord } from '../../approvals/approval-record.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { PendingCall } from '../../nats/pending-calls.ts';
import { builtInDescriptors } from '../../engine/built-in.ts';
import { aPolicy, CLAIMS } from './pending-call.testing.ts';
import {
  addCall,
  coversHost,
  type CallQuestion,
  decisionOf,
  isApproved,
  newPendingCall,
  parkedUntil,
  subjectOf,
  withDecision,
  WITHDRAWN,
} from './pending-call.ts';

const NOW = new Date('2031-01-01T00:00:00.000Z');
const later = (milliseconds: number): Date => new Date(NOW.getTime() + milliseconds);
const FILE_READ = builtInDescriptors().find(({ name }) => name === 'file_read');

function aCall(change: Partial<CallQuestion> = {}, policy: TrustPolicy = aPolicy()): PendingCall {
  assert.ok(FILE_READ !== undefined);
  return newPendingCall({
    claims: CLAIMS,
    policy,
    descriptor: FILE_READ,
    input: { path: 'note.txt' },
    callKey: 'k-1',
    decision: { effect: 'Escalate', rule: 'autonomy', reason: 'an approver decides', risk: 'low' },
    withholds: false,
    nonce: 'nonce-0123456789abcdef',
    now: NOW,
    ...change,
  });
}

function anApproval(call: PendingCall, change: Partial<ApprovalRecord> = {}): ApprovalRecord {
  const { nonce } = call;
  return {
    name: 'a',
    createdAt: NOW.toISOString(),
    decision: 'Approve',
    nonce,
    subject: subjectOf(call),
    by: 'alice',
    ...change,
  };
}

describe('a pending call', () => {
  it('a call has its own request: another argument, key, rule or risk, message or session is another one', () => {
    const decision = { effect: 'Escalate', rule: 'autonomy', reason: 'an approver decides', risk: 'low' } as const;
    const calls = [
      aCall(),
      aCall({ input: { path: 'other.txt' } }),
      aCall({ callKey: 'k-2' }),
      aCall({ decision: { ...decision, rule: 'rules.requireApproval' } }),
      aCall({ decision: { ...decision, risk: 'high' } }),
    ];
    assert.equal(new Set(calls.map(({ request }) => request)).size, calls.length);
    assert.equal(aCall({ nonce: 'another', now: later(1) }).request, calls[0]?.request);
  });

  it('an agent has at most five pending calls, and a repeated call or a decided one takes no place', () => {
    let calls: readonly PendingCall[] = [];
    for (let index = 0; index < 5; index += 1) calls = addCall(calls, aCall({ callKey: `k-${index}` }), NOW);
    assert.equal(addCall(calls, aCall({ callKey: 'k-0' }), NOW), calls);
    const sixth = aCall({ callKey: 'k-6' });
    assert.throws(
      () => addCall(calls, sixth, NOW),
      (error) => isTemperError(error, 'TEMPER_QUOTA_EXCEEDED'),
    );
    const [first, ...others] = calls;
    assert.ok(first !== undefined);
    const decided: PendingCall = { ...first, decision: { decision: 'Deny', by: 'alice', reason: 'no' } };
    assert.equal(addCall([decided, ...others], sixth, NOW).length, 6);
  });

  it('long arguments are stored as one cut JSON text', () => {
    const { arguments: shown } = aCall({ input: { texts: Array.from({ length: 9 }, () => 'x'.repeat(900)) } });
    assert.ok(shown.length < 4_000);
    assert.match(JSON.parse(shown) as string, /… \(\d+ characters\)$/);
  });

  it('only an Approval of exactly this call and nonce permits it, and a revocation withdraws it', () => {
    const call = aCall();
    const permits = (...approvals: ApprovalRecord[]): boolean => isApproved(call, approvals, aPolicy(), NOW);
    assert.equal(permits(anApproval(call)), true);
    assert.equal(permits(), false);
    assert.equal(permits(anApproval(call, { nonce: 'another' })), false);
    assert.equal(permits(anApproval(aCall({ input: { path: 'other.txt' } }))), false);
    assert.equal(permits(anApproval(call), anApproval(call, { name: 'b', decision: 'Revoke' })), false);
    assert.equal(permits(anApproval(call), anApproval(call, { name: 'b', decision: 'Deny' })), false);
    const stored: PendingCall = { ...call, decision: { decision: 'Approve', by: 'alice', reason: '' } };
    assert.equal(isApproved(stored, [], aPolicy(), NOW), false, 'what was stored permits nothing');
  });

  it('an approval by timeout needs a policy that still has it', () => {
    const lenient = aPolicy({ byRisk: [{ risk: 'low', timeout: '10m', onTimeout: 'Approve' }] });
    const call = aCall({}, lenient);
    assert.equal(isApproved(call, [], lenient, later(599_999)), false);
    assert.equal(isApproved(call, [], lenient, later(600_000)), true);
    assert.equal(isApproved(call, [], aPolicy(), later(600_000)), false);
    assert.equal(isApproved(call, [anApproval(call, { decision: 'Deny' })], lenient, later(600_000)), false);
    assert.equal(decisionOf(call, later(600_000))?.decision, 'Approve');
    assert.equal(
      decisionOf(aCall({}, aPolicy({ timeout: '1m', onTimeout: 'Deny' })), later(60_000))?.decision,
      'Expired',
    );
  });

  it('the first decision stays, but a denial withdraws an approval until the call has used it', () => {
    const call = aCall();
    const [approved, denied] = (['Approve', 'Deny'] as const).map((decision) => ({
      decision,
      by: 'alice',
      reason: '',
    }));
    assert.ok(approved !== undefined && denied !== undefined);
    const byPolicy = { decision: 'Approve', by: 'policy', timedOut: true, reason: '' } as const;
    const expired = { decision: 'Expired', by: 'policy', timedOut: true, reason: '' } as const;
    const after = (...decisions: Parameters<typeof withDecision>[1][]): unknown =>
      decisions.reduce(withDecision, call).decision;
    assert.equal(after(approved), approved);
    assert.equal(after(approved, denied), denied);
    assert.equal(after(approved, expired), approved);
    assert.equal(after(byPolicy, approved), byPolicy);
    assert.equal(after(byPolicy, denied), denied);
    assert.equal(after(byPolicy, WITHDRAWN), WITHDRAWN, 'the policy withdraws its own approval');
    assert.equal(after(approved, WITHDRAWN), approved, 'and none of an approver');
    assert.equal(after(byPolicy, WITHDRAWN, byPolicy), WITHDRAWN);
    assert.equal(after(WITHDRAWN, approved), WITHDRAWN);
    assert.equal(after(expired, approved), expired);
    const used = { ...withDecision(call, approved), used: { key: 'k', at: NOW.toISOString() } };
    assert.equal(withDecision(used, denied).decision, approved);
    assert.equal(withDecision({ ...used, decision: byPolicy }, WITHDRAWN).decision, byPolicy);
    const late: PendingCall = { ...call, decision: expired };
    assert.equal(isApproved(late, [anApproval(late)], aPolicy(), NOW), false, 'a call that expired has ended');
  });

  it('a parked message is due at the first timeout that decides, at the latest after seven days', () => {
    const strict = aCall({}, aPolicy({ timeout: '1h', onTimeout: 'Deny' }));
    const patient = aCall({}, aPolicy({ timeout: '1m' }));
    assert.equal(parkedUntil([patient, strict], NOW), later(3_600_000).getTime());
    assert.equal(parkedUntil([patient], NOW), later(7 * 24 * 3_600_000).getTime());
  });

  it('a used approval covers the hosts that the tool declares, for its message and its rule', () => {
    assert.ok(FILE_READ !== undefined);
    const forged = { digest: 'sha256:0', tier: 'Session', hosts: ['*.example.com'] } as const;
    const decision = { effect: 'Escalate', rule: 'private.network', reason: 'it sends', risk: 'high' } as const;
    const asked = { message: 'msg-1', rule: 'private.network', target: 'api.example.com:443' };
    const call = aCall({ descriptor: { ...FILE_READ, forged } as never, decision });
    const used = { ...call, used: { key: 'k', at: NOW.toISOString() } };
    assert.equal(coversHost(used, asked), true);
    assert.equal(coversHost(call, asked), false);
    for (const change of [
      { message: 'msg-2' },
      { rule: 'autonomy' },
      { target: 'example.org:443' },
      { target: 'api.example.com:22' },
    ])
      assert.equal(coversHost(used, { ...asked, ...change }), false, JSON.stringify(change));
    assert.equal(coversHost({ ...aCall({ decision }), used: used.used }, asked), false);
  });
});
