import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { ApprovalRecord } from '../../approvals/approval-record.ts';
import { builtInDescriptors } from '../../engine/built-in.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import type { PendingCall } from '../../nats/pending-calls.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { CallApprovals, type CallApprovalsDeps } from './call-approvals.ts';
import { subjectOf } from './pending-call.ts';
import { aPolicy, CLAIMS } from './pending-call.testing.ts';

const MINUTE_MS = 60_000;
const APPROVING = aPolicy({ byRisk: [{ risk: 'low', timeout: '10m', onTimeout: 'Approve' }] });
const WAITING = aPolicy({});
const DENYING = aPolicy({ timeout: '10m', onTimeout: 'Deny' });

/** A gateway with one agent, and NATS in memory. */
function aGateway() {
  const clock = new FakeClock();
  const records: ApprovalRecord[] = [];
  let stored: readonly PendingCall[] = [];
  let policy = APPROVING;
  let ids = 0;
  const unused = (): never => assert.fail('nothing is resumed or parked');
  const calls: CallApprovalsDeps['calls'] = {
    of: async () => stored,
    update: async (_agentUid, change) => {
      stored = change(stored);
      return stored;
    },
    revision: async () => 1,
    agents: async () => ['uid-1'],
  };
  const reserved: number[] = [];
  let isFull = false;
  const reserve = async (store: string, bytes: number): Promise<void> => {
    assert.equal(store, 'requests');
    if (isFull) throw new TemperError('TEMPER_STORAGE_LIMIT_EXCEEDED', 'full');
    reserved.push(bytes);
  };
  const approvals = new CallApprovals({
    calls,
    quotaOf: () => ({ reserve }),
    approvals: () => records.map((record) => ({ metadata: {}, record })) as never,
    agent: () => ({ policy, podUid: 'u-pod' }),
    inbox: { resume: unused, park: unused },
    wakeups: { publish: unused } as never,
    clock,
    ids: { next: () => `nonce-0123456789abcdef-${(ids += 1)}` },
    log: createLogger({ level: 'error', destination: { write: () => undefined }, secrets: createSecretRedactor() }),
    signal: NEVER_ABORTED,
  });
  const [descriptor] = builtInDescriptors().filter(({ name }) => name === 'file_read');
  assert.ok(descriptor !== undefined);
  return {
    clock,
    reserved,
    fill(): void {
      isFull = true;
    },
    get stored() {
      return stored[0]?.decision;
    },
    setPolicy(next: TrustPolicy): void {
      policy = next;
    },
    approve(): void {
      const [call] = stored;
      assert.ok(call !== undefined);
      const createdAt = clock.now().toISOString();
      records.push({
        name: 'yes',
        createdAt,
        decision: 'Approve',
        nonce: call.nonce,
        subject: subjectOf(call),
        by: 'alice',
      });
    },
    /** The answer to the pod about its call. */
    ask: () =>
      approvals.request({
        claims: CLAIMS,
        policy,
        descriptor,
        input: { path: 'note.txt' },
        callKey: 'k-1',
        decision: { effect: 'Escalate', rule: 'autonomy', reason: 'an approver decides', risk: 'low' },
        withholds: false,
      }),
    use: (request: string, key = 'use-1') => approvals.use(CLAIMS, request, key),
  };
}

describe('the bytes of a request for an approval', () => {
  it('a request is counted once, and its answer comes also when nothing more may be stored', async () => {
    const gateway = aGateway();
    const { request } = await gateway.ask();
    gateway.fill();
    assert.equal((await gateway.ask()).request, request);
    assert.equal(gateway.reserved.length, 1);
    assert.ok((gateway.reserved[0] ?? 0) > 500);
  });

  it('a request beyond the limit is refused and not stored', async () => {
    const gateway = aGateway();
    gateway.fill();
    await assert.rejects(gateway.ask(), (error) => isTemperError(error, 'TEMPER_STORAGE_LIMIT_EXCEEDED'));
    await assert.rejects(gateway.use('call-file-read-0123456789abcdef'));
  });
});

const isDenied = (error: unknown): boolean => isTemperError(error, 'TEMPER_APPROVAL_DENIED');

describe('the approval of a call by the timeout of its policy', () => {
  it('the answer to the pod is what the use of the approval says, under each policy of that moment', async () => {
    for (const [policy, decision] of [
      [APPROVING, 'Approve'],
      [WAITING, 'Expired'],
      [DENYING, 'Expired'],
    ] as const) {
      const gateway = aGateway();
      const { request } = await gateway.ask();
      gateway.setPolicy(policy);
      await gateway.clock.advance(10 * MINUTE_MS);
      const answer = await gateway.ask();
      assert.deepEqual([answer.request, answer.decision?.decision, answer.decision?.by], [request, decision, 'policy']);
      assert.deepEqual(gateway.stored, answer.decision, 'it is stored before the pod gets it');
      if (decision === 'Approve') await gateway.use(request);
      else await assert.rejects(gateway.use(request), isDenied);
    }
  });

  it('the answer to the pod is final: neither the policy that is back nor a later Approval permits the call', async () => {
    const gateway = aGateway();
    const { request } = await gateway.ask();
    gateway.setPolicy(WAITING);
    await gateway.clock.advance(10 * MINUTE_MS);
    await gateway.ask();
    gateway.setPolicy(APPROVING);
    gateway.approve();
    assert.equal((await gateway.ask()).decision?.decision, 'Expired');
    await assert.rejects(gateway.use(request), isDenied);
  });

  it('one that the pod got and did not use ends with the policy, and the decision of an approver counts', async () => {
    const gateway = aGateway();
    const { request } = await gateway.ask();
    await gateway.clock.advance(10 * MINUTE_MS);
    assert.equal((await gateway.ask()).decision?.decision, 'Approve');
    gateway.setPolicy(WAITING);
    assert.equal((await gateway.ask()).decision?.decision, 'Expired');
    await assert.rejects(gateway.use(request), isDenied);

    const approved = aGateway();
    await approved.ask();
    approved.setPolicy(WAITING);
    await approved.clock.advance(10 * MINUTE_MS);
    approved.approve();
    const answer = await approved.ask();
    assert.deepEqual([answer.decision?.decision, answer.decision?.by], ['Approve', 'alice']);
    await approved.use(answer.request);
  });
});
