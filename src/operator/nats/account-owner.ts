import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Clock } from '../../lib/clock.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { JetStreamConnection } from '../../nats/connection/connection.ts';
import { isStreamMissing } from '../../nats/connection/errors.ts';
import { createDocumentStore, type DocumentStore } from '../../nats/jetstream/document-store.ts';
import { BUCKETS } from '../../nats/jetstream/names.ts';
import { TYPES } from '../kube/types.ts';

export interface AccountOwnerDeps {
  readonly client: Pick<KubeClient, 'get'>;
  readonly clock: Clock;
  /** The release, as its configuration names it. */
  readonly release: string;
  /** Release namespace, and the Service of its gateway. */
  readonly namespace: string;
  readonly service: string;
}

interface Owner {
  /** UID of the Service of the gateway: no two releases of any clusters share it. */
  installation: string;
  release: string;
  namespace: string;
  /** RFC 3339. */
  seenAt: string;
}

const KEY = 'owner';
/** An owner that did not renew its entry for this time is gone; another installation may take the account over. */
const EXPIRES_MS = 5 * 60_000;

/**
 * The installation that a NATS account belongs to. Streams and consumers have fixed names, so two installations on one account would take
 * wakeups of each other and see the agents of the other as deleted.
 */
export class AccountOwner {
  readonly #deps: AccountOwnerDeps;
  #known: string | undefined;

  constructor(deps: AccountOwnerDeps) {
    this.#deps = deps;
  }

  /** Why the account must not be used; undefined when it is free, is the own one, or its owner is gone. */
  async conflict(connection: JetStreamConnection, signal: AbortSignal): Promise<string | undefined> {
    const installation = await this.#installation(signal);
    const owner = await readOwner(createDocumentStore(connection, BUCKETS.residents));
    if (installation === undefined || owner === undefined || owner.value.installation === installation)
      return undefined;
    const { release, namespace, seenAt } = owner.value;
    if (this.#deps.clock.now().getTime() - Date.parse(seenAt) >= EXPIRES_MS) return undefined;
    return `the NATS account belongs to release "${printable(release, 128)}" in namespace ${printable(namespace, 64)}, which used it at ${printable(seenAt, 40)}; give each installation an account of its own, or stop the other one for ${EXPIRES_MS / 60_000} minutes`;
  }

  /** Writes or renews the entry. The streams must exist. */
  async claim(connection: JetStreamConnection, signal: AbortSignal): Promise<void> {
    const installation = await this.#installation(signal);
    if (installation === undefined) return;
    const documents = createDocumentStore(connection, BUCKETS.residents);
    const owner = await readOwner(documents);
    const { release, namespace, clock } = this.#deps;
    const value: Owner = { installation, release, namespace, seenAt: clock.now().toISOString() };
    // Undefined: the other replica, or another installation, was faster; the next check reads its entry.
    await documents.write(KEY, value as unknown as Json, owner?.revision ?? 0);
  }

  async #installation(signal: AbortSignal): Promise<string | undefined> {
    const { client, namespace, service } = this.#deps;
    try {
      const found = await client.get(TYPES.services, { namespace, name: service }, signal);
      this.#known = found?.metadata.uid ?? this.#known;
    } catch (error) {
      // While the API server is unreachable the entry is still renewed.
      if (this.#known === undefined) throw error;
    }
    return this.#known;
  }
}

async function readOwner(documents: DocumentStore): Promise<{ value: Owner; revision: number } | undefined> {
  try {
    const found = await documents.get(KEY);
    const { value, revision = 0 } = found ?? {};
    if (!isJsonObject(value)) return undefined;
    const { installation, release, namespace, seenAt } = value;
    if (![installation, release, namespace, seenAt].every((text) => typeof text === 'string')) return undefined;
    return { value: { installation, release, namespace, seenAt } as Owner, revision };
  } catch (error) {
    if (isStreamMissing(error instanceof Error ? error.cause : error)) return undefined;
    throw error;
  }
}
