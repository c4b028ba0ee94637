import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Logger } from '../telemetry/log.ts';
import type { ResourceType } from './client.ts';
import type { Metrics } from './metrics.ts';
import type { Change, KubeObject, Store } from './store.ts';
import type { Transport } from './transport.ts';

/** Why a change is told: the first list, something that happened, or a look at everything. */
export type Origin = 'initial' | 'change' | 'resync';

/** Must not wait and must not throw: it puts keys into queues, nothing else. */
export type ChangeListener<T extends KubeObject> = (change: Change<T>, origin: Origin) => void;

export interface ReflectorOptions<T extends KubeObject> {
  type: ResourceType;
  transport: Transport;
  store: Store<T>;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** From 0 up to 1. */
  random: () => number;
  /** All namespaces when not given. */
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /** Only `metadata` is fetched. */
  metadataOnly?: boolean;
  /** What is kept of an object. It keeps `metadata.name`, `namespace`, `uid` and `resourceVersion`. */
  transform?: (object: T) => T;
}

/** Keeps a store equal to what the API server has, for ever: list, then watch, then again. */
export class Reflector<T extends KubeObject> implements AsyncDisposable {
  readonly store: Store<T>;

  constructor(options: ReflectorOptions<T>) {
    this.store = options.store;
  }

  /** The first list is in the store. */
  get hasSynced(): boolean {
    return false;
  }

  /** Resolves at the end of the first list; rejects with the reason of the signal. */
  synced(_signal: AbortSignal): Promise<void> {
    throw new TemperError('TEMPER_INTERNAL', 'not there yet');
  }

  /** Who subscribes late is told of what is there as of a first list. */
  subscribe(_listener: ChangeListener<T>): void {
    throw new TemperError('TEMPER_INTERNAL', 'not there yet');
  }

  /** A second call does nothing. */
  start(): void {
    throw new TemperError('TEMPER_INTERNAL', 'not there yet');
  }

  /** Ends list and watch; resolves when nothing of it runs any more. */
  async [Symbol.asyncDispose](): Promise<void> {}
}
