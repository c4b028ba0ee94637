import type { KubeClient, ResourceType } from '../../kube/client.ts';
import { FIELD_MANAGER, type PlainObject } from '../kube-types.ts';
import { OwnWrites } from '../own-writes.ts';
import { holds, mergePatch } from '../same-fields.ts';
import { type Prerequisite, type PrerequisiteOptions, prerequisites } from './objects.ts';

export interface NamespaceDeps {
  readonly client: KubeClient;
  /** What is known to exist. */
  known(type: ResourceType, namespace: string, name: string): PlainObject | undefined;
  /** Undefined while the gateway's address or the authority is not known: nothing can run then. */
  options(namespace: string): PrerequisiteOptions | undefined;
}

/** Maps of which we own every member and to which the API server adds none: a member too many is a difference. */
const EXACT = ['data', 'hard', 'matchLabels', 'spec'];

/** Sees to it that everything an agent pod relies on is in its namespace. */
export class Namespaces {
  readonly #deps: NamespaceDeps;
  readonly #running = new Map<string, Promise<boolean>>();
  readonly #written = new OwnWrites<PlainObject>();

  constructor(deps: NamespaceDeps) {
    this.#deps = deps;
  }

  /** False when it cannot be done yet. Throws ApiError. Who asks while it is being done waits for the same answer. */
  prepare(namespace: string, signal: AbortSignal): Promise<boolean> {
    const running = this.#running.get(namespace);
    if (running !== undefined) return running;
    const started = this.#prepare(namespace, signal).finally(() => this.#running.delete(namespace));
    this.#running.set(namespace, started);
    return started;
  }

  async #prepare(namespace: string, signal: AbortSignal): Promise<boolean> {
    const options = this.#deps.options(namespace);
    if (options === undefined) return false;
    for (const wanted of prerequisites(options)) await this.#ensure(wanted, signal);
    return true;
  }

  async #ensure({ type, object }: Prerequisite, signal: AbortSignal): Promise<void> {
    const { name, namespace = '' } = object.metadata;
    const key = `${type.plural}/${namespace}/${name}`;
    const cached = this.#deps.known(type, namespace, name);
    const version = cached?.metadata.resourceVersion ?? '';
    const placeholder: PlainObject = { metadata: { name, namespace, resourceVersion: '' } };
    const known = this.#written.latest(key, cached ?? placeholder);
    if (isAsWanted(known, object)) return;
    const stored = await this.#store(type, known, object, signal);
    this.#written.wrote(key, version, stored);
  }

  /** What is not there is applied; of what is there everything that is not ours is taken out, which applying would leave. */
  #store(type: ResourceType, known: PlainObject, wanted: PlainObject, signal: AbortSignal): Promise<PlainObject> {
    const { client } = this.#deps;
    const { name, namespace = '', uid } = known.metadata;
    if (uid === undefined) return client.apply(type, wanted, { manager: FIELD_MANAGER, force: true }, signal);
    return client.patch(type, { namespace, name }, mergePatch(known, wanted, EXACT), signal);
  }

  /** An object was seen to go: what was written of it counts no more. */
  removed(plural: string, object: PlainObject): void {
    this.#written.forget(`${plural}/${object.metadata.namespace ?? ''}/${object.metadata.name}`);
  }
}

function isAsWanted(actual: PlainObject, wanted: PlainObject): boolean {
  return actual.metadata.uid !== undefined && holds(actual, wanted, EXACT);
}
