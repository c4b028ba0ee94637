import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import { TemperError } from '../../lib/errors.ts';
import type { DeliveryState } from './delivery-state.ts';
import type { InboxStore, StoredDeliveryState } from './inbox-store.ts';

const MAX_KNOWN = 10_000;
/** Each conflict means that another write succeeded, and few processes write the state of one agent. */
const MAX_ATTEMPTS = 50;

/**
 * Changes delivery states by compare-and-swap. Remembers the last state of each agent that this process wrote or read, which saves a
 * read per change; a state that another process changed since costs one conflict.
 */
export class DeliveryStates {
  readonly #store: InboxStore;
  readonly #known = new LRUCache<string, StoredDeliveryState>(entries(MAX_KNOWN));

  constructor(store: InboxStore) {
    this.#store = store;
  }

  /** The remembered state, which another process may have changed. */
  known(agentUid: string): StoredDeliveryState | undefined {
    return this.#known.get(agentUid);
  }

  async read(agentUid: string): Promise<StoredDeliveryState> {
    this.#known.delete(agentUid);
    return this.#remember(agentUid, await this.#store.readState(agentUid));
  }

  /** False when the state has another revision. */
  async write(agentUid: string, state: DeliveryState, revision: number): Promise<boolean> {
    this.#known.delete(agentUid);
    const written = await this.#store.writeState(agentUid, state, revision);
    if (written === undefined) return false;
    this.#remember(agentUid, { state, revision: written });
    return true;
  }

  /** Applies a pure change. When it returns the state itself, nothing is written. Throws what `change` throws for the stored state. */
  async update(agentUid: string, change: (state: DeliveryState) => DeliveryState): Promise<void> {
    const known = this.#known.get(agentUid);
    if (known !== undefined && (await this.#tryKnown(agentUid, known, change))) return;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const { state, revision } = await this.read(agentUid);
      const next = change(state);
      if (next === state || (await this.write(agentUid, next, revision))) return;
    }
    const message = `the delivery state of the agent changed ${MAX_ATTEMPTS} times during one write; try again`;
    throw new TemperError('TEMPER_BUS_UNAVAILABLE', message, { retry: 'backoff' });
  }

  clear(): void {
    this.#known.clear();
  }

  /** False when only the stored state can decide. */
  async #tryKnown(
    agentUid: string,
    { state, revision }: StoredDeliveryState,
    change: (state: DeliveryState) => DeliveryState,
  ): Promise<boolean> {
    let next: DeliveryState;
    try {
      next = change(state);
    } catch {
      return false;
    }
    return next !== state && (await this.write(agentUid, next, revision));
  }

  #remember(agentUid: string, stored: StoredDeliveryState): StoredDeliveryState {
    this.#known.set(agentUid, stored);
    return stored;
  }
}
