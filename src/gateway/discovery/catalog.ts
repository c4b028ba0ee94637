import type { EmergentTool, ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import type { DiscoveryEntry } from '../../discovery/entry.ts';
import { LexicalIndex } from '../../discovery/lexical/lexical-index.ts';
import { LRUCache } from 'lru-cache';
import { parseArtifact } from '../../forge/parse-artifact.ts';
import type { Change } from '../../kube/informer/store.ts';
import { type Digest, sha256 } from '../../lib/canonical.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { Logger } from '../../telemetry/log.ts';
import { artifactWithSource, type WithheldSourceReader } from '../../tempering/withheld/artifact-with-source.ts';
import type { CatalogObject, PromotedTool } from './catalog-entries.ts';

/** Capabilities and promoted tools of the cluster, beyond the tools of sessions. */
export interface CapabilityCatalog {
  /** Index of the capabilities and the tools in service of a namespace; entries of tier Agent name their agent. */
  index(namespace: string): LexicalIndex;
  /** Tools of tiers Agent and Shared that a pod of this agent can run; names are unique. */
  promotedTools(namespace: string, agent: string): PromotedTool[];
  /** Entries of the index that the agent does not find, because the tool is deactivated for it. */
  lostEntries(namespace: string, agent: string): ReadonlySet<DiscoveryEntry>;
  /** The same for the same tools at every replica. */
  version(namespace: string, agent: string): string;
  /** The same tools with their artifacts. Tools that cannot be read at the moment are omitted. */
  tools(namespace: string, agent: string): Promise<RegisteredTool[]>;
}

export interface WatchedCatalogOptions {
  /** Reads an EmergentTool; undefined when it does not exist. */
  read: (namespace: string, name: string) => Promise<Pick<EmergentTool, 'metadata' | 'spec'> | undefined>;
  /** The sources that objects do not contain. */
  sources: WithheldSourceReader;
  /** Is the tool in service, by its status and by the Approvals? */
  isServed: (tool: PromotedTool) => boolean;
  /** Does the agent not have the tool, although it is in service? */
  isDeactivated?: (namespace: string, agent: string, digest: Digest) => boolean;
  /** Called after a change of the tools in service of a namespace. */
  onChange?: (namespace: string) => void;
  log: Logger;
}

/** Entries per namespace. Further objects are omitted until others leave. */
const MAX_ENTRIES = 5_000;
/** Promoted tools per pod, the agent's own before shared ones. */
const MAX_PROMOTED = 100;
const MAX_CACHE_BYTES = 64 * 1_024 * 1_024;

interface NamespaceCatalog {
  index: LexicalIndex;
  tools: Map<string, PromotedTool>;
  /** By agent; empty after each change of `tools`. */
  versions: Map<string, string>;
  /** By key, what indexes an object beyond the limit. The stores of the watches have these objects anyway. */
  omitted: Map<string, () => void>;
  full: boolean;
}

/** The catalog from informer events: its owner calls `capabilityChanged` and `toolChanged`. Artifacts are read on demand and cached by digest. */
export class WatchedCatalog implements CapabilityCatalog {
  readonly #options: WatchedCatalogOptions;
  readonly #catalogs = new Map<string, NamespaceCatalog>();
  readonly #artifacts = new LRUCache<Digest, ToolArtifact>({
    maxSize: MAX_CACHE_BYTES,
    sizeCalculation: (artifact) => JSON.stringify(artifact).length,
  });

  constructor(options: WatchedCatalogOptions) {
    this.#options = options;
  }

  capabilityChanged(change: Change<CatalogObject>): void {
    this.#applyCapability(change);
    this.#enterOmitted(change.object.metadata.namespace ?? '');
  }

  /** Call it for a changed object, and for one whose Approvals changed. */
  toolChanged(change: Pick<Change<PromotedTool>, 'object' | 'key' | 'type'>): void {
    this.#applyTool(change);
    this.#enterOmitted(change.object.metadata.namespace ?? '');
  }

  #applyCapability({ object, key, type }: Change<CatalogObject>): void {
    const enter = () => void this.#put(`capabilities/${key}`, { type, object, enter });
    enter();
  }

  #applyTool(change: Pick<Change<PromotedTool>, 'object' | 'key' | 'type'>): void {
    const { object, key, type } = change;
    const namespace = object.metadata.namespace ?? '';
    const isServed = type !== 'deleted' && object.entry !== undefined && this.#options.isServed(object);
    const enter = () => this.#applyTool({ object, key, type });
    const indexed = this.#put(`emergenttools/${key}`, { type: isServed ? type : 'deleted', object, enter });
    const { tools, versions } = this.#catalogOf(namespace);
    const before = tools.get(key);
    if (indexed && object.runnable === true) tools.set(key, object);
    else if (!tools.delete(key)) return;
    if (before?.metadata.uid === object.metadata.uid && before !== undefined && tools.has(key)) return;
    versions.clear();
    this.#options.onChange?.(namespace);
  }

  /** The version of the agent follows its deactivated tools. */
  agentChanged(namespace: string, agent: string): void {
    this.#catalogs.get(namespace)?.versions.delete(agent);
  }

  version(namespace: string, agent: string): string {
    const { versions } = this.#catalogOf(namespace);
    const known = versions.get(agent);
    if (known !== undefined) return known;
    const digests = this.promotedTools(namespace, agent).map(({ digest = '', tier = '' }) => `${tier} ${digest}`);
    const version = digests.length === 0 ? '' : sha256(digests.join('\n'));
    versions.set(agent, version);
    return version;
  }

  index(namespace: string): LexicalIndex {
    return this.#catalogs.get(namespace)?.index ?? new LexicalIndex();
  }

  promotedTools(namespace: string, agent: string): PromotedTool[] {
    const { isDeactivated } = this.#options;
    const available = [...(this.#catalogs.get(namespace)?.tools.values() ?? [])]
      .filter(({ entry, tier }) => tier === 'Shared' || entry?.agent === agent)
      .filter(({ digest }) => digest !== undefined && isDeactivated?.(namespace, agent, digest) !== true)
      .sort(agentFirst);
    const byName = new Map<string, PromotedTool>();
    for (const tool of available) {
      const name = tool.entry?.name ?? '';
      if (!byName.has(name)) byName.set(name, tool);
    }
    return [...byName.values()].slice(0, MAX_PROMOTED);
  }

  lostEntries(namespace: string, agent: string): ReadonlySet<DiscoveryEntry> {
    const { isDeactivated } = this.#options;
    const tools = [...(this.#catalogs.get(namespace)?.tools.values() ?? [])];
    const lost = tools.filter(
      ({ digest }) => digest !== undefined && isDeactivated?.(namespace, agent, digest) === true,
    );
    return new Set(lost.flatMap(({ entry }) => entry ?? []));
  }

  async tools(namespace: string, agent: string): Promise<RegisteredTool[]> {
    const found = await Promise.all(this.promotedTools(namespace, agent).map((tool) => this.#registered(tool, agent)));
    return found.flatMap((tool) => tool ?? []);
  }

  /** Returns true when the entry is indexed afterwards. */
  #put(
    key: string,
    { type, object, enter }: Pick<Change<CatalogObject>, 'type' | 'object'> & { enter: () => void },
  ): boolean {
    const namespace = object.metadata.namespace ?? '';
    const catalog = this.#catalogOf(namespace);
    const { index, omitted } = catalog;
    if (type === 'deleted' || object.entry === undefined) {
      index.delete(key);
      omitted.delete(key);
      return false;
    }
    if (index.size >= MAX_ENTRIES && !index.has(key)) {
      if (!catalog.full)
        this.#options.log.warn(
          { namespace, entries: index.size },
          'the catalog limit of this namespace is reached; further objects are omitted until others are deleted',
        );
      catalog.full = true;
      omitted.set(key, enter);
      return false;
    }
    index.set(key, object.entry);
    return true;
  }

  /** Objects that left make place for those that were omitted first. */
  #enterOmitted(namespace: string): void {
    const { index, omitted } = this.#catalogOf(namespace);
    for (const [key, enter] of omitted) {
      if (index.size >= MAX_ENTRIES) return;
      omitted.delete(key);
      enter();
    }
  }

  #catalogOf(namespace: string): NamespaceCatalog {
    const known = this.#catalogs.get(namespace);
    if (known !== undefined) return known;
    const created: NamespaceCatalog = {
      index: new LexicalIndex(),
      tools: new Map(),
      versions: new Map(),
      omitted: new Map(),
      full: false,
    };
    this.#catalogs.set(namespace, created);
    return created;
  }

  async #registered(tool: PromotedTool, agent: string): Promise<RegisteredTool | undefined> {
    const { metadata, digest, tier, contributors = [], sourceWithheld = false, acceptedAt = '' } = tool;
    if (digest === undefined || tier === undefined) return undefined;
    const namespace = metadata.namespace ?? '';
    const artifact = this.#artifacts.get(digest) ?? (await this.#read(namespace, metadata.name, digest));
    if (artifact === undefined) return undefined;
    return {
      object: `tools/${metadata.name}`,
      artifact,
      digest,
      tier,
      owner: { agent, namespace, session: '' },
      contributors: [...contributors],
      verdicts: [],
      authorModel: '',
      sourceWithheld,
      acceptedAt,
      active: true,
    };
  }

  async #read(namespace: string, name: string, digest: Digest): Promise<ToolArtifact | undefined> {
    try {
      const { read, sources, log } = this.#options;
      const object = await read(namespace, name);
      if (object === undefined) return undefined;
      const artifact = await artifactWithSource(object, sources);
      if (artifact === undefined) log.warn({ namespace, tool: name }, 'the withheld source of a tool is lost');
      if (artifact === undefined) return undefined;
      const open = parseArtifact(artifact);
      if ('malformed' in open || open.digest !== digest) return undefined;
      this.#artifacts.set(digest, artifact);
      return artifact;
    } catch (error) {
      // A session can work without one of its tools, so the error does not propagate.
      this.#options.log.warn({ namespace, tool: name, error }, 'a tool could not be read');
      return undefined;
    }
  }
}

function agentFirst(a: PromotedTool, b: PromotedTool): number {
  if (a.tier !== b.tier) return a.tier === 'Agent' ? -1 : 1;
  return a.metadata.name < b.metadata.name ? -1 : 1;
}
