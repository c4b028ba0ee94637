import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { onAbort } from '../../lib/async/abort.ts';
import { LineTransport, type LineTransportDeps } from './line-transport.ts';
import type { ServedToClient } from './served.ts';
import { createServer } from './tool-server.ts';

/** Subscriptions of one client to changes. */
const MAX_SUBSCRIPTIONS = 4;

/** Serves one client over lines, in the revision of the protocol that it speaks, until its input ends or the signal aborts. */
export async function serveLines(served: ServedToClient, deps: LineTransportDeps, signal: AbortSignal): Promise<void> {
  const transport = new LineTransport(deps);
  const handle = serveStdio(() => createServer(served), { transport, maxSubscriptions: MAX_SUBSCRIPTIONS });
  using _listener = onAbort(signal, () => void handle.close());
  try {
    await transport.ended;
  } finally {
    await handle.close();
  }
}
