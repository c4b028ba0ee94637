import type { Clock } from '../../lib/clock.ts';
import type { GatewayServer } from './routes.ts';

/** Milliseconds for requests in progress to end. */
const DRAIN_TIMEOUT_MS = 25_000;

/**
 * Shuts a server down gracefully: aborting `draining` ends long polls and refuses new requests. Requests in progress may finish; after the
 * timeout their connections are closed.
 */
export async function drain(
  server: GatewayServer,
  draining: AbortController,
  clock: Clock,
  timeoutMs = DRAIN_TIMEOUT_MS,
): Promise<void> {
  draining.abort(new DOMException('the gateway drains', 'AbortError'));
  const closed = new AbortController();
  const cut = clock.sleep(timeoutMs, closed.signal).then(
    () => server.server.closeAllConnections(),
    () => undefined,
  );
  // Idle keep-alive connections would keep the server open until their clients close them.
  server.server.closeIdleConnections();
  await server.close();
  closed.abort();
  await cut;
}
