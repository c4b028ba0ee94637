import { RELEASE_OBJECTS } from '../../api/cluster.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Clock } from '../../lib/clock.ts';
import { MANAGED_LABEL, type PlainObject, TYPES } from '../kube/types.ts';

/** A tool in the namespace of its agent. */
export interface NamespacedTool {
  readonly namespace: string;
  readonly digest: string;
}

/** Of one namespace. Beyond it no object of the namespace counts as free of reported answers. */
const MAX_NAMESPACE_ENTRIES = 500;
/** Of all namespaces together: about 800 KiB. */
const MAX_ENTRIES = 6_000;
/** Of a digest: 128 bits, so that the ConfigMap holds more of them. */
const DIGEST_CHARACTERS = 32;

/**
 * The tools that reached tier Agent by answers that only pods reported. A ConfigMap in the namespace of the release, because the rule that
 * such answers never carry tier Shared outlives the objects and agents, which users of the namespace delete and create again.
 */
export class ReportedTools {
  readonly #client: KubeClient;
  readonly #clock: Clock;
  readonly #ref: { readonly namespace: string; readonly name: string };

  constructor(client: KubeClient, clock: Clock, releaseNamespace: string) {
    this.#client = client;
    this.#clock = clock;
    this.#ref = { namespace: releaseNamespace, name: RELEASE_OBJECTS.reportedTools };
  }

  async has(tool: NamespacedTool, signal: AbortSignal): Promise<boolean> {
    const entries = (await this.#read(signal))?.entries ?? {};
    return Object.hasOwn(entries, keyOf(tool)) || Object.hasOwn(entries, tool.namespace);
  }

  /** Idempotent. A full list gets an entry for the whole namespace. Throws ApiError, a conflict when another writer was faster. */
  async add(tool: NamespacedTool, signal: AbortSignal): Promise<void> {
    const found = await this.#read(signal);
    const entries = found?.entries ?? {};
    if (Object.hasOwn(entries, keyOf(tool)) || Object.hasOwn(entries, tool.namespace)) return;
    const data = { [isFull(entries, tool.namespace) ? tool.namespace : keyOf(tool)]: this.#clock.now().toISOString() };
    if (found !== undefined) await this.#write(data, found.resourceVersion, signal);
    else
      await this.#client.create(
        TYPES.configMaps,
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...this.#ref, labels: { ...MANAGED_LABEL } }, data },
        signal,
      );
  }

  /** An agent reached tier Agent with the tool without such answers. Idempotent; throws like `add`. */
  async remove(tool: NamespacedTool, signal: AbortSignal): Promise<void> {
    const found = await this.#read(signal);
    if (found === undefined || !Object.hasOwn(found.entries, keyOf(tool))) return;
    await this.#write({ [keyOf(tool)]: null }, found.resourceVersion, signal);
  }

  async #read(signal: AbortSignal) {
    const found = await this.#client.get<PlainObject>(TYPES.configMaps, this.#ref, signal);
    if (found === undefined) return undefined;
    const entries = (found['data'] ?? {}) as Readonly<Record<string, string>>;
    return { entries, resourceVersion: found.metadata.resourceVersion ?? '' };
  }

  async #write(data: object, resourceVersion: string, signal: AbortSignal): Promise<void> {
    await this.#client.patch(TYPES.configMaps, this.#ref, { metadata: { resourceVersion }, data }, signal);
  }
}

/** A key of a ConfigMap has letters, digits, dots, dashes and underscores; a namespace has no dot. */
function keyOf({ namespace, digest }: NamespacedTool): string {
  return `${namespace}.${digest.slice('sha256:'.length, 'sha256:'.length + DIGEST_CHARACTERS)}`;
}

function isFull(entries: Readonly<Record<string, string>>, namespace: string): boolean {
  const keys = Object.keys(entries);
  return (
    keys.length >= MAX_ENTRIES || keys.filter((key) => key.startsWith(`${namespace}.`)).length >= MAX_NAMESPACE_ENTRIES
  );
}
