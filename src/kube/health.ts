import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import type { MetricsPage } from '../telemetry/metrics.ts';

export interface HealthOptions {
  host: string;
  /** 0 for any free one. */
  port: number;
  clock: Clock;
  registry: MetricsPage;
  /** What is not ready yet, by name; empty when all is. */
  waitingFor: () => readonly string[];
}

export interface HealthServer extends AsyncDisposable {
  readonly port: number;
}

/** A process whose event loop stands still for longer is of no use to anybody. Milliseconds. */
const LONGEST_DELAY = 5_000;
const BEAT = 1_000;
/** How long a delay is held against the process: longer than a probe's interval, so that one probe sees it. */
const MEMORY = 15_000;
const CONNECTIONS = 100;
const REQUEST_TIMEOUT = 10_000;

interface Answer {
  readonly status: number;
  readonly type?: string;
  readonly text: string;
}

/**
 * Serves `/healthz` (the event loop runs; whether the API server can be reached is no matter of restarts), `/readyz` and `/metrics` over
 * HTTP. Rejects when the port cannot be listened on.
 */
export async function startHealthServer(options: HealthOptions): Promise<HealthServer> {
  const pulse = new Pulse(options.clock);
  const server = createServer(
    { requestTimeout: REQUEST_TIMEOUT, headersTimeout: REQUEST_TIMEOUT },
    (request, response) => {
      void answer(request, options, pulse).then((one) => send(response, one));
    },
  );
  server.maxConnections = CONNECTIONS;
  try {
    await listening(server, options);
  } catch (error) {
    pulse.stop();
    throw error;
  }
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      pulse.stop();
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

function listening(server: Server, { host, port }: HealthOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen({ host, port }, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
}

async function answer(request: IncomingMessage, options: HealthOptions, pulse: Pulse): Promise<Answer> {
  if (request.method !== 'GET' && request.method !== 'HEAD') return { status: 405, text: 'only GET\n' };
  switch (request.url?.split('?')[0]) {
    case '/healthz':
      return pulse.worst() < LONGEST_DELAY
        ? { status: 200, text: 'ok\n' }
        : { status: 500, text: `the event loop stood still for ${Math.round(pulse.worst())} ms\n` };
    case '/readyz': {
      const missing = options.waitingFor();
      return missing.length === 0
        ? { status: 200, text: 'ok\n' }
        : { status: 503, text: `waiting for ${missing.join(', ')}\n` };
    }
    case '/metrics':
      return metricsOf(options.registry);
    default:
      return { status: 404, text: 'there are /healthz, /readyz and /metrics\n' };
  }
}

async function metricsOf(registry: HealthOptions['registry']): Promise<Answer> {
  try {
    return { status: 200, type: registry.contentType, text: await registry.metrics() };
  } catch (error) {
    return { status: 500, text: `${messageOf(error)}\n` };
  }
}

function send(response: ServerResponse, { status, type = 'text/plain; charset=utf-8', text }: Answer): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
  response.end(text);
}

/** Measures how late a beat comes. */
class Pulse {
  readonly #clock: Clock;
  readonly #stopping = new AbortController();
  readonly #late: { readonly at: number; readonly by: number }[] = [];
  #due: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#due = clock.monotonic() + BEAT;
    void this.#beat();
  }

  /** The worst delay remembered, in milliseconds, the one going on now included. */
  worst(): number {
    const now = this.#clock.monotonic();
    while (this.#late[0] !== undefined && now - this.#late[0].at > MEMORY) this.#late.shift();
    return Math.max(0, now - this.#due, ...this.#late.map(({ by }) => by));
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #beat(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#due = this.#clock.monotonic() + BEAT;
      try {
        await this.#clock.sleep(BEAT, signal);
      } catch {
        return; // stopped
      }
      const now = this.#clock.monotonic();
      this.#late.push({ at: now, by: now - this.#due });
    }
  }
}
