import type { ApprovalRequest } from '../../api/v1alpha1/approvalrequest.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { CallDecision, PendingCall } from '../../nats/pending-calls.ts';
import { printable } from '../../lib/printable.ts';
import type { OperatorAudit, PendingCallSource } from '../ports.ts';
import { type StoredAgent, TYPES } from '../kube/types.ts';
import { actorOf, CALL_REQUEST_LABEL, endedCall, isOutdated, requestObject, requestStatus } from './plan.ts';

export interface CallRequestsDeps {
  source: PendingCallSource;
  /** The Agent with this UID; undefined when there is none. */
  agent: (uid: string) => StoredAgent | undefined;
  client: Pick<KubeClient, 'create' | 'get' | 'patch' | 'list' | 'delete'>;
  events: Pick<EventRecorder, 'record'>;
  audit: OperatorAudit | undefined;
  clock: Clock;
  log: Logger;
}

/** A pod that waits is delayed by it; an unchanged revision costs one small request. */
const ROUND_MS = 500;
const SWEEP_MS = 30_000;
const GC_MS = 10 * 60_000;
const NO_REVISION = -1;
const ALREADY_EXISTS = 409;
const NOT_FOUND = 404;
const LOST = 'NATS lost the call with its message';

/**
 * Shows the calls that wait for an approval as ApprovalRequests. NATS has the truth about what is pending, Approvals have the decisions;
 * the objects are for users. Each round compares and repeats what is missing, so a crash at any step loses nothing. The controller of the
 * requests announces them.
 */
export class CallRequests {
  readonly #deps: CallRequestsDeps;
  /** The state of each request as this process last wrote it. */
  readonly #written = new Map<string, string>();
  #revision = NO_REVISION;
  #sweptAt = Number.NEGATIVE_INFINITY;
  #collectedAt: number;

  constructor(deps: CallRequestsDeps) {
    this.#deps = deps;
    this.#collectedAt = deps.clock.monotonic();
  }

  /** One round; returns the milliseconds until the next one. */
  async round(signal: AbortSignal): Promise<number> {
    const { source, clock } = this.#deps;
    const revision = await source.revision(signal);
    // An earlier leader may have seen another store.
    const mayHaveLost = revision < this.#revision || this.#revision === NO_REVISION;
    if (mayHaveLost) await this.#expireLost(signal);
    const isSweep = clock.monotonic() - this.#sweptAt >= SWEEP_MS;
    if (revision !== this.#revision || isSweep) {
      const failures: unknown[] = [];
      for (const uid of await source.agents(signal)) {
        // What cannot be written of one agent keeps no request of another one from its users.
        await this.#sync(uid, isSweep, signal).catch((error: unknown) => failures.push(error));
        signal.throwIfAborted();
      }
      if (failures.length > 0) throw failures[0];
      this.#revision = revision;
      if (isSweep) this.#sweptAt = clock.monotonic();
    }
    if (clock.monotonic() - this.#collectedAt >= GC_MS) await this.#collect(signal);
    return ROUND_MS;
  }

  async #sync(uid: string, isSweep: boolean, signal: AbortSignal): Promise<void> {
    const { source, agent } = this.#deps;
    if (agent(uid) === undefined) return;
    const ended: PendingCall[] = [];
    for (const call of await source.calls(uid, signal)) {
      const hasEnded = isSweep && !(await source.hasMessage(call, signal));
      const current = hasEnded ? endedCall(call) : call;
      await this.#show(current, signal);
      if (hasEnded) ended.push(call);
    }
    if (ended.length > 0) await source.remove(uid, ended, signal);
    for (const { namespace, request } of ended) this.#written.delete(`${namespace}/${request}`);
  }

  /** Creates the request, and writes what was decided. */
  async #show(call: PendingCall, signal: AbortSignal): Promise<void> {
    const key = `${call.namespace}/${call.request}`;
    const { decision, used } = call;
    const state = JSON.stringify([decision, used]);
    const written = this.#written.get(key);
    if (written === state) return;
    if (written === undefined) await this.#create(call, signal);
    if (decision !== undefined) {
      const shown = await this.#read(call, signal);
      // An earlier leader has recorded the decision that the object shows.
      if (shown?.status?.decision !== decision.decision) await this.#recordDecision(call, decision);
      await this.#writeStatus(call, requestStatus({ ...call, decision }, shown, this.#deps.clock.now()), signal);
    }
    this.#written.set(key, state);
  }

  #read({ namespace, request }: PendingCall, signal: AbortSignal): Promise<StoredRequest | undefined> {
    return this.#deps.client.get<StoredRequest>(TYPES.approvalRequests, { namespace, name: request }, signal);
  }

  /** Before the object shows it, so that no decision is without its record. */
  async #recordDecision(
    call: Pick<PendingCall, 'namespace' | 'request' | 'tool' | 'argumentsDigest' | 'callId' | 'agent' | 'agentUid'>,
    decided: CallDecision,
  ): Promise<void> {
    const { namespace, request, tool, argumentsDigest, callId, agent, agentUid } = call;
    const { decision } = decided;
    const reason = printable(decided.reason, 300);
    await this.#deps.audit?.append(
      namespace,
      {
        action: 'approval.decided',
        actor: actorOf(decided),
        evidence: 'observed',
        subject: request,
        facts: { tool, argumentsDigest, callId, agent, decision, reason },
      },
      `approval.decided/${agentUid}/${request}/${decision}`,
    );
  }

  async #create(call: PendingCall, signal: AbortSignal): Promise<void> {
    try {
      await this.#deps.client.create(TYPES.approvalRequests, requestObject(call), signal);
    } catch (error) {
      if (!(error instanceof ApiError && error.status === ALREADY_EXISTS)) throw error;
    }
  }

  async #writeStatus(
    { namespace, request }: Pick<PendingCall, 'namespace' | 'request'>,
    status: object,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const ref = { namespace, name: request };
      await this.#deps.client.patch(TYPES.approvalRequests, ref, { status }, signal, { subresource: 'status' });
    } catch (error) {
      // Someone deleted the request; the decision does not depend on it.
      if (!(error instanceof ApiError && error.status === NOT_FOUND)) throw error;
    }
  }

  /** Ends the requests whose calls are not in NATS any more: their approval would permit nothing. The objects are read before the calls. */
  async #expireLost(signal: AbortSignal): Promise<void> {
    const { source, agent: agentOf } = this.#deps;
    const open = (await this.#list(signal)).filter(({ status }) => status?.decision === undefined);
    for (const shown of open) {
      const { metadata, spec } = shown;
      const { namespace = '', name: request } = metadata;
      const calls = await source.calls(spec.agent.uid, signal);
      if (calls.some((call) => call.request === request && call.namespace === namespace)) continue;
      const { call } = spec.subject;
      const lost = { decision: 'Expired', by: 'system', reason: LOST } as const;
      if (call !== undefined) await this.#recordDecision({ ...call, namespace, request }, lost);
      const status = requestStatus({ decision: lost }, shown, this.#deps.clock.now());
      await this.#writeStatus({ namespace, request }, status, signal);
      const message = `ApprovalRequest ${request} for a call of ${spec.tool ?? 'a tool'} expired: ${LOST}; send the message again`;
      const agent = agentOf(spec.agent.uid);
      if (agent !== undefined)
        this.#deps.events.record(subjectOf(agent), { type: 'Warning', reason: 'ApprovalExpired', message });
    }
  }

  #list(signal: AbortSignal): Promise<StoredRequest[]> {
    const [[label, value] = ['', '']] = Object.entries(CALL_REQUEST_LABEL);
    const selector = { labelSelector: `${label}=${value}` };
    return this.#deps.client.list<StoredRequest>(TYPES.approvalRequests, selector, signal);
  }

  async #collect(signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#deps;
    const now = clock.now().getTime();
    for (const object of (await this.#list(signal)).filter((one) => isOutdated(one, now))) {
      const { namespace = '', name, uid } = object.metadata;
      await client.delete(TYPES.approvalRequests, { namespace, name }, uid === undefined ? {} : { uid }, signal);
    }
    this.#collectedAt = clock.monotonic();
  }
}

type StoredRequest = KubeObject & {
  metadata: KubeObject['metadata'] & { creationTimestamp?: string };
} & Pick<ApprovalRequest, 'spec' | 'status'>;

function subjectOf({ apiVersion, kind, metadata: { name, namespace, uid } }: StoredAgent) {
  return { apiVersion, kind, metadata: { name, namespace, uid } };
}
