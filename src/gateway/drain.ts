import type { Clock } from '../lib/clock.ts';
import type { GatewayServer } from './routes.ts';

/** How long calls under way may take to end. */
const PATIENCE_MILLISECONDS = 25_000;

/**
 * Ends a server gently: `draining` makes long polls answer and new calls go elsewhere; what is under way may end, and is cut off
 * when it does not.
 */
export async function drain(
  server: GatewayServer,
  draining: AbortController,
  clock: Clock,
  patienceMilliseconds = PATIENCE_MILLISECONDS,
): Promise<void> {
  draining.abort(new DOMException('the gateway drains', 'AbortError'));
  const over = new AbortController();
  const cut = clock.sleep(patienceMilliseconds, over.signal).then(
    () => server.server.closeAllConnections(),
    () => undefined,
  );
  // Connections that are kept alive between calls would hold the server open until their clients give up.
  server.server.closeIdleConnections();
  await server.close();
  over.abort();
  await cut;
}
