import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { TokenBucket, type TokenBucketOptions } from '../../../lib/async/token-bucket.ts';
import type { Clock } from '../../../lib/clock.ts';
import { isTemperError, messageOf, type TemperError } from '../../../lib/errors.ts';
import type { RemoteServer } from '../read-servers.ts';
import { type BodyLimits, checkedResponse } from './checked-body.ts';
import { MAX_MESSAGE_BYTES, UNASKED } from './message-limits.ts';
import type { ServerChannel } from './server-connection.ts';

/** An event has up to four lines: its name, its id, its data and an empty one. */
const LINES: TokenBucketOptions = { burst: 4 * UNASKED.burst, perSecond: 4 * UNASKED.perSecond };
/** Streams that the server ended and that are opened again. */
const REOPENED: TokenBucketOptions = { burst: 60, perSecond: 0.2 };
/** Requests for one stream that fail one after another. */
const MAX_FAILED = 3;
/** The server says how long the client waits before it opens a stream again. */
const WAIT_MS = { least: 500, most: 300_000 };

/** How long a server has for the end of a session. */
const MAX_LEAVE_MS = 2_000;

interface HttpChannelDeps {
  clock: Clock;
  fetch: (target: string | URL, init: RequestInit) => Promise<Response>;
  /** The longest message; absent: that of a server of a user. */
  maxMessageBytes?: number;
  /** The bytes of its streams; absent: no limit. */
  streamBytes?: TokenBucketOptions;
  /** Throws for a text of the server that must not be read, which ends the channel. */
  inspect?: (text: string) => void;
}

/**
 * Streamable HTTP. Redirects are refused, because the token would go with them. A stream that the server ends is opened again where it
 * ended, which repeats no call.
 */
export function httpChannel(
  { url }: Pick<RemoteServer, 'url'>,
  token: string | undefined,
  { clock, fetch, maxMessageBytes = MAX_MESSAGE_BYTES, streamBytes, inspect }: HttpChannelDeps,
): ServerChannel {
  const reopened = new TokenBucket(clock, REOPENED);
  const closed = new AbortController();
  let problem: string | TemperError | undefined;
  const close = (): Promise<void> => {
    closed.abort();
    return transport.close();
  };
  const end = (error: unknown): void => {
    problem ??= isTemperError(error) ? error : messageOf(error, 300);
    void close();
  };
  const limits: BodyLimits = {
    maxMessageBytes,
    unasked: new TokenBucket(clock, LINES),
    ...(streamBytes === undefined ? {} : { bytes: new TokenBucket(clock, streamBytes) }),
    ...(inspect === undefined ? {} : { inspect }),
    end,
  };
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: async (target, init) => {
      const response = await fetch(target, { ...init, redirect: 'error' });
      if (isSessionLost(response, init)) end(new Error('the server has ended the session'));
      return checkedResponse(response, limits);
    },
    ...(token === undefined ? {} : { authProvider: { token: async () => token } }),
    onInsufficientScope: 'throw',
    reconnectionOptions: {
      maxRetries: MAX_FAILED + 1,
      initialReconnectionDelay: 1_000,
      maxReconnectionDelay: 10_000,
      reconnectionDelayGrowFactor: 2,
    },
    reconnectionScheduler(reopen, delay, failed) {
      if (failed >= MAX_FAILED) return end(new Error('a stream that it ended cannot be opened again'));
      if (!reopened.tryTake()) return end(new Error('it ends its streams too often'));
      const wait = Math.min(Math.max(delay, WAIT_MS.least), WAIT_MS.most);
      clock.sleep(wait, closed.signal).then(reopen, () => undefined);
    },
  });
  return {
    transport,
    problem: () => problem,
    async [Symbol.asyncDispose]() {
      if (!closed.signal.aborted) await leave(transport, clock);
      await close();
    },
  };
}

/** A server that has restarted, or that forgot a session, answers so: each further request would fail as well. */
function isSessionLost({ status }: Response, { method, headers }: RequestInit = {}): boolean {
  return status === 404 && method === 'POST' && new Headers(headers).has('mcp-session-id');
}

/** Ends the session at the server, which otherwise keeps what belongs to it. */
async function leave(transport: StreamableHTTPClientTransport, clock: Clock): Promise<void> {
  if (transport.sessionId === undefined) return;
  const left = new AbortController();
  const late = clock.sleep(MAX_LEAVE_MS, left.signal).catch(() => undefined);
  await Promise.race([transport.terminateSession().catch(() => undefined), late]);
  left.abort();
}
