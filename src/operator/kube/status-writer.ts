import type { KubeClient, ResourceType } from '../../kube/client/kube-client.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import { keyOf } from '../../kube/informer/store.ts';
import type { Condition } from '../../api/v1alpha1/common.ts';
import { type ConditionEvent, conditionEvents } from '../conditions.ts';
import { StatusTracker } from './status-tracker.ts';
import type { Stored } from './types.ts';
import { WriteCache } from './write-cache.ts';

/** An object whose status the operator writes. */
type StatusObject = Stored<{
  apiVersion: string;
  kind: string;
  metadata: object;
  status?: { conditions?: Condition[] };
}>;
type StatusOf<T extends StatusObject> = NonNullable<T['status']>;

/** How the status of one kind is compared and written. */
export interface StatusFormat<T extends StatusObject> {
  readonly type: ResourceType;
  /** The condition whose first appearance is recorded as an Event even when it is True. */
  readonly awaited: string;
  /** Does the status have to be written? */
  differs(object: T, status: StatusOf<T>): boolean;
  /** The JSON merge patch from the current status. */
  patch(before: StatusOf<T> | undefined, after: StatusOf<T>): object;
  /** The object as the informer cache stores it. */
  prune(object: T): T;
}

export interface StatusWriterDeps {
  readonly client: Pick<KubeClient, 'patch'>;
  readonly events: Pick<EventRecorder, 'record'>;
}

/**
 * Writes the status of the objects of one kind, as the only authorized writer: only when it differs, and only on the resourceVersion that
 * the reconcile read. A reconciler calls `latest`, computes the status, calls `write`, and records the returned Events.
 */
export class StatusWriter<T extends StatusObject> {
  readonly #deps: StatusWriterDeps;
  readonly #format: StatusFormat<T>;
  readonly #tracker = new StatusTracker();
  readonly #written = new WriteCache<T>();

  constructor(deps: StatusWriterDeps, format: StatusFormat<T>) {
    this.#deps = deps;
    this.#format = format;
  }

  /** The object to reconcile: the cached one, or the one of the last write when the cache does not contain that write yet. */
  latest(cached: T): T {
    return this.#written.latest(keyOf(cached), cached);
  }

  /**
   * Writes the status of `object`, which `latest` returned for `cached`. Returns one Event per changed condition, and undefined when the
   * status is current. Throws ApiError, a conflict when another writer changed the object meanwhile.
   */
  async write(cached: T, object: T, status: StatusOf<T>, signal: AbortSignal): Promise<ConditionEvent[] | undefined> {
    const { namespace, name, uid, resourceVersion } = object.metadata;
    const isDifferent = this.#format.differs(object, status);
    this.#tracker.expect(uid, isDifferent ? status : object.status);
    if (!isDifferent) return undefined;
    const body = { metadata: { resourceVersion }, status: this.#format.patch(object.status, status) };
    const stored = await this.#deps.client.patch<T>(this.#format.type, { namespace, name }, body, signal, {
      subresource: 'status',
    });
    this.#written.record(keyOf(object), cached.metadata.resourceVersion, this.#format.prune(stored));
    return conditionEvents(object.status?.conditions, status.conditions ?? [], this.#format.awaited);
  }

  recordEvents({ apiVersion, kind, metadata }: T, events: readonly ConditionEvent[]): void {
    const { name, namespace, uid } = metadata;
    for (const event of events)
      this.#deps.events.record({ apiVersion, kind, metadata: { name, namespace, uid } }, event);
  }

  /** Did another writer write this status? False for an object that this process has not reconciled yet. */
  isExternalWrite(object: T): boolean {
    return this.#tracker.isExternalWrite(object);
  }

  /** Drops the last write of an object that is deleted or is being deleted. */
  forgetWrite(key: string): void {
    this.#written.forget(key);
  }

  /** Drops all in-memory state of a deleted object. */
  forget(object: T): void {
    this.#tracker.forget(object.metadata.uid);
    this.#written.forget(keyOf(object));
  }
}
