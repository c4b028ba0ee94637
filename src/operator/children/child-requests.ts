import { LABELS, POD_PATHS } from '../../api/cluster.ts';
import { messageOf } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import type { ChildOrder, ChildRequestRecord } from '../../nats/children/child-requests.ts';
import { admitChild, type ChildRequest } from '../../policy/children/admission.ts';
import { createDecider } from '../../policy/decider.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Cache } from '../kube/cache.ts';
import { type StoredAgent, type StoredPolicy, TYPES } from '../kube/types.ts';
import { childObject, generationOf, isOfRequest, parentUidOf, type StoredChild } from './child-object.ts';

/** Requests about child agents, as NATS stores them. Methods throw TEMPER_BUS_* while NATS is unreachable. */
export interface ChildRequestSource {
  /** Emits at the start, when there may be a new request, and regularly: a notification may be lost. Does not throw. Ends with the signal. */
  arrivals(signal: AbortSignal): AsyncIterable<void>;
  /** Changes with every write. */
  revision(): Promise<number>;
  /** Requests that wait, stored after this sequence, and the sequence to continue with. */
  open(after: number): Promise<{ requests: ChildRequestRecord[]; sequence: number }>;
  /** Records the end of a request, once. */
  end(request: ChildRequestRecord, end: ChildRequestEnd): Promise<void>;
}

type ChildRequestEnd = { state: 'Done' } | { state: 'Refused'; reason: string };

export interface ChildRequestsDeps {
  source: ChildRequestSource;
  policies: Pick<Cache<StoredPolicy>, 'get'>;
  client: Pick<KubeClient, 'get' | 'list' | 'create' | 'delete'>;
  events: EventRecorder;
  log: Logger;
}

const ALREADY_EXISTS = 409;
/** The request can never succeed: refused by an admission policy, invalid, or beyond a quota of the namespace. */
const FINAL: ReadonlySet<number> = new Set([400, 403, 413, 422]);

/**
 * Creates and deletes child agents. Each request names its object, so a repeated one finds what an earlier attempt created. Every fact of
 * the decision is read from the API server, and not from a cache that may lag behind the request before.
 */
export class ChildRequests {
  readonly #deps: ChildRequestsDeps;
  #handled = 0;
  #revision = -1;

  constructor(deps: ChildRequestsDeps) {
    this.#deps = deps;
  }

  /** Handles requests until the signal is aborted. A request that fails is tried again by the next call. */
  async run(signal: AbortSignal): Promise<void> {
    for await (const _ of this.#deps.source.arrivals(signal)) await this.round(signal);
  }

  /** Handles the requests that wait now. An unchanged revision costs one small request. */
  async round(signal: AbortSignal): Promise<void> {
    const { source } = this.#deps;
    const revision = await source.revision();
    if (revision === this.#revision) return;
    // A lost store starts again.
    if (revision < this.#handled) this.#handled = 0;
    const { requests, sequence } = await source.open(this.#handled);
    const errors: unknown[] = [];
    for (const request of requests) await this.#handle(request, signal).catch((error: unknown) => errors.push(error));
    if (errors.length > 0) throw errors[0];
    this.#handled = sequence;
    this.#revision = revision;
  }

  async #handle(request: ChildRequestRecord, signal: AbortSignal): Promise<void> {
    const { order, name, parent } = request;
    if (order === undefined) return;
    const end =
      order.kind === 'Kill' ? await this.#kill(request, order.uid, signal) : await this.#spawn(request, order, signal);
    await this.#deps.source.end(request, end);
    const fields = { namespace: parent.namespace, agent: parent.name, child: name, kind: order.kind, ...end };
    this.#deps.log.info(fields, 'a request about a child agent has ended');
  }

  async #spawn(
    request: ChildRequestRecord,
    order: Extract<ChildOrder, { kind: 'Spawn' }>,
    signal: AbortSignal,
  ): Promise<ChildRequestEnd> {
    const { name, parent: asked } = request;
    const existing = await this.#agent(asked.namespace, name, signal);
    if (existing !== undefined) return isOfRequest(existing, request) ? DONE : taken(name);
    const parent = await this.#agent(asked.namespace, asked.name, signal);
    if (parent === undefined || parent.metadata.uid !== asked.uid || isDeleting(parent)) {
      return refused(`agent "${asked.name}" is being deleted`);
    }
    const admission = await this.#admit(parent, order, signal);
    if ('refused' in admission) return refused(admission.refused);
    return this.#create(request, parent, childObject(request, admission.spec), signal);
  }

  async #admit(parent: StoredAgent, order: Extract<ChildOrder, { kind: 'Spawn' }>, signal: AbortSignal) {
    const { client, policies } = this.#deps;
    const { namespace, name, uid } = parent.metadata;
    const policyName = parent.spec.trustPolicyRef.name;
    const policy = policies.get(namespace, policyName);
    if (policy === undefined) return { refused: `TrustPolicy "${policyName}" does not exist` };
    const selector = { namespace, labelSelector: LABELS.parentAgent };
    const all = (await client.list<StoredChild>(TYPES.agents, selector, signal)).filter((one) => !isDeleting(one));
    const decider = createDecider({
      agent: { name, namespace, spec: parent.spec },
      policy: { name: policyName, spec: policy.spec },
      level: 'sandboxed',
      generation: generationOf(parent, all),
      tainted: false,
      workspace: POD_PATHS.workspace,
    });
    const request: ChildRequest = 'template' in order ? { template: order.template } : { spec: order.spec };
    const asked = 'template' in order ? { template: order.template } : {};
    const decision = decider.decide({ kind: 'Spawn', ...asked });
    if (decision.effect !== 'Allow') return { refused: decision.reason };
    const template = 'template' in order ? await this.#agent(namespace, order.template, signal) : undefined;
    return admitChild(request, {
      parent: { name, spec: parent.spec },
      policy: policy.spec,
      template: template === undefined ? undefined : { name: template.metadata.name, spec: template.spec },
      children: all.filter((one) => parentUidOf(one) === uid).length,
      total: all.filter((one) => one.spec.trustPolicyRef.name === policyName).length,
    });
  }

  async #create(
    request: ChildRequestRecord,
    parent: StoredAgent,
    object: object,
    signal: AbortSignal,
  ): Promise<ChildRequestEnd> {
    const { client, events } = this.#deps;
    const { name } = request;
    try {
      await client.create(TYPES.agents, object, signal);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (FINAL.has(error.status)) return refused(printable(messageOf(error, 500), 500));
      if (error.status !== ALREADY_EXISTS) throw error;
      const existing = await this.#agent(parent.metadata.namespace, name, signal);
      if (existing === undefined) throw error;
      return isOfRequest(existing, request) ? DONE : taken(name);
    }
    const { apiVersion, kind, metadata } = parent;
    events.record(
      { apiVersion, kind, metadata },
      {
        type: 'Normal',
        reason: 'ChildStarted',
        message: `started child agent ${name}`,
      },
    );
    return DONE;
  }

  async #kill({ name, parent }: ChildRequestRecord, uid: string, signal: AbortSignal): Promise<ChildRequestEnd> {
    const found = await this.#agent(parent.namespace, name, signal);
    if (found === undefined || found.metadata.uid !== uid) return DONE;
    // An agent never deletes what a user created.
    if (parentUidOf(found) === undefined) return refused(`agent "${name}" was not started by an agent`);
    await this.#deps.client.delete(TYPES.agents, { namespace: parent.namespace, name }, { uid }, signal);
    return DONE;
  }

  async #agent(namespace: string, name: string, signal: AbortSignal): Promise<StoredAgent | undefined> {
    return this.#deps.client.get<StoredAgent>(TYPES.agents, { namespace, name }, signal);
  }
}

const DONE: ChildRequestEnd = { state: 'Done' };

function refused(reason: string): ChildRequestEnd {
  return { state: 'Refused', reason };
}

function taken(name: string): ChildRequestEnd {
  return refused(`an agent "${name}" exists already, which this request did not create`);
}

function isDeleting({ metadata }: KubeObject): boolean {
  return Reflect.get(metadata, 'deletionTimestamp') !== undefined;
}
