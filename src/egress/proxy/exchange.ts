/** One request to the proxy, from its arrival to its line in the log. */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { Target } from '../../net/targets.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { EgressMetrics } from '../../telemetry/temper-metrics.ts';
import { credentialsOf } from '../request/credentials.ts';
import type { ConnectionOwner } from '../authorizer.ts';
import type { Route } from '../route/route.ts';
import type { Admission } from './admission.ts';
import type { OpenConnection } from './open-connection.ts';
import type { OpenConnections } from './open-connections.ts';
import { publicError } from './refusal.ts';

export interface ExchangeDeps {
  clock: Clock;
  log: Logger;
  /** Gets one line for each request, whatever the level of the log is. */
  audit: Pick<Logger, 'info'>;
  route: Route;
  admission: Admission;
  connections: OpenConnections;
  metrics: Pick<EgressMetrics, 'count'>;
  /** Called when the request of a client is authorized. Throws TEMPER_RATE_LIMITED when its owner has as many connections as it may. */
  onAuthorized: (client: Socket, owner: ConnectionOwner) => void;
}

const DIAL_TIMEOUT_MS = 5_000;
/** Without a byte in either direction for so long, a connection ends. */
const IDLE_TIMEOUT_MS = 120_000;

/** Ends the connection when the socket neither sends nor receives: its peer may hold back the last bytes that it is to read. */
export function endWhenIdle(socket: Socket, connection: OpenConnection): void {
  socket.setTimeout(IDLE_TIMEOUT_MS, () => {
    connection.end(new TemperError('TEMPER_TIMEOUT', `no data for ${IDLE_TIMEOUT_MS / 1_000} seconds`));
  });
}

export class Exchange {
  readonly #deps: ExchangeDeps;
  readonly #request: IncomingMessage;
  readonly #client: Socket;
  readonly #startedAt: number;
  readonly #clientGone = new AbortController();
  readonly #facts: Record<string, unknown>;
  #connection: OpenConnection | undefined;
  #upstream: Socket | undefined;

  constructor(request: IncomingMessage, client: Socket, deps: ExchangeDeps) {
    this.#deps = deps;
    this.#request = request;
    this.#client = client;
    this.#startedAt = deps.clock.monotonic();
    this.#facts = { audit: 'egress', method: printable(request.method ?? '', 32), from: client.remoteAddress };
    client.once('close', this.#onClientClose).once('error', this.#onClientError);
  }

  /** Authorizes the request and connects it to its target: names resolve only after the host is allowed. */
  async open(target: Target): Promise<{ connection: OpenConnection; upstream: Socket; signal: AbortSignal }> {
    const { host, port } = target;
    Object.assign(this.#facts, { host, port });
    const { admission, connections, onAuthorized } = this.#deps;
    const credentials = credentialsOf(this.#request.headers);
    const address = this.#client.remoteAddress ?? '';
    const asked = { ...credentials, address, host, port };
    const authorized = await admission.authorize(asked, this.#clientGone.signal);
    const { message: messageId, remainingMs: _remainingMs, ...owner } = authorized;
    this.note({ ...owner, messageId });
    onAuthorized(this.#client, authorized);
    const connection = connections.open(authorized, asked);
    this.#connection = connection;
    const signal = AbortSignal.any([this.#clientGone.signal, connection.signal]);
    const upstream = await this.#dial(target, signal);
    this.#upstream = upstream;
    upstream.on('error', () => undefined);
    endWhenIdle(upstream, connection);
    return { connection, upstream, signal };
  }

  /** Whether the client closed the connection before anything else ended it. */
  get isLeft(): boolean {
    return this.#clientGone.signal.aborted && this.#connection?.signal.aborted !== true;
  }

  /** Adds a fact to the line of the log. */
  note(facts: Record<string, unknown>): void {
    Object.assign(this.#facts, facts);
  }

  /** Closes the connection to the target and writes the line. The error, if any, is the result of the request. */
  close(failure: unknown): TemperError | undefined {
    this.#client.off('close', this.#onClientClose).off('error', this.#onClientError);
    this.#upstream?.destroy();
    const error = failure === undefined ? undefined : this.#causeOf(failure);
    if (this.#connection !== undefined) this.#deps.connections.close(this.#connection);
    const { bytes } = this.#connection ?? {};
    const line = {
      ...this.#facts,
      outcome: error?.code ?? 'ok',
      ...(bytes === undefined ? {} : { sentBytes: bytes.sent, receivedBytes: bytes.received }),
      durationMs: Math.round(this.#deps.clock.monotonic() - this.#startedAt),
    };
    this.#count(line.outcome);
    if (error?.code === 'TEMPER_INTERNAL') this.#deps.log.error({ ...line, error }, 'a request failed');
    else this.#deps.audit.info(line, error === undefined ? 'request served' : printable(error.message, 500));
    return error;
  }

  #count(outcome: string): void {
    const { metrics } = this.#deps;
    metrics.count('temper_egress_requests_total', {
      method: this.#request.method === 'CONNECT' ? 'CONNECT' : 'other',
      outcome,
    });
    const { sent = 0, received = 0 } = this.#connection?.bytes ?? {};
    metrics.count('temper_egress_bytes_total', { direction: 'sent' }, sent);
    metrics.count('temper_egress_bytes_total', { direction: 'received' }, received);
  }

  readonly #onClientClose = (): void => {
    this.#clientGone.abort(new TemperError('TEMPER_CANCELLED', 'the client closed the connection'));
  };

  /** A broken connection has its error before it closes. A pipeline gives the error of one end to the other, so the first one counts. */
  readonly #onClientError = (): void => {
    if ((this.#upstream?.errored ?? null) === null) this.#onClientClose();
  };

  async #dial(target: Target, signal: AbortSignal): Promise<Socket> {
    const dialling = AbortSignal.any([signal, AbortSignal.timeout(DIAL_TIMEOUT_MS)]);
    try {
      const { socket, address } = await this.#deps.route(target, dialling);
      this.note({ address });
      return socket;
    } catch (error) {
      if (signal.aborted || !dialling.aborted) throw error;
      throw new TemperError('TEMPER_TIMEOUT', `no connection to ${target.host} in time`, { cause: error });
    }
  }

  /** Why the connection ended, before what then broke. */
  #causeOf(failure: unknown): TemperError {
    const signals = [this.#connection?.signal, this.#clientGone.signal];
    const ended = signals.find((signal) => signal?.aborted === true);
    return publicError(ended === undefined ? failure : ended.reason);
  }
}
