import { sha256 } from '../../lib/canonical.ts';

/** The routes that write records with keys of clients. The evidence is part of the name. */
export type KeyedRoute = 'review/observed' | 'review/reported' | 'review/drop' | 'reports';

/**
 * The key under which NATS stores a record once. Of two records with one key the second is dropped, so a record that the gateway
 * observed must never share a key with one that a pod reports: the route comes first, and the client's part is hashed, so that no text of
 * a client reaches beyond its own place.
 */
export function deduplicationKey(route: KeyedRoute, agentUid: string, client: readonly string[]): string {
  return `${route}/${agentUid}/${sha256(JSON.stringify(client)).slice('sha256:'.length)}`;
}
