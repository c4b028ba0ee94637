import { TemperError } from '../../lib/errors.ts';
import type { ConnectionReport } from '../authorizer.ts';

export type Direction = 'sent' | 'received';

export interface OpenConnectionOptions {
  id: string;
  deliveryToken: string;
  host: string;
  port: number;
  /** Bytes in both directions, after which the connection ends. */
  maxBytes: number;
  /** Bytes that may pass before they are reported. */
  maxUnreportedBytes: number;
  /** Called when a report is due before its regular time. */
  onReportDue: () => void;
}

/**
 * One authorized request through the proxy. Counts its bytes, and holds them back while too many are not reported, so that a connection
 * never runs far ahead of the quota of its agent.
 */
export class OpenConnection {
  readonly bytes: Record<Direction, number> = { sent: 0, received: 0 };
  readonly #options: OpenConnectionOptions;
  readonly #ended = new AbortController();
  readonly #held = new Set<() => void>();
  #unreported = 0;

  constructor(options: OpenConnectionOptions) {
    this.#options = options;
  }

  get id(): string {
    return this.#options.id;
  }

  /** Aborts when the connection must end; the reason is a TemperError. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  get unreportedBytes(): number {
    return this.#unreported;
  }

  end(reason: TemperError): void {
    this.#ended.abort(reason);
    this.#release();
  }

  /** Counts bytes that are about to pass. Wait for the promise, if there is one, before they do. */
  count(direction: Direction, bytes: number): Promise<void> | undefined {
    const { maxBytes, maxUnreportedBytes, onReportDue } = this.#options;
    this.bytes[direction] += bytes;
    this.#unreported += bytes;
    if (this.bytes.sent + this.bytes.received > maxBytes) {
      this.end(new TemperError('TEMPER_FETCH_FAILED', `the connection moved more than ${maxBytes} bytes`));
    }
    if (this.#unreported >= maxUnreportedBytes / 2) onReportDue();
    if (this.#unreported < maxUnreportedBytes || this.signal.aborted) return undefined;
    return new Promise((resolve) => this.#held.add(resolve));
  }

  report(): ConnectionReport {
    const { id, deliveryToken, host, port } = this.#options;
    return { id, deliveryToken, host, port, bytes: this.#unreported };
  }

  /** As many bytes were charged. */
  reported(bytes: number): void {
    this.#unreported -= bytes;
    if (this.#unreported < this.#options.maxUnreportedBytes) this.#release();
  }

  #release(): void {
    for (const resume of this.#held) resume();
    this.#held.clear();
  }
}
