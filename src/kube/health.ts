import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import type { MetricsPage } from '../telemetry/metrics.ts';

export interface HealthOptions {
  /** Default: every address, of IPv6 where the machine has it, and of IPv4. */
  host?: string | undefined;
  /** 0 for any free port. */
  port: number;
  clock: Clock;
  registry: MetricsPage;
  /** The names of the parts that are not ready; empty when all are. */
  notReady: () => readonly string[];
}

export interface HealthServer extends AsyncDisposable {
  readonly port: number;
}

/** `/healthz` fails when the event loop was blocked for longer. */
const MAX_DELAY_MS = 5_000;
const INTERVAL_MS = 1_000;
/** How long a delay is remembered: longer than the interval of a probe, so that at least one probe observes it. */
const WINDOW_MS = 15_000;
const MAX_CONNECTIONS = 100;
const REQUEST_TIMEOUT_MS = 10_000;

interface HealthResponse {
  readonly status: number;
  readonly type?: string;
  readonly text: string;
}

/**
 * Serves `/healthz`, `/readyz` and `/metrics` over HTTP. `/healthz` checks only the event loop: a restart does not help against an unreachable
 * API server. Rejects when it cannot listen on the port.
 */
export async function startHealthServer(options: HealthOptions): Promise<HealthServer> {
  const eventLoop = new EventLoopMonitor(options.clock);
  const server = createServer(
    { requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS },
    (request, response) => {
      void respond(request, options, eventLoop).then((result) => send(response, result));
    },
  );
  server.maxConnections = MAX_CONNECTIONS;
  try {
    await listening(server, options);
  } catch (error) {
    eventLoop.stop();
    throw error;
  }
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      eventLoop.stop();
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

function listening(server: Server, { host, port }: HealthOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(host === undefined ? { port } : { host, port }, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
}

async function respond(
  request: IncomingMessage,
  options: HealthOptions,
  eventLoop: EventLoopMonitor,
): Promise<HealthResponse> {
  if (request.method !== 'GET' && request.method !== 'HEAD') return { status: 405, text: 'method not allowed\n' };
  switch (request.url?.split('?')[0]) {
    case '/healthz':
      return eventLoop.worst() < MAX_DELAY_MS
        ? { status: 200, text: 'ok\n' }
        : { status: 500, text: `the event loop was blocked for ${Math.round(eventLoop.worst())} ms\n` };
    case '/readyz': {
      const pending = options.notReady();
      return pending.length === 0
        ? { status: 200, text: 'ok\n' }
        : { status: 503, text: `waiting for ${pending.join(', ')}\n` };
    }
    case '/metrics':
      return metricsOf(options.registry);
    default:
      return { status: 404, text: 'not found; the paths are /healthz, /readyz and /metrics\n' };
  }
}

async function metricsOf(registry: HealthOptions['registry']): Promise<HealthResponse> {
  try {
    return { status: 200, type: registry.contentType, text: await registry.metrics() };
  } catch (error) {
    return { status: 500, text: `${messageOf(error)}\n` };
  }
}

function send(response: ServerResponse, { status, type = 'text/plain; charset=utf-8', text }: HealthResponse): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
  response.end(text);
}

/** Measures the delay of the event loop: how late a periodic timer fires. */
class EventLoopMonitor {
  readonly #clock: Clock;
  readonly #stopping = new AbortController();
  readonly #delays: { readonly at: number; readonly by: number }[] = [];
  #due: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#due = clock.monotonic() + INTERVAL_MS;
    void this.#run();
  }

  /** The longest delay within the window, in milliseconds, including the current one. */
  worst(): number {
    const now = this.#clock.monotonic();
    while (this.#delays[0] !== undefined && now - this.#delays[0].at > WINDOW_MS) this.#delays.shift();
    return Math.max(0, now - this.#due, ...this.#delays.map(({ by }) => by));
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#due = this.#clock.monotonic() + INTERVAL_MS;
      try {
        await this.#clock.sleep(INTERVAL_MS, signal);
      } catch {
        return; // stopped
      }
      const now = this.#clock.monotonic();
      this.#delays.push({ at: now, by: now - this.#due });
    }
  }
}
