import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { TokenBucket } from '../../../lib/async/token-bucket.ts';
import type { Clock } from '../../../lib/clock.ts';
import { messageOf } from '../../../lib/errors.ts';
import type { RemoteServer } from '../read-servers.ts';
import { checkedResponse } from './checked-body.ts';
import { UNASKED } from './message-limits.ts';
import type { ServerChannel } from './server-connection.ts';

/** An event has up to four lines: its name, its id, its data and an empty one. */
const LINES: typeof UNASKED = { burst: 4 * UNASKED.burst, perSecond: 4 * UNASKED.perSecond };

interface HttpChannelDeps {
  clock: Clock;
  fetch: (target: string | URL, init: RequestInit) => Promise<Response>;
}

/** Streamable HTTP. Redirects are refused, because the token would go with them; a stream that ends is not opened again. */
export function httpChannel(
  { url }: Pick<RemoteServer, 'url'>,
  token: string | undefined,
  { clock, fetch }: HttpChannelDeps,
): ServerChannel {
  const unasked = new TokenBucket(clock, LINES);
  let problem: string | undefined;
  const end = (error: unknown): void => {
    problem ??= messageOf(error, 300);
    void transport.close();
  };
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: async (target, init) => {
      const response = await fetch(target, { ...init, redirect: 'error' });
      return checkedResponse(response, { unasked, end });
    },
    ...(token === undefined ? {} : { authProvider: { token: async () => token } }),
    onInsufficientScope: 'throw',
    reconnectionOptions: {
      maxRetries: 0,
      initialReconnectionDelay: 1_000,
      maxReconnectionDelay: 1_000,
      reconnectionDelayGrowFactor: 1,
    },
  });
  return { transport, problem: () => problem, [Symbol.asyncDispose]: () => transport.close() };
}
