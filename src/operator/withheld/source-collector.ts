import type { Clock } from '../../lib/clock.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { SourceKeyring } from '../../nats/sources/source-cipher.ts';
import { sourceKey, type StoredText } from '../../nats/sources/tool-sources.ts';
import { INDEX } from '../agent/observe.ts';
import type { Cache } from '../kube/cache.ts';
import type { StoredAgent } from '../kube/types.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import type { WithheldStore } from './ports.ts';

export interface SourceCollectorDeps {
  readonly store: WithheldStore;
  readonly keyring: SourceKeyring;
  readonly agents: Pick<Cache<StoredAgent>, 'byIndex'>;
  readonly tools: Pick<Cache<StoredTool>, 'list'>;
  readonly clock: Clock;
  /** Requests a reconcile of the EmergentTool. */
  readonly requeue: (tool: StoredTool) => void;
}

const RENEW_INTERVAL_MS = 3_600_000;

/**
 * Looks after the encrypted store. It deletes a source when neither a session nor an EmergentTool of its agent has the tool, and requeues
 * tools whose source was lost or came back. While there is more than one key, it encrypts everything with the current one. A source must be
 * unused at two looks, because it is stored before its tool.
 */
export class SourceCollector {
  readonly #deps: SourceCollectorDeps;
  #unused: ReadonlySet<string> = new Set();
  #keyIds = '';
  #renewedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: SourceCollectorDeps) {
    this.#deps = deps;
  }

  /** Throws TEMPER_BUS_* and TEMPER_SOURCE_UNAVAILABLE. */
  async round(): Promise<void> {
    const texts = await this.#deps.store.texts();
    this.#requeueChanged(texts);
    await this.#collect(texts);
    await this.#renew([...texts.keys()]);
  }

  #requeueChanged(texts: ReadonlyMap<string, StoredText>): void {
    const { tools, keyring, requeue } = this.#deps;
    const keyIds = keyring.keys.map(({ id }) => id).join(' ');
    const hasNewKeys = keyIds !== this.#keyIds;
    this.#keyIds = keyIds;
    for (const tool of tools.list()) {
      const key = keyOf(tool);
      if (key !== undefined && (hasNewKeys || texts.has(key) === isLost(tool))) requeue(tool);
    }
  }

  async #collect(texts: ReadonlyMap<string, StoredText>): Promise<void> {
    const inObjects = new Set(this.#deps.tools.list().flatMap((tool) => keyOf(tool) ?? []));
    const bySession = new Map<string, ReadonlySet<Digest>>();
    const unused = new Set<string>();
    for (const [key, text] of texts) {
      if (inObjects.has(key) || (await this.#isUsed(text, bySession))) continue;
      if (this.#unused.has(key)) await this.#deps.store.remove(key);
      else unused.add(key);
    }
    this.#unused = unused;
  }

  /** What an agent has that this operator does not know is not its to delete. */
  async #isUsed(text: StoredText, bySession: Map<string, ReadonlySet<Digest>>): Promise<boolean> {
    const { agents, store } = this.#deps;
    const { agentUid } = text;
    if (agents.byIndex(INDEX.uid, agentUid).length === 0) return true;
    if (text.kind === 'call') return store.sessionExists(agentUid, text.session);
    const digests = bySession.get(agentUid) ?? (await store.sessionTools(agentUid));
    bySession.set(agentUid, digests);
    return digests.has(text.digest);
  }

  async #renew(keys: readonly string[]): Promise<void> {
    const { store, keyring, clock } = this.#deps;
    if (keyring.keys.length < 2 || clock.monotonic() - this.#renewedAt < RENEW_INTERVAL_MS) return;
    const inUse = new Set<string>();
    for (const key of keys) {
      const id = await store.renew(key);
      if (id !== undefined) inUse.add(id);
    }
    keyring.inUse = inUse;
    this.#renewedAt = clock.monotonic();
  }
}

/** Where the source of a tool is stored; undefined for one that contains its source. */
function keyOf({ metadata, facts }: StoredTool): string | undefined {
  const owner = metadata.ownerReferences?.find(({ kind }) => kind === 'Agent');
  return facts.sourceWithheld && owner !== undefined ? sourceKey(owner.uid, facts.digest) : undefined;
}

function isLost({ status }: StoredTool): boolean {
  return status?.conditions?.some(({ type, reason }) => type === 'Active' && reason === 'SourceLost') === true;
}
