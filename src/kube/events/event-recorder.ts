import { resourceType } from '../client/resource-path.ts';
import type { Clock } from '../../lib/clock.ts';
import { printable } from '../../lib/printable.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Logger } from '../../telemetry/log.ts';
import { ApiError, type KubeClient } from '../client/kube-client.ts';
import { EventCorrelator, type EventWrite } from './event-correlator.ts';
import type { EventNote, EventSubject } from './event-note.ts';
import type { Metrics } from '../metrics.ts';

export interface EventRecorder extends AsyncDisposable {
  /** Queues the event. Never waits and never throws; an event that cannot be written is counted in `events_dropped_total`. */
  record(subject: EventSubject, note: EventNote): void;
  /** Resolves when every event that is queued is written or dropped. Never rejects. */
  written(): Promise<void>;
}

export interface EventRecorderOptions {
  client: Pick<KubeClient, 'create' | 'patch'>;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** The reporting component, e.g. `temper-operator`. */
  component: string;
  /** The process of the component, e.g. the name of its pod. */
  instance: string;
  /** Redacts secrets in messages. */
  redact?: (text: string) => string;
}

/**
 * `v1`, not `events.k8s.io/v1`: in `v1` a repetition is a `count` that `kubectl describe` shows, and costs one small patch. The API server
 * stores both versions as the same object.
 */
const EVENTS = resourceType('v1', 'events', 'Event');

/** Events are written one at a time; the queue must hold a burst from some thousand objects, at about one kilobyte per event. */
const MAX_QUEUE_LENGTH = 10_000;
const MAX_MESSAGE_LENGTH = 1_000;
const MAX_ATTEMPTS = 3;
const RETRY_DELAY_MS = 1_000;
const SHUTDOWN_FLUSH_MS = 3_000;
const NOT_FOUND = 404;
const TOO_MANY_REQUESTS = 429;
const SERVER_ERROR = 500;
const DROPS = ['spam', 'full', 'failed'] as const;

/** Disposing it writes the queued events, for at most a few seconds. */
export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  return new QueuedEventRecorder(options);
}

class QueuedEventRecorder implements EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #correlator: EventCorrelator;
  readonly #queue: EventWrite[] = [];
  readonly #stopping = new AbortController();
  #closed = false;
  #writing: Promise<void> | undefined;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#correlator = new EventCorrelator(options.clock, options.instance);
    for (const reason of DROPS) this.#drop(reason, 0);
  }

  record(subject: EventSubject, note: EventNote): void {
    const { redact = (text: string) => text } = this.#options;
    const message = printable(redact(note.message), MAX_MESSAGE_LENGTH);
    const write = this.#correlator.correlate(subject, { ...note, message });
    if (write === undefined) {
      this.#drop('spam');
      return;
    }
    if (this.#closed || this.#queue.length >= MAX_QUEUE_LENGTH) {
      this.#drop('full');
      return;
    }
    this.#queue.push(write);
    this.#writing ??= this.#writeAll();
  }

  async written(): Promise<void> {
    await this.#writing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    const timer = setTimeout(() => this.#stopping.abort(), SHUTDOWN_FLUSH_MS);
    await this.#writing;
    clearTimeout(timer);
  }

  async #writeAll(): Promise<void> {
    for (let write = this.#queue.shift(); write !== undefined; write = this.#queue.shift()) {
      if (this.#stopping.signal.aborted) this.#drop('failed');
      else await this.#writeWithRetry(write);
    }
    this.#writing = undefined;
  }

  async #writeWithRetry(write: EventWrite): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#stopping;
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#write(write, signal);
        return;
      } catch (error) {
        if (signal.aborted || attempt >= MAX_ATTEMPTS || !isRetryable(error)) {
          this.#drop('failed');
          this.#correlator.forget(write);
          log.warn({ event: write.name, reason: write.note.reason, error }, 'the event could not be written');
          return;
        }
      }
      // After an abort the next attempt fails immediately.
      await clock.sleep(RETRY_DELAY_MS * attempt, signal).catch(() => {});
    }
  }

  async #write(write: EventWrite, signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    if (write.count > 1) {
      const { count, name } = write;
      const patch = { count, lastTimestamp: seconds(write.last), message: write.note.message };
      try {
        await client.patch(EVENTS, { namespace: namespaceOf(write), name }, patch, signal);
        return;
      } catch (error) {
        // The API server deletes Events after an hour; this one has expired.
        if (!(error instanceof ApiError) || error.status !== NOT_FOUND) throw error;
      }
    }
    try {
      await client.create(EVENTS, this.#eventOf(write), signal);
    } catch (error) {
      // An earlier attempt succeeded and its response was lost: the name is unique to this process.
      if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
    }
  }

  #eventOf(write: EventWrite): object {
    const { component, instance } = this.#options;
    const { subject, note, name, count, first, last } = write;
    const { metadata, apiVersion, kind } = subject;
    return {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace: namespaceOf(write), name },
      involvedObject: {
        apiVersion,
        kind,
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        resourceVersion: metadata.resourceVersion,
      },
      type: note.type,
      reason: note.reason,
      message: note.message,
      count,
      firstTimestamp: seconds(first),
      lastTimestamp: seconds(last),
      source: { component },
      reportingComponent: component,
      reportingInstance: instance.slice(0, 128),
    };
  }

  #drop(reason: (typeof DROPS)[number], by = 1): void {
    this.#options.metrics.count('events_dropped_total', { reason }, by);
  }
}

/** The API server requires the events of cluster-scoped objects to be in the namespace `default`. */
function namespaceOf({ subject }: EventWrite): string {
  const { namespace } = subject.metadata;
  return namespace === undefined || namespace === '' ? 'default' : namespace;
}

function seconds(time: Date): string {
  return `${time.toISOString().slice(0, 19)}Z`;
}

/** A rejected event is not retried; a busy or unreachable API server may accept it later. */
function isRetryable(error: unknown): boolean {
  if (error instanceof ApiError) return error.status === TOO_MANY_REQUESTS || error.status >= SERVER_ERROR;
  return !isTemperError(error, 'TEMPER_NOT_LEADER');
}
