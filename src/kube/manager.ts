import { TemperError } from '../lib/errors.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Controller } from './controller.ts';
import type { LeaderElection } from './leader-election.ts';

/** What of a reflector the manager needs; so reflectors of many kinds stand in one list. */
export interface Informer extends AsyncDisposable {
  readonly hasSynced: boolean;
  start(): void;
  synced(signal: AbortSignal): Promise<void>;
}

/** Work beside the controllers that only the leader does; it ends when the signal aborts. What it throws ends the process. */
export interface LeaderTask {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

export interface ManagerOptions {
  log: Logger;
  informers: Readonly<Record<string, Informer>>;
  controllers: readonly Controller[];
  /** Started with the controllers. */
  tasks?: readonly LeaderTask[];
  /** Without it every process works. */
  election?: LeaderElection;
  /** Ended last to first before the lease is given back: what writes on behalf of controllers, e.g. the event recorder. */
  resources?: readonly AsyncDisposable[];
  /** Milliseconds for the whole stop; 30,000 when not given. */
  grace?: number;
}

/** Informers, then the election, then controllers; and all of it down again in the opposite order. */
export class Manager {
  readonly options: ManagerOptions;

  constructor(options: ManagerOptions) {
    this.options = options;
  }

  /** Names of informers whose first list is not there yet, for `/readyz`. */
  waitingFor(): readonly string[] {
    throw new TemperError('TEMPER_INTERNAL', 'not there yet');
  }

  /**
   * Runs until the signal aborts, then stops everything and resolves. Rejects with `TEMPER_LEASE_LOST` when another process may lead:
   * the process has to end with exit code 1, at once.
   */
  run(_signal: AbortSignal): Promise<void> {
    throw new TemperError('TEMPER_INTERNAL', 'not there yet');
  }
}
