import type { EmergentTool, ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { LexicalIndex } from '../../discovery/lexical-index.ts';
import { LRUCache } from 'lru-cache';
import { openArtifact } from '../../forge/open-artifact.ts';
import type { Change } from '../../kube/store.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { CatalogueObject, StandingTool } from './catalogue.ts';

/** What the cluster holds for agents beyond their sessions. */
export interface Library {
  /** Capabilities and tools in service of a namespace, those of tier Agent with whose they are. */
  index(namespace: string): LexicalIndex;
  /** Tools of tiers Agent and Shared that a pod of this agent can run; no name stands twice. */
  standing(namespace: string, agent: string): StandingTool[];
  /** The same, whole. What cannot be read at the moment is left out. */
  tools(namespace: string, agent: string): Promise<RegisteredTool[]>;
}

export interface LibraryOptions {
  /** Reads an EmergentTool; undefined when there is none. */
  read: (namespace: string, name: string) => Promise<Pick<EmergentTool, 'spec'> | undefined>;
  log: Logger;
}

/** A namespace has no more entries; what comes later is left out until there is room and it changes. */
const MOST_ENTRIES = 5_000;
/** A pod gets no more of them, its agent's own before the shared ones. */
const MOST_STANDING = 100;
const KEPT_BYTES = 64 * 1_024 * 1_024;

interface Shelf {
  index: LexicalIndex;
  tools: Map<string, StandingTool>;
  full: boolean;
}

/** Follows the watches; whoever feeds it tells of each change. Artifacts are read when a pod wants them and kept by digest. */
export class WatchedLibrary implements Library {
  readonly #options: LibraryOptions;
  readonly #shelves = new Map<string, Shelf>();
  readonly #artifacts = new LRUCache<Digest, ToolArtifact>({
    maxSize: KEPT_BYTES,
    sizeCalculation: (artifact) => JSON.stringify(artifact).length,
  });

  constructor(options: LibraryOptions) {
    this.#options = options;
  }

  capabilityChanged(change: Change<CatalogueObject>): void {
    this.#put(`capabilities/${change.key}`, change);
  }

  toolChanged(change: Change<StandingTool>): void {
    const { object, key, type } = change;
    const indexed = this.#put(`emergenttools/${key}`, change);
    const { tools } = this.#shelf(object.metadata.namespace ?? '');
    if (type !== 'deleted' && indexed && object.runnable === true) tools.set(key, object);
    else tools.delete(key);
  }

  index(namespace: string): LexicalIndex {
    return this.#shelves.get(namespace)?.index ?? new LexicalIndex();
  }

  standing(namespace: string, agent: string): StandingTool[] {
    const mine = [...(this.#shelves.get(namespace)?.tools.values() ?? [])]
      .filter(({ entry, tier }) => tier === 'Shared' || entry?.agent === agent)
      .sort(agentFirst);
    const byName = new Map<string, StandingTool>();
    for (const tool of mine) {
      const name = tool.entry?.name ?? '';
      if (!byName.has(name)) byName.set(name, tool);
    }
    return [...byName.values()].slice(0, MOST_STANDING);
  }

  async tools(namespace: string, agent: string): Promise<RegisteredTool[]> {
    const found = await Promise.all(this.standing(namespace, agent).map((tool) => this.#registered(tool, agent)));
    return found.flatMap((tool) => tool ?? []);
  }

  /** Says whether it is on the shelf now. */
  #put(key: string, { type, object }: Change<CatalogueObject>): boolean {
    const namespace = object.metadata.namespace ?? '';
    const shelf = this.#shelf(namespace);
    const { index } = shelf;
    if (type === 'deleted' || object.entry === undefined) {
      index.delete(key);
      return false;
    }
    if (index.size >= MOST_ENTRIES && !index.has(key)) {
      if (!shelf.full) this.#options.log.warn({ namespace, entries: index.size }, 'no more is found of this namespace');
      shelf.full = true;
      return false;
    }
    index.set(key, object.entry);
    return true;
  }

  #shelf(namespace: string): Shelf {
    const known = this.#shelves.get(namespace);
    if (known !== undefined) return known;
    const shelf: Shelf = { index: new LexicalIndex(), tools: new Map(), full: false };
    this.#shelves.set(namespace, shelf);
    return shelf;
  }

  async #registered(tool: StandingTool, agent: string): Promise<RegisteredTool | undefined> {
    const { metadata, digest, tier, contributors = [], acceptedAt = '' } = tool;
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
      sourceWithheld: false,
      acceptedAt,
      active: true,
    };
  }

  async #read(namespace: string, name: string, digest: Digest): Promise<ToolArtifact | undefined> {
    try {
      const artifact = (await this.#options.read(namespace, name))?.spec.artifact;
      if (artifact === undefined) return undefined;
      const open = openArtifact(artifact);
      if ('malformed' in open || open.digest !== digest) return undefined;
      this.#artifacts.set(digest, artifact);
      return artifact;
    } catch (error) {
      // A session without one of its tools can go on; one without any cannot.
      this.#options.log.warn({ namespace, tool: name, error }, 'a tool could not be read');
      return undefined;
    }
  }
}

function agentFirst(a: StandingTool, b: StandingTool): number {
  if (a.tier !== b.tier) return a.tier === 'Agent' ? -1 : 1;
  return a.metadata.name < b.metadata.name ? -1 : 1;
}
