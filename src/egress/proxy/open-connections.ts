import { TemperError } from '../../lib/errors.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { AuthorizedConnection } from '../authorizer.ts';
import { OpenConnection } from './open-connection.ts';

export interface OpenConnectionLimits {
  /** Open connections of one agent from one address, its pod or a gateway, at this replica. */
  perAgent: number;
  /** Milliseconds after which a connection ends, even before the deadline of its message. */
  maxDurationMs: number;
  maxBytes: number;
  maxUnreportedBytes: number;
}

export const DEFAULT_LIMITS: OpenConnectionLimits = {
  perAgent: 32,
  maxDurationMs: 3_600_000,
  maxBytes: 4 * 1_024 ** 3,
  maxUnreportedBytes: 4 * 1_024 ** 2,
};

interface Entry {
  connection: OpenConnection;
  timer: NodeJS.Timeout;
  /** What it counts against. */
  counter: string;
}

/** The authorized connections of this process, and those that ended with bytes to report. */
export class OpenConnections {
  readonly #limits: OpenConnectionLimits;
  readonly #ids: IdGenerator;
  readonly #onReportDue: () => void;
  readonly #open = new Map<string, Entry>();
  readonly #closed = new Set<OpenConnection>();
  /** By address and agent. */
  readonly #counts = new Map<string, number>();

  constructor(options: { limits: OpenConnectionLimits; ids: IdGenerator; onReportDue: () => void }) {
    this.#limits = options.limits;
    this.#ids = options.ids;
    this.#onReportDue = options.onReportDue;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Those with anything to report: all that are open, and those that ended since the last report. */
  get reportable(): OpenConnection[] {
    return [...Array.from(this.#open.values(), ({ connection }) => connection), ...this.#closed];
  }

  /** Throws TEMPER_RATE_LIMITED when the agent has as many open connections as it may. Close every connection. */
  open(
    { caller, agentUid, remainingMs }: Pick<AuthorizedConnection, 'caller' | 'agentUid' | 'remainingMs'>,
    request: { deliveryToken: string; address: string; host: string; port: number },
  ): OpenConnection {
    const { perAgent, maxDurationMs, ...bytes } = this.#limits;
    const counter = `${request.address} ${agentUid}`;
    const count = this.#counts.get(counter) ?? 0;
    if (count >= perAgent) {
      const through = caller === 'Gateway' ? ' through this gateway' : '';
      const message = `the agent has ${count} open connections${through}, as many as it may`;
      throw new TemperError('TEMPER_RATE_LIMITED', message, { retry: 1_000 });
    }
    const connection = new OpenConnection({
      ...bytes,
      id: this.#ids.next('connection'),
      deliveryToken: request.deliveryToken,
      host: request.host,
      port: request.port,
      onReportDue: this.#onReportDue,
    });
    const duration = Math.max(0, Math.min(remainingMs, maxDurationMs));
    const timer = setTimeout(() => connection.end(expired()), duration);
    this.#counts.set(counter, count + 1);
    this.#open.set(connection.id, { connection, timer, counter });
    return connection;
  }

  close(connection: OpenConnection): void {
    const entry = this.#open.get(connection.id);
    if (entry === undefined) return;
    clearTimeout(entry.timer);
    this.#open.delete(connection.id);
    const left = (this.#counts.get(entry.counter) ?? 0) - 1;
    if (left > 0) this.#counts.set(entry.counter, left);
    else this.#counts.delete(entry.counter);
    if (connection.unreportedBytes > 0) this.#closed.add(connection);
  }

  /** As many bytes of the connection were charged. */
  reported(connection: OpenConnection, bytes: number): void {
    connection.reported(bytes);
    if (connection.unreportedBytes <= 0) this.#closed.delete(connection);
  }

  endAll(reason: TemperError): void {
    for (const { connection } of this.#open.values()) connection.end(reason);
  }
}

function expired(): TemperError {
  return new TemperError('TEMPER_TIMEOUT', 'the deadline of the message, or the longest time of a connection, passed');
}
