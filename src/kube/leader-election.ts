import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Logger } from '../telemetry/log.ts';
import type { KubeClient } from './client.ts';
import type { Metrics } from './metrics.ts';

export interface LeaderElectionOptions {
  /** Not one that asks this election whether it may write. */
  client: KubeClient;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** From 0 up to 1. */
  random: () => number;
  /** The Lease. */
  namespace: string;
  name: string;
  /** Unlike that of any other process, e.g. `<hostname>_<uuid>`. */
  identity: string;
  /** Milliseconds; 15,000, 10,000 and 2,000 when not given. */
  leaseDuration?: number;
  renewDeadline?: number;
  retryPeriod?: number;
}

/** One process of many leads, by a Lease. */
export class LeaderElection implements AsyncDisposable {
  readonly options: LeaderElectionOptions;

  constructor(options: LeaderElectionOptions) {
    this.options = options;
  }

  /** False as soon as another process might lead, by this process's own clock and without any timer. */
  isLeader(): boolean {
    throw new TemperError('TEMPER_INTERNAL', 'not there yet');
  }

  /** Resolves when this process leads; rejects with the reason of the signal. */
  elected(_signal: AbortSignal): Promise<void> {
    throw new TemperError('TEMPER_INTERNAL', 'not there yet');
  }

  /** Aborted with `TEMPER_LEASE_LOST` when the lease was held and is lost. The process then has to end. */
  get lost(): AbortSignal {
    throw new TemperError('TEMPER_INTERNAL', 'not there yet');
  }

  /** A second call does nothing. */
  start(): void {
    throw new TemperError('TEMPER_INTERNAL', 'not there yet');
  }

  /** Stops and gives the lease back, so that another leads at once. */
  async [Symbol.asyncDispose](): Promise<void> {}
}
