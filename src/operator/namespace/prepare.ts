import { SingleFlight } from '../../lib/async/single-flight.ts';
import type { KubeClient, ResourceType } from '../../kube/client/kube-client.ts';
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

/** Maps that the operator owns completely and to which the API server adds no defaults: an additional member is a difference. */
const EXACT = ['data', 'hard', 'matchLabels', 'spec'];

/** Ensures that all objects that agent pods need exist in their namespace. */
export class NamespaceObjects {
  readonly #deps: NamespaceDeps;
  readonly #runs = new SingleFlight<boolean>();
  readonly #written = new WriteCache<PlainObject>();

  constructor(deps: NamespaceDeps) {
    this.#deps = deps;
  }

  /** Returns false while the gateway address or the CA is unknown. Throws ApiError. Concurrent calls share one run. */
  prepare(namespace: string, signal: AbortSignal): Promise<boolean> {
    return this.#runs.run(namespace, () => this.#prepare(namespace, signal));
  }

  async #prepare(namespace: string, signal: AbortSignal): Promise<boolean> {
    const options = this.#deps.options(namespace);
    if (options === undefined) return false;
    for (const desired of prerequisites(options)) await this.#ensure(desired, signal);
    return true;
  }

  async #ensure({ type, object }: Prerequisite, signal: AbortSignal): Promise<void> {
    const { name, namespace = '' } = object.metadata;
    const key = `${type.plural}/${namespace}/${name}`;
    const cached = this.#deps.cached(type, namespace, name);
    const version = cached?.metadata.resourceVersion ?? '';
    const placeholder: PlainObject = { metadata: { name, namespace, resourceVersion: '' } };
    const known = this.#written.latest(key, cached ?? placeholder);
    if (isCurrent(known, object)) return;
    const stored = await this.#store(type, known, object, signal);
    this.#written.record(key, version, stored);
  }

  /** Applies a missing object. Patches an existing one, because apply would keep members that other writers added to EXACT maps. */
  #store(type: ResourceType, known: PlainObject, desired: PlainObject, signal: AbortSignal): Promise<PlainObject> {
    const { client } = this.#deps;
    const { name, namespace = '', uid } = known.metadata;
    if (uid === undefined) return client.apply(type, desired, { manager: FIELD_MANAGER, force: true }, signal);
    return client.patch(type, { namespace, name }, mergePatch(known, desired, EXACT), signal);
  }

  /** Call when an object was deleted: drops the cached write. */
  onDeleted(plural: string, object: PlainObject): void {
    this.#written.forget(`${plural}/${object.metadata.namespace ?? ''}/${object.metadata.name}`);
  }
}

function isCurrent(actual: PlainObject, desired: PlainObject): boolean {
  return actual.metadata.uid !== undefined && containsFields(actual, desired, EXACT);
}
