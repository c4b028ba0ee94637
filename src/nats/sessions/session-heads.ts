import { LRUCache } from 'lru-cache';
import type { JetStreamConnection } from '../connection/connection.ts';
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
  readonly #connection: Pick<JetStreamConnection, 'state'>;
  readonly #known = new LRUCache<string, StoredHead>({ max: MAX_KNOWN });
  #connectedSince = 0;

  constructor(connection: Pick<JetStreamConnection, 'state'>) {
    this.#connection = connection;
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
    const since = this.#connection.state().since.getTime();
    if (since !== this.#connectedSince) this.#known.clear();
    this.#connectedSince = since;
  }
}
