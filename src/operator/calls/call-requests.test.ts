import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { ApprovalRequestStatus } from '../../api/v1alpha1/approvalrequest.ts';
import { createManifestLoader } from '../../api/manifests.ts';
import type { AuditRecord } from '../../audit/port.ts';
import { ApiError } from '../../kube/client/kube-client.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { type Json, textAt } from '../../lib/json.ts';
import type { PendingCall } from '../../nats/pending-calls.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import type { StoredAgent } from '../kube/types.ts';
import { CallRequests, type CallRequestsDeps } from './call-requests.ts';

const CALL: PendingCall = {
  request: 'call-file-read-0123456789abcdef',
  nonce: 'nonce-0123456789abcdef',
  agent: 'analyst',
  agentUid: 'uid-1',
  namespace: 'team-a',
  tool: 'file_read',
  argumentsDigest: `sha256:${'0'.repeat(64)}`,
  callId: 's-1/0/1/call-0',
  session: 's-1',
  message: 'msg-1',
  sequence: 7,
  risk: 'low',
  rule: 'rules.requireApproval',
  summary: 'needs an approval',
  arguments: '{"path":"note.txt"}',
  createdAt: '1970-01-01T00:00:00.000Z',
};

const DAY_MS = 24 * 3_600_000;
const GC_MS = 10 * 60_000;

/** A cluster and NATS in memory; `fails` is asked before each write to the API server. */
class Setup {
  readonly clock = new FakeClock();
  readonly objects = new Map<string, { metadata: object; status?: ApprovalRequestStatus }>();
  readonly events: string[] = [];
  /** As NATS stores them: one per key. */
  readonly audited = new Map<string, AuditRecord>();
  calls: PendingCall[] = [CALL];
  hasMessage = true;
  revision = 1;
  fails: (write: string) => boolean = () => false;

  /** The task of a leader that has just started. */
  newLeader(): CallRequests {
    const agent = { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', metadata: { name: 'analyst', uid: 'uid-1' } };
    return new CallRequests({
      source: {
        revision: async () => this.revision,
        agents: async () => ['uid-1', 'uid-gone'],
        calls: async () => this.calls,
        hasMessage: async () => this.hasMessage,
        remove: async (_uid, ended) => {
          this.calls = this.calls.filter((call) => !ended.includes(call));
        },
      },
      agent: (uid) => (uid === 'uid-1' ? (agent as unknown as StoredAgent) : undefined),
      client: this.#client(),
      events: { record: (_subject, { reason }) => void this.events.push(reason) },
      audit: { append: async (_namespace, record, once) => void this.audited.set(once, record) },
      clock: this.clock,
      log: createLogger({ level: 'error', destination: { write: () => undefined }, secrets: createSecretRedactor() }),
    });
  }

  /** Lets the time pass, and at least as long as it takes until the leader deletes objects again. */
  async collect(leader: CallRequests, milliseconds: number): Promise<void> {
    await this.clock.advance(milliseconds + GC_MS);
    await leader.round(NEVER_ABORTED);
  }

  change(change: Partial<PendingCall>): void {
    this.calls = this.calls.map((call) => ({ ...call, ...change }));
    this.revision += 1;
  }

  #client(): CallRequestsDeps['client'] {
    const write = (kind: string): void => {
      if (this.fails(kind)) throw new ApiError(500, 'InternalError', 'the API server stopped');
    };
    return {
      create: async (_type, object) => {
        write('create');
        const { name } = (object as { metadata: { name: string } }).metadata;
        if (this.objects.has(name)) throw new ApiError(409, 'AlreadyExists', 'it exists');
        const { metadata } = object as { metadata: object };
        const creationTimestamp = this.clock.now().toISOString();
        const stored = { ...object, metadata: { ...metadata, generation: 1, creationTimestamp } };
        this.objects.set(name, stored);
        return stored as never;
      },
      patch: async (_type, { name }, patch) => {
        write('patch');
        const found = this.objects.get(name);
        if (found === undefined) throw new ApiError(404, 'NotFound', 'there is none');
        Object.assign(found, patch);
        return found as never;
      },
      get: async (_type, { name }) => this.objects.get(name) as never,
      list: async () => [...this.objects.values()] as never,
      delete: async (_type, { name }) => this.objects.delete(name),
    };
  }

  get decisions(): string[] {
    return [...this.audited.values()].map(({ actor, facts }) => `${actor} ${textAt(facts, ['decision'])}`);
  }

  /** Without the conditions. */
  get status(): object | undefined {
    const { status } = this.#stored;
    if (status === undefined) return undefined;
    const { conditions: _conditions, observedGeneration: _generation, ...shown } = status;
    return shown;
  }

  /** As `type=status reason, message, time`. */
  get conditions(): string[] {
    const conditions = this.#stored.status?.conditions ?? [];
    return conditions.map(
      ({ type, status, reason, message, lastTransitionTime }) =>
        `${type}=${status} ${reason}, ${message}, ${lastTransitionTime}`,
    );
  }

  get #stored(): { status?: ApprovalRequestStatus } {
    return this.objects.get(CALL.request) ?? {};
  }
}

const DECISION = { decision: 'Approve', by: 'alice', reason: 'fine' } as const;

describe('the requests of calls', () => {
  it('a call becomes one valid ApprovalRequest, and its status follows decision and use', async () => {
    const setup = new Setup();
    const leader = setup.newLeader();
    await leader.round(NEVER_ABORTED);
    await leader.round(NEVER_ABORTED);
    assert.deepEqual(createManifestLoader().validate(setup.objects.get(CALL.request) as unknown as Json), []);
    assert.equal(setup.status, undefined);
    setup.change({ decision: DECISION });
    await leader.round(NEVER_ABORTED);
    assert.deepEqual(setup.status, { decision: 'Approve', decidedBy: 'alice' });
    setup.change({ used: { key: 'k', at: '1970-01-01T00:00:05.000Z' } });
    await setup.newLeader().round(NEVER_ABORTED);
    assert.deepEqual(setup.status, { decision: 'Approve', decidedBy: 'alice', usedAt: '1970-01-01T00:00:05.000Z' });
    assert.deepEqual(setup.decisions, ['user/alice Approve']);
  });

  it('a leader that stops after any write is followed by one that completes the round', async () => {
    for (const failing of ['create', 'patch']) {
      const setup = new Setup();
      setup.change({ decision: DECISION });
      setup.fails = (kind) => kind === failing;
      await assert.rejects(setup.newLeader().round(NEVER_ABORTED));
      setup.fails = () => false;
      await setup.newLeader().round(NEVER_ABORTED);
      assert.deepEqual(setup.status, { decision: 'Approve', decidedBy: 'alice' }, failing);
      assert.deepEqual(setup.decisions, ['user/alice Approve'], failing);
    }
  });

  it('each decision has one record with who decided, whichever leader shows it: an approver, the policy or the system', async () => {
    const timedOut = { by: 'policy', timedOut: true, reason: 'no approver decided in time' } as const;
    for (const [decision, expected] of [
      [DECISION, 'user/alice Approve'],
      [{ ...DECISION, decision: 'Deny' }, 'user/alice Deny'],
      [{ ...timedOut, decision: 'Approve' }, 'policy Approve'],
      [{ ...timedOut, decision: 'Expired' }, 'policy Expired'],
    ] as const) {
      const setup = new Setup();
      setup.change({ decision });
      await setup.newLeader().round(NEVER_ABORTED);
      assert.deepEqual(setup.decisions, [expected]);
      setup.audited.clear();
      setup.change({ used: { key: 'k', at: '1970-01-01T00:00:05.000Z' } });
      await setup.newLeader().round(NEVER_ABORTED);
      assert.deepEqual(setup.decisions, [], 'the object shows the decision that an earlier leader recorded');
    }
    const ended = new Setup();
    ended.hasMessage = false;
    await ended.newLeader().round(NEVER_ABORTED);
    assert.deepEqual(ended.decisions, ['system Expired']);
  });

  it('a decision is recorded before its object shows it', async () => {
    const setup = new Setup();
    setup.change({ decision: DECISION });
    setup.fails = (kind) => kind === 'patch';
    await assert.rejects(setup.newLeader().round(NEVER_ABORTED));
    assert.deepEqual([setup.decisions, setup.status], [['user/alice Approve'], undefined]);
  });

  it('a request whose call NATS lost expires with an Event, also for a leader that starts after the loss', async () => {
    for (const isNewLeader of [false, true]) {
      const setup = new Setup();
      const first = setup.newLeader();
      await first.round(NEVER_ABORTED);
      setup.calls = [];
      setup.revision = 0;
      await (isNewLeader ? setup.newLeader() : first).round(NEVER_ABORTED);
      assert.deepEqual(setup.status, { decision: 'Expired', decidedBy: 'system' });
      assert.deepEqual(setup.events, ['ApprovalExpired']);
      assert.deepEqual(setup.decisions, ['system Expired']);
      await setup.newLeader().round(NEVER_ABORTED);
      assert.equal(setup.events.length, 1);
    }
  });

  it('a request whose message has ended expires and leaves NATS, and is deleted a day later', async () => {
    const setup = new Setup();
    const leader = setup.newLeader();
    await leader.round(NEVER_ABORTED);
    setup.hasMessage = false;
    await setup.clock.advance(30_000);
    await leader.round(NEVER_ABORTED);
    assert.deepEqual(setup.status, { decision: 'Expired', decidedBy: 'system' });
    assert.deepEqual(setup.conditions, [
      'Decided=True Expired, system: the message of the call has ended, 1970-01-01T00:00:30Z',
    ]);
    assert.deepEqual(setup.calls, []);
    await setup.collect(leader, DAY_MS - GC_MS);
    assert.equal(setup.objects.size, 1);
    await setup.collect(leader, 0);
    assert.equal(setup.objects.size, 0);
  });

  it('a request that is decided days after it was made stays for a day after the decision, and for one after the use', async () => {
    const setup = new Setup();
    const leader = setup.newLeader();
    await leader.round(NEVER_ABORTED);
    await setup.collect(leader, 3 * DAY_MS);
    assert.equal(setup.objects.size, 1, 'one that is pending stays');
    setup.change({ decision: DECISION });
    await leader.round(NEVER_ABORTED);
    assert.deepEqual(setup.conditions, ['Decided=True Approved, user/alice: fine, 1970-01-04T00:10:00Z']);
    await setup.collect(leader, DAY_MS - GC_MS);
    setup.change({ used: { key: 'k', at: setup.clock.now().toISOString() } });
    await setup.newLeader().round(NEVER_ABORTED);
    assert.deepEqual(
      setup.conditions,
      ['Decided=True Approved, user/alice: fine, 1970-01-04T00:10:00Z'],
      'the next leader keeps the time',
    );
    await setup.collect(leader, DAY_MS - GC_MS);
    assert.equal(setup.objects.size, 1);
    await setup.collect(leader, 0);
    assert.equal(setup.objects.size, 0);
  });

  it('a denial that withdraws an approval is another decision, with a day of its own', async () => {
    const setup = new Setup();
    const leader = setup.newLeader();
    setup.change({ decision: DECISION });
    await leader.round(NEVER_ABORTED);
    await setup.clock.advance(DAY_MS / 2);
    setup.change({ decision: { ...DECISION, decision: 'Deny' } });
    await leader.round(NEVER_ABORTED);
    assert.deepEqual(setup.conditions, ['Decided=True Denied, user/alice: fine, 1970-01-01T12:00:00Z']);
    await setup.collect(leader, DAY_MS - GC_MS);
    assert.equal(setup.objects.size, 1);
    await setup.collect(leader, 0);
    assert.equal(setup.objects.size, 0);
  });

  it('one that an earlier version of the operator decided, without a condition, is deleted a day after it was made', async () => {
    const setup = new Setup();
    setup.calls = [];
    const metadata = { name: CALL.request, namespace: 'team-a', creationTimestamp: '1970-01-01T00:00:00Z' };
    setup.objects.set(CALL.request, { metadata, status: { decision: 'Deny', decidedBy: 'alice' } });
    const leader = setup.newLeader();
    await setup.collect(leader, DAY_MS - GC_MS - 1);
    assert.equal(setup.objects.size, 1);
    await setup.collect(leader, 0);
    assert.equal(setup.objects.size, 0);
  });
});
