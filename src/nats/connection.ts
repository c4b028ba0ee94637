import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';

export interface ConnectOptions {
  /** `tls://host:port`, one or several. */
  servers: string | string[];
  /** Shown in the server's monitoring. */
  name: string;
  /** The named user; its private inbox prefix is `_INBOX_<user>`. */
  user: string;
  /** File with the user's nkey seed. Read again at every connect. */
  seedFile: string;
  /** File with the authority of the server's certificate. Without one the connection is in the clear: tests only. */
  caFile?: string;
  clock: Clock;
  /** Ends the wait for the first connection. */
  signal: AbortSignal;
  /** Told of every attempt that failed before the first connection. */
  onWaiting?: (error: TemperError) => void;
}

/** What conditions and health report. */
export interface BusState {
  connected: boolean;
  since: Date;
  /** Why it is not connected; printable. */
  reason?: string;
}

/** One connection of a process to the bus, kept for its whole life. Disposing drains it. */
export interface BusConnection extends AsyncDisposable {
  readonly nats: NatsConnection;
  readonly jetstream: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly clock: Clock;
  /** Aborted when the connection is closed for good. */
  readonly closed: AbortSignal;
  state(): BusState;
  /** Told of each change; the answer ends it. */
  onChange(listener: (state: BusState) => void): () => void;
}

/**
 * Connects and stays connected: attempts go on until `signal` ends them. Throws TEMPER_BUS_UNSUPPORTED for a server older than
 * the floor and TEMPER_CANCELLED when the signal was first.
 */
export async function connectBus(_options: ConnectOptions): Promise<BusConnection> {
  throw new TemperError('TEMPER_INTERNAL', 'not built yet');
}
