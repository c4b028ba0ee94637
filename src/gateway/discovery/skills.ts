import { LRUCache } from 'lru-cache';
import type { Capability } from '../../api/v1alpha1/capability.ts';
import type { Change } from '../../kube/informer/store.ts';
import { type Skill, skillOf } from '../../skills/skill.ts';
import type { CatalogObject } from './catalog-entries.ts';

export interface WatchedSkillsOptions {
  /** Reads a Capability; undefined when it does not exist. */
  read: (namespace: string, name: string) => Promise<Pick<Capability, 'metadata' | 'spec'> | undefined>;
  /** Called when a namespace gets its first skill or loses its last one. */
  onChange: (namespace: string) => void;
}

const MAX_CACHE_BYTES = 32 * 1_024 * 1_024;

/** The skills of the cluster, from informer events. Their texts are read on demand, and kept by the version of their object. */
export class WatchedSkills {
  readonly #options: WatchedSkillsOptions;
  /** The versions of the objects by name, by namespace. */
  readonly #versions = new Map<string, Map<string, string>>();
  readonly #texts = new LRUCache<string, Skill>({
    maxSize: MAX_CACHE_BYTES,
    sizeCalculation: (skill) => JSON.stringify(skill).length,
  });

  constructor(options: WatchedSkillsOptions) {
    this.#options = options;
  }

  changed({ type, object }: Pick<Change<CatalogObject>, 'type' | 'object'>): void {
    const { namespace = '', name, resourceVersion = '' } = object.metadata;
    const versions = this.#versions.get(namespace) ?? new Map<string, string>();
    const before = versions.size;
    if (type !== 'deleted' && object.entry?.kind === 'skill') versions.set(name, resourceVersion);
    else versions.delete(name);
    this.#versions.set(namespace, versions);
    if ((before === 0) !== (versions.size === 0)) this.#options.onChange(namespace);
  }

  any(namespace: string): boolean {
    return (this.#versions.get(namespace)?.size ?? 0) > 0;
  }

  /** Undefined when the namespace has no such skill, or when it has no text. */
  async find(namespace: string, name: string): Promise<Skill | undefined> {
    const version = this.#versions.get(namespace)?.get(name);
    if (version === undefined) return undefined;
    const key = `${namespace}/${name}@${version}`;
    const known = this.#texts.get(key);
    if (known !== undefined) return known;
    const object = await this.#options.read(namespace, name);
    const skill = object === undefined ? undefined : skillOf(object);
    if (skill !== undefined && object?.metadata.resourceVersion === version) this.#texts.set(key, skill);
    return skill;
  }
}
