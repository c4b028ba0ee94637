import type { ReconcileResult } from '../../kube/controller/result.ts';
import type { WorkQueue } from '../../kube/controller/work-queue.ts';
import { goneEvents, objectChange, type ObservedObject } from '../../events/platform/object-events.ts';
import type { PublishedEvent } from '../../events/event.ts';
import type { ObjectIdentity, ObservedKind } from '../../events/platform/observed-object.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { INDEX } from '../agent/observe.ts';
import type { StoredRequest } from '../approval/stored-decision.ts';
import { parentUidOf } from '../children/child-object.ts';
import { type Cache, parseKey } from '../kube/cache.ts';
import type { StoredAgent } from '../kube/types.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { hasListener } from './listeners.ts';
import { agentFacts, requestFacts, toolFacts } from './object-facts.ts';
import type { PlatformEventStore, ObservedState } from './ports.ts';

interface PlatformEventDeps {
  readonly store: PlatformEventStore;
  readonly clock: Clock;
  readonly agents: Cache<StoredAgent>;
  readonly tools: Cache<StoredTool>;
  readonly requests: Cache<StoredRequest>;
  readonly queue: WorkQueue;
  /** The namespaces that the operator watches; undefined: all. */
  readonly namespaces: readonly string[] | undefined;
}

const OUTAGE_RETRY_MS = 1_000;
/** Objects that a leader did not see leave are found when the next one starts, and then in this interval. */
const GONE_INTERVAL_MS = 600_000;
const DONE: ReconcileResult = { kind: 'done' };

/**
 * Publishes what happens to objects as events of their namespaces:
 *
 *   object ─▶ facts ─▶ compare with the record ─▶ announce events that agents wait for ─▶ write record
 *
 * A leader that ends before the record is written announces the same events again, under the same ids. What changed and changed back
 * between two looks is no event.
 */
export class PlatformEventReconciler {
  readonly #deps: PlatformEventDeps;
  /** By the UIDs of objects. */
  readonly #known = new Map<string, ObservedState>();

  constructor(deps: PlatformEventDeps) {
    this.#deps = deps;
  }

  async reconcile(key: string): Promise<ReconcileResult> {
    try {
      const { namespace: kind, name: rest } = parseKey(key);
      if (kind === 'gone') return await this.#gone(rest);
      const observed = this.#observe(kind as ObservedKind, rest);
      return observed === undefined ? DONE : await this.#publish(observed);
    } catch (error) {
      if (!isTemperError(error, 'TEMPER_BUS_UNAVAILABLE')) throw error;
      return { kind: 'requeueAfter', afterMs: OUTAGE_RETRY_MS };
    }
  }

  /** Looks for objects that left while no leader saw it. Returns the milliseconds until the next look. */
  async findGone(): Promise<number> {
    const { store, queue, namespaces } = this.#deps;
    for (const { object } of await store.all()) {
      if (namespaces !== undefined && !namespaces.includes(object.namespace)) continue;
      if (!this.#exists(object.kind, object.uid, `${object.namespace}/${object.name}`)) queue.add(goneKey(object.uid));
    }
    return GONE_INTERVAL_MS;
  }

  #exists(kind: ObservedKind, uid: string, key: string): boolean {
    const { namespace, name } = parseKey(key);
    return this.#cacheOf(kind).get(namespace, name)?.metadata.uid === uid;
  }

  #cacheOf(kind: ObservedKind): Cache<StoredAgent> | Cache<StoredTool> | Cache<StoredRequest> {
    const { agents, tools, requests } = this.#deps;
    return { Agent: agents, EmergentTool: tools, ApprovalRequest: requests }[kind];
  }

  #observe(kind: ObservedKind, key: string): ObservedObject | undefined {
    const { agents, tools, requests } = this.#deps;
    const { namespace, name } = parseKey(key);
    switch (kind) {
      case 'Agent': {
        const agent = agents.get(namespace, name);
        if (agent === undefined || agent.metadata.deletionTimestamp !== undefined) return undefined;
        return agentFacts(agent, agents.byIndex(INDEX.uid, parentUidOf(agent) ?? '')[0]);
      }
      case 'EmergentTool': {
        const tool = tools.get(namespace, name);
        return tool === undefined ? undefined : toolFacts(tool, agents.get(namespace, tool.facts.agent ?? ''));
      }
      case 'ApprovalRequest': {
        const request = requests.get(namespace, name);
        return request === undefined ? undefined : requestFacts(request);
      }
    }
  }

  async #publish(observed: ObservedObject): Promise<ReconcileResult> {
    const { store, clock } = this.#deps;
    const { uid } = observed.object;
    const before = this.#known.get(uid) ?? (await store.read(uid));
    const change = objectChange(before, observed, clock.now());
    if (change === undefined) {
      this.#known.set(uid, before);
      return DONE;
    }
    for (const event of change.events) await this.#announce(observed.object, event);
    const revision = await store.write(change.record, before.revision);
    if (revision === undefined) {
      this.#known.delete(uid);
      return { kind: 'requeueAfter', afterMs: 0 };
    }
    this.#known.set(uid, { record: change.record, revision });
    return DONE;
  }

  async #gone(uid: string): Promise<ReconcileResult> {
    const { store, clock } = this.#deps;
    // From the store: another leader may have published it.
    const { record, revision } = await store.read(uid);
    this.#known.delete(uid);
    if (record === undefined) return DONE;
    for (const event of goneEvents(record, revision, clock.now())) await this.#announce(record.object, event);
    await store.remove(uid);
    return DONE;
  }

  /** Most changes are those of Agents in namespaces where no agent listens: they cost gateways nothing. */
  async #announce({ kind, namespace, ownerUid }: ObjectIdentity, event: PublishedEvent): Promise<void> {
    if (kind === 'Agent' && !(await hasListener(namespace, event.subject, this.#deps))) return;
    await this.#deps.store.announce({ uid: ownerUid, namespace }, event);
  }
}

/** The key of an object that is gone. */
export function goneKey(uid: string): string {
  return `gone/${uid}`;
}
