import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { Reconnects } from '../connection/reconnects.ts';
import type { SessionHead } from './session-head.ts';

export interface StoredHead {
  head: SessionHead;
  /** For compare and swap. 0: no head is stored. */
  revision: number;
}

const MAX_KNOWN = 10_000;

/**
 * The heads that this process wrote or read last. Another process may have written since: an append over a remembered head then conflicts
 * and reads it. Forgets all at a reconnect, after which the store may be another one, in which revisions start again.
 */
export class SessionHeads {
  readonly #reconnects: Reconnects;
  readonly #known = new LRUCache<string, StoredHead>(entries(MAX_KNOWN));

  constructor(connection: Pick<JetStreamConnection, 'state'>) {
    this.#reconnects = new Reconnects(connection);
  }

  get(subject: string): StoredHead | undefined {
    this.#clearAfterReconnect();
    return this.#known.get(subject);
  }

  set(subject: string, stored: StoredHead): void {
    this.#clearAfterReconnect();
    this.#known.set(subject, stored);
  }

  delete(subject: string): void {
    this.#known.delete(subject);
  }

  #clearAfterReconnect(): void {
    if (this.#reconnects.happened()) this.#known.clear();
  }
}
