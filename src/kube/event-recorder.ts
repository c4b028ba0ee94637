import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Logger } from '../telemetry/log.ts';
import type { KubeClient } from './client.ts';
import type { Metrics } from './metrics.ts';

/** The object an event is about. */
export interface EventSubject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; uid?: string; resourceVersion?: string };
}

export interface EventNote {
  type: 'Normal' | 'Warning';
  /** CamelCase; the reason of the condition it goes with. */
  reason: string;
  /** For people; at most 1 KiB of it is kept. Nothing secret. */
  message: string;
}

export interface EventRecorder extends AsyncDisposable {
  /** Never waits and never fails; what cannot be written is counted as dropped. */
  record(subject: EventSubject, note: EventNote): void;
}

export interface EventRecorderOptions {
  client: KubeClient;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** Who reports, e.g. `temper-operator`. */
  component: string;
  /** Which process of it, e.g. the pod's name. */
  instance: string;
}

/** Disposing writes what is queued, for a few seconds at most. */
export function createEventRecorder(_options: EventRecorderOptions): EventRecorder {
  throw new TemperError('TEMPER_INTERNAL', 'not there yet');
}
