import type { ApprovalRecord } from '../../approvals/approval-record.ts';
import type { Change } from '../../kube/informer/store.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { Clock } from '../../lib/clock.ts';
import { SerialQueue } from '../../lib/async/serial-queue.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { NatsInbox } from '../../nats/inbox/inbox.ts';
import { type PendingCall, type PendingCalls, withCall } from '../../nats/pending-calls.ts';
import type { AgentQuota } from '../../nats/residents/storage-quota.ts';
import type { Wakeups } from '../../nats/wakeups.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';
import type { ApprovalSummary } from '../cluster/demotions.ts';
import {
  addCall,
  approverDecision,
  coversHost,
  type CallQuestion,
  decisionOf,
  isApproved,
  newPendingCall,
  parkedUntil,
  withDecision,
  WITHDRAWN,
} from './pending-call.ts';

export interface CallApprovalsDeps {
  calls: PendingCalls;
  /** Limits the bytes of requests. */
  quotaOf: (agentUid: string) => Pick<AgentQuota, 'reserve'>;
  /** The Approvals of a namespace about one call. */
  approvals: (namespace: string, agentUid: string, callId: string) => readonly ApprovalSummary[];
  /** The agent with this UID, from the cache. */
  agent: (uid: string) => { policy: TrustPolicy | undefined; podUid: string | undefined } | undefined;
  inbox: Pick<NatsInbox, 'resume' | 'park'>;
  wakeups: Wakeups;
  clock: Clock;
  ids: IdGenerator;
  log: Logger;
  /** Ends the retries of decisions. */
  signal: AbortSignal;
}

const RETRY_MS = 2_000;
/** As long as NATS keeps a pending call. */
const MAX_AGE_MS = 8 * 24 * 3_600_000;

/** Approvals of calls. What is pending is durable in NATS; who approved is read from the Approval itself, at each use. */
export class CallApprovals {
  readonly #deps: CallApprovalsDeps;
  /** One after another: a user may create many Approvals at once. */
  readonly #decisions = new SerialQueue();

  constructor(deps: CallApprovalsDeps) {
    this.#deps = deps;
  }

  /**
   * The request of a call, which is created when it does not exist, with what is decided about it. A decision of the policy is stored before
   * the pod gets it. Throws TEMPER_QUOTA_EXCEEDED and TEMPER_STORAGE_LIMIT_EXCEEDED for a new request.
   */
  async request(question: Omit<CallQuestion, 'nonce' | 'now'>): Promise<PendingCall> {
    const { calls, clock, ids, quotaOf } = this.#deps;
    const now = clock.now();
    const call = newPendingCall({ ...question, nonce: ids.next('nonce').replaceAll(/[^A-Za-z0-9_-]/g, ''), now });
    if (addCall(await calls.of(call.agentUid), call, now).at(-1) === call)
      await quotaOf(call.agentUid).reserve('requests', Buffer.byteLength(JSON.stringify(call)));
    const stored = await calls.update(call.agentUid, (all) => addCall(all, call, now));
    const found = stored.find(({ request }) => request === call.request) ?? call;
    return this.#storeTimeout(this.#decided(found), question.policy, now);
  }

  async #storeTimeout(call: PendingCall, policy: TrustPolicy | undefined, now: Date): Promise<PendingCall> {
    const { agentUid, request, decision } = call;
    if (decision?.timedOut !== true) return call;
    // The use of the approval would find the same.
    const isWithdrawn = decision.decision === 'Approve' && !isApproved(call, this.#records(call), policy, now);
    const current = isWithdrawn ? WITHDRAWN : decision;
    const stored = await this.#deps.calls.update(agentUid, (all) =>
      withCall(all, request, (one) => withDecision(one, current)),
    );
    return this.#decided(stored.find((one) => one.request === request) ?? withDecision(call, current));
  }

  /**
   * Records the use of an approval before its call starts. Throws TEMPER_APPROVAL_DENIED when no Approval permits the call now, and
   * TEMPER_APPROVAL_USED when another attempt at the call used it.
   */
  async use(claims: DeliveryTokenClaims, request: string, key: string): Promise<PendingCall> {
    const { calls, clock, agent } = this.#deps;
    const policy = agent(claims.agentUid)?.policy;
    const now = clock.now();
    const stored = await calls.update(claims.agentUid, (all) => {
      const call = ownCall(all, claims, request);
      if (!isApproved(call, this.#records(call), policy, now)) throw notApproved(call);
      if (call.used?.key === key) return all;
      if (call.used !== undefined) throw alreadyUsed(call);
      // Who approved it, in the write of the use: the decision itself may not be stored yet.
      return withCall(all, request, (one) => ({ ...this.#decided(one), used: { key, at: now.toISOString() } }));
    });
    return ownCall(stored, claims, request);
  }

  /**
   * Whether a used approval permits this brokered call of the message, once: a repeated request has the same key. The gateway performs
   * such a call itself, so it does not rely on what the pod says about its approval.
   */
  async permits(
    claims: DeliveryTokenClaims,
    call: { tool: string; digests: readonly Digest[]; key: string },
  ): Promise<boolean> {
    const { calls, clock, agent } = this.#deps;
    const policy = agent(claims.agentUid)?.policy;
    const now = clock.now();
    let isPermitted = false;
    await calls.update(claims.agentUid, (all) => {
      const found = all.find(
        (one) =>
          one.message === claims.message &&
          one.tool === call.tool &&
          one.used !== undefined &&
          call.digests.includes(one.argumentsDigest as Digest) &&
          (one.brokered === undefined || one.brokered === call.key) &&
          isApproved(one, this.#records(one), policy, now),
      );
      isPermitted = found !== undefined;
      if (found === undefined || found.brokered === call.key) return all;
      return withCall(all, found.request, (one) => ({ ...one, brokered: call.key }));
    });
    return isPermitted;
  }

  /**
   * Whether the used approval of a call of this message covers a connection to the host: an approver permitted it by this rule, and the
   * tool declares the host.
   */
  async permitsHost(claims: DeliveryTokenClaims, { rule, target }: { rule: string; target: string }): Promise<boolean> {
    const { calls, clock, agent } = this.#deps;
    const policy = agent(claims.agentUid)?.policy;
    const now = clock.now();
    return (await calls.of(claims.agentUid)).some(
      (call) =>
        coversHost(call, { message: claims.message, rule, target }) &&
        isApproved(call, this.#records(call), policy, now),
    );
  }

  /** When the message of these requests is delivered again without a decision. Throws TEMPER_NOT_FOUND for another request. */
  async parkedUntil(claims: DeliveryTokenClaims, requests: readonly string[]): Promise<number> {
    const all = await this.#deps.calls.of(claims.agentUid);
    return parkedUntil(
      requests.map((request) => ownCall(all, claims, request)),
      this.#deps.clock.now(),
    );
  }

  /** Resumes a message that was just parked when one of its requests was decided meanwhile. */
  async afterPark(claims: DeliveryTokenClaims, requests: readonly string[]): Promise<void> {
    const all = await this.#deps.calls.of(claims.agentUid);
    const waiting = all.filter(({ request }) => requests.includes(request));
    if (waiting.some((call) => this.#decided(call).decision !== undefined)) await this.#resume(claims);
  }

  /** The requests that a session waits for. */
  async waitingIn(agentUid: string, session: string): Promise<string[]> {
    const now = this.#deps.clock.now();
    const all = await this.#deps.calls.of(agentUid);
    return all.filter((one) => one.session === session && decisionOf(one, now) === undefined).map((one) => one.request);
  }

  /** Records the decision of an Approval and resumes the message that waits for it. Never throws; a failure is retried. */
  approvalChanged(change: Change<ApprovalSummary>): void {
    const { createdAt, subject } = change.object.record;
    const { call } = subject;
    if (change.type === 'deleted' || call === undefined) return;
    const age = this.#deps.clock.now().getTime() - Date.parse(createdAt);
    // The first list of a new process has all of them; NATS keeps no call as old as that.
    if (age > MAX_AGE_MS) return;
    void this.#decisions.run(() => this.#decideUntilStored(call.agentUid, call.callId));
  }

  async #decideUntilStored(agentUid: string, callId: string): Promise<void> {
    const { clock, log, signal } = this.#deps;
    while (!signal.aborted) {
      try {
        return await this.#decide(agentUid, callId);
      } catch (error) {
        log.warn({ error, agentUid }, 'the decision about a call could not be stored');
        // A subject that a user chose may name no agent at all.
        if (!isTemperError(error) || error.retry === 'never') return;
        await clock.sleep(RETRY_MS, signal).catch(() => undefined);
      }
    }
  }

  async #decide(agentUid: string, callId: string): Promise<void> {
    const stored = await this.#deps.calls.update(agentUid, (all) =>
      all.reduce<readonly PendingCall[]>((calls, call) => {
        const decision = call.callId === callId ? approverDecision(call, this.#records(call)) : undefined;
        if (decision === undefined) return calls;
        return withCall(calls, call.request, (one) => withDecision(one, decision));
      }, all),
    );
    for (const call of stored) {
      if (call.callId === callId && call.decision !== undefined) await this.#resume(call);
    }
  }

  async #resume({ agentUid, message }: Pick<PendingCall, 'agentUid' | 'message'>): Promise<void> {
    const { inbox, wakeups, agent } = this.#deps;
    const isResumed = await inbox.resume(agentUid, message);
    if (isResumed && agent(agentUid)?.podUid === undefined) await wakeups.publish(agentUid);
  }

  /** The call with what is decided about it at this moment. */
  #decided(call: PendingCall): PendingCall {
    const decision = approverDecision(call, this.#records(call)) ?? decisionOf(call, this.#deps.clock.now());
    return decision === undefined ? call : withDecision(call, decision);
  }

  #records({ namespace, agentUid, callId }: PendingCall): ApprovalRecord[] {
    return this.#deps.approvals(namespace, agentUid, callId).map(({ record }) => record);
  }
}

/** A pod names requests of the message that it works on, and no others. */
function ownCall(calls: readonly PendingCall[], { message }: DeliveryTokenClaims, request: string): PendingCall {
  const found = calls.find((call) => call.request === request && call.message === message);
  if (found !== undefined) return found;
  throw new TemperError('TEMPER_NOT_FOUND', `the message has no request "${request}" for an approval`);
}

function notApproved({ request, tool }: PendingCall): TemperError {
  return new TemperError('TEMPER_APPROVAL_DENIED', `no Approval of "${request}" permits the call of "${tool}" now`);
}

function alreadyUsed({ request }: PendingCall): TemperError {
  return new TemperError(
    'TEMPER_APPROVAL_USED',
    `the approval of ${request} was used by a call whose pod ended before its result was stored; check whether the call had its effect, and make it again if not`,
  );
}
