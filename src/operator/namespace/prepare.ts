import { ApiError, type KubeClient, type ResourceType } from '../../kube/client/kube-client.ts';
import { KeyedTurns } from '../kube/keyed-turns.ts';
import { FIELD_MANAGER, type PlainObject } from '../kube/types.ts';
import { WriteCache } from '../kube/write-cache.ts';
import { containsFields, mergePatch } from '../kube/subset-match.ts';
import { type Prerequisite, type PrerequisiteOptions, prerequisites } from './objects.ts';

export interface NamespaceDeps {
  readonly client: KubeClient;
  /** The cached object. */
  cached(type: ResourceType, namespace: string, name: string): PlainObject | undefined;
  /** Undefined while the gateway address or the CA is unknown: no pod can run then. */
  options(namespace: string): PrerequisiteOptions | undefined;
}

/** Whether the namespace has all objects that its agent pods need. No pod may be created otherwise. */
export type Preparation =
  | { readonly kind: 'prepared' }
  /** The gateway address or the CA is unknown. */
  | { readonly kind: 'waiting' }
  /** The API server stored an object with other content than the operator wrote. */
  | { readonly kind: 'altered'; readonly message: string };

/** Maps that the operator owns completely and to which the API server adds no defaults: an additional member is a difference. */
const EXACT = ['data', 'hard', 'matchLabels', 'spec'];
/** Attempts to write an object that other writers create or change at the same time. */
const MAX_ATTEMPTS = 3;

/** Ensures that all objects that agent pods need exist in their namespace. */
export class NamespaceObjects {
  readonly #deps: NamespaceDeps;
  readonly #turns = new KeyedTurns();
  readonly #written = new WriteCache<PlainObject>();

  constructor(deps: NamespaceDeps) {
    this.#deps = deps;
  }

  /** Throws ApiError. Concurrent calls for one namespace run one after the other: each one has its own signal and reads the current options. */
  prepare(namespace: string, signal: AbortSignal): Promise<Preparation> {
    return this.#turns.run(namespace, signal, () => this.#prepare(namespace, signal));
  }

  async #prepare(namespace: string, signal: AbortSignal): Promise<Preparation> {
    const options = this.#deps.options(namespace);
    if (options === undefined) return { kind: 'waiting' };
    for (const desired of prerequisites(options)) {
      if (await this.#ensure(desired, signal)) continue;
      const { type, object } = desired;
      const what = `${type.kind} "${object.metadata.name}" of namespace "${namespace}"`;
      const message = `the API server stored ${what} with other content than the operator wrote; find the webhook or the controller that changes it, and exempt this object`;
      return { kind: 'altered', message };
    }
    return { kind: 'prepared' };
  }

  /** Returns false when what is stored after the write is not what the operator wrote. */
  async #ensure({ type, object }: Prerequisite, signal: AbortSignal): Promise<boolean> {
    const { name, namespace = '' } = object.metadata;
    const key = `${type.plural}/${namespace}/${name}`;
    const cached = this.#deps.cached(type, namespace, name);
    const version = cached?.metadata.resourceVersion ?? '';
    const absent: PlainObject = { metadata: { name, namespace, resourceVersion: '' } };
    const known = this.#written.latest(key, cached ?? absent);
    if (isCurrent(known, object)) return true;
    const stored = await this.#store(type, known, object, signal);
    this.#written.record(key, version, stored);
    return isCurrent(stored, object);
  }

  /**
   * Creates a missing object and patches an existing one, on the version that was compared. Never applies: apply would keep the members that
   * another writer added to EXACT maps, such as the rules of a network policy that a user created under the same name first.
   */
  async #store(
    type: ResourceType,
    known: PlainObject,
    desired: PlainObject,
    signal: AbortSignal,
  ): Promise<PlainObject> {
    const { client } = this.#deps;
    const { name, namespace = '' } = desired.metadata;
    let current = known;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await write(client, type, current, desired, signal);
      } catch (error) {
        // AlreadyExists, or a conflict: the cache lags behind another writer.
        if (!(error instanceof ApiError) || error.status !== 409 || attempt === MAX_ATTEMPTS) throw error;
        const live = await client.get<PlainObject>(type, { namespace, name }, signal);
        current = live ?? { metadata: { name, namespace } };
        if (isCurrent(current, desired)) return current;
      }
    }
  }

  /** Call when an object was deleted: drops the cached write. */
  onDeleted(plural: string, object: PlainObject): void {
    this.#written.forget(`${plural}/${object.metadata.namespace ?? ''}/${object.metadata.name}`);
  }
}

function write(
  client: KubeClient,
  type: ResourceType,
  current: PlainObject,
  desired: PlainObject,
  signal: AbortSignal,
): Promise<PlainObject> {
  const { name, namespace = '', uid, resourceVersion } = current.metadata;
  if (uid === undefined) return client.create(type, desired, signal, { manager: FIELD_MANAGER });
  const patch = mergePatch(current, { ...desired, metadata: { ...desired.metadata, resourceVersion } }, EXACT);
  return client.patch(type, { namespace, name }, patch, signal);
}

function isCurrent(actual: PlainObject, desired: PlainObject): boolean {
  return actual.metadata.uid !== undefined && containsFields(actual, desired, EXACT);
}
