import type { ApprovalRequest } from '../../api/v1alpha1/approvalrequest.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { PendingCall } from '../../nats/pending-calls.ts';
import type { PendingCallSource } from '../ports.ts';
import { type StoredAgent, TYPES } from '../kube/types.ts';
import { CALL_REQUEST_LABEL, dueEscalations, endedCall, isOutdated, requestObject, requestStatus } from './plan.ts';

export interface CallRequestsDeps {
  source: PendingCallSource;
  /** The Agent with this UID; undefined when there is none. */
  agent: (uid: string) => StoredAgent | undefined;
  client: Pick<KubeClient, 'create' | 'patch' | 'list' | 'delete'>;
  events: EventRecorder;
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

/**
 * Shows the calls that wait for an approval as ApprovalRequests. NATS has the truth about what is pending, Approvals have the decisions;
 * the objects are for users. Each round compares and repeats what is missing, so a crash at any step loses nothing.
 */
export class CallRequests {
  readonly #deps: CallRequestsDeps;
  /** The state of each request as this process last wrote it. */
  readonly #written = new Map<string, string>();
  #revision = NO_REVISION;
  #roundAt: number;
  #sweptAt = Number.NEGATIVE_INFINITY;
  #collectedAt: number;

  constructor(deps: CallRequestsDeps) {
    this.#deps = deps;
    this.#roundAt = deps.clock.now().getTime();
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
      const since = this.#roundAt;
      const now = clock.now().getTime();
      for (const uid of await source.agents(signal)) await this.#sync(uid, { since, now, isSweep }, signal);
      this.#revision = revision;
      this.#roundAt = now;
      if (isSweep) this.#sweptAt = clock.monotonic();
    }
    if (clock.monotonic() - this.#collectedAt >= GC_MS) await this.#collect(signal);
    return ROUND_MS;
  }

  async #sync(uid: string, round: Round, signal: AbortSignal): Promise<void> {
    const { source, agent: agentOf } = this.#deps;
    const agent = agentOf(uid);
    if (agent === undefined) return;
    const ended: PendingCall[] = [];
    for (const call of await source.calls(uid, signal)) {
      const hasEnded = round.isSweep && !(await source.hasMessage(call, signal));
      const current = hasEnded ? endedCall(call) : call;
      await this.#show(agent, current, signal);
      for (const to of dueEscalations(current, round.since, round.now)) this.#report(agent, current, to);
      if (hasEnded) ended.push(call);
    }
    if (ended.length > 0) await source.remove(uid, ended, signal);
    for (const { namespace, request } of ended) this.#written.delete(`${namespace}/${request}`);
  }

  /** Creates the request, and writes what was decided. */
  async #show(agent: StoredAgent, call: PendingCall, signal: AbortSignal): Promise<void> {
    const key = `${call.namespace}/${call.request}`;
    const status = requestStatus(call);
    const state = JSON.stringify(status ?? 'pending');
    const written = this.#written.get(key);
    if (written === state) return;
    if (written === undefined && (await this.#create(call, signal))) {
      const { request, tool, risk, summary } = call;
      const message = `the call of ${tool} (risk ${risk}) waits for an approval, ApprovalRequest ${request}: ${summary}`;
      this.#deps.events.record(subjectOf(agent), { type: 'Normal', reason: 'ApprovalRequested', message });
    }
    if (status !== undefined) await this.#writeStatus(call, status, signal);
    this.#written.set(key, state);
  }

  async #create(call: PendingCall, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#deps.client.create(TYPES.approvalRequests, requestObject(call), signal);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status === ALREADY_EXISTS) return false;
      throw error;
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

  #report(agent: StoredAgent, { request, tool }: PendingCall, to: string[]): void {
    const message = `ApprovalRequest ${request} for a call of ${tool} is still pending; asked now: ${to.join(', ')}`;
    this.#deps.events.record(subjectOf(agent), { type: 'Warning', reason: 'ApprovalEscalated', message });
  }

  /** Ends the requests whose calls are not in NATS any more: their approval would permit nothing. The objects are read before the calls. */
  async #expireLost(signal: AbortSignal): Promise<void> {
    const { source, agent: agentOf } = this.#deps;
    const open = (await this.#list(signal)).filter(({ status }) => status?.decision === undefined);
    for (const { metadata, spec } of open) {
      const { namespace = '', name: request } = metadata;
      const calls = await source.calls(spec.agent.uid, signal);
      if (calls.some((call) => call.request === request && call.namespace === namespace)) continue;
      await this.#writeStatus({ namespace, request }, { decision: 'Expired', decidedBy: 'system' }, signal);
      const message = `ApprovalRequest ${request} for a call of ${spec.tool ?? 'a tool'} expired: NATS lost the call with its message; send the message again`;
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

interface Round {
  since: number;
  now: number;
  isSweep: boolean;
}

type StoredRequest = KubeObject & {
  metadata: KubeObject['metadata'] & { creationTimestamp?: string };
} & Pick<ApprovalRequest, 'spec' | 'status'>;

function subjectOf({ apiVersion, kind, metadata: { name, namespace, uid } }: StoredAgent) {
  return { apiVersion, kind, metadata: { name, namespace, uid } };
}
