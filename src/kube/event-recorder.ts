import type { Clock } from '../lib/clock.ts';
import { printable } from '../lib/escape.ts';
import { isTemperError } from '../lib/errors.ts';
import type { Logger } from '../telemetry/log.ts';
import { ApiError, type KubeClient, type ResourceType } from './client.ts';
import { EventCorrelator, type EventWrite } from './event-correlator.ts';
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
  /** For people; a thousand characters of it are kept. Nothing secret. */
  message: string;
}

export interface EventRecorder extends AsyncDisposable {
  /** Never waits and never fails; what cannot be written is counted as dropped. */
  record(subject: EventSubject, note: EventNote): void;
}

export interface EventRecorderOptions {
  client: Pick<KubeClient, 'create' | 'patch'>;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** Who reports, e.g. `temper-operator`. */
  component: string;
  /** Which process of it, e.g. the pod's name. */
  instance: string;
  /** Takes secrets out of messages. */
  redact?: (text: string) => string;
}

/**
 * `v1`, not `events.k8s.io/v1`: repetitions are a count there that `kubectl describe` shows, one small patch each. The server keeps both as
 * one and the same object.
 */
const EVENTS: ResourceType = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

/** They are written one after the other; a burst of some thousand objects must fit, at about a kilobyte each. */
const QUEUE = 10_000;
const LONGEST_MESSAGE = 1_000;
const ATTEMPTS = 3;
const PAUSE = 1_000;
/** Milliseconds for what is queued when the recorder ends. */
const FAREWELL = 3_000;
const NOT_FOUND = 404;
const TOO_MANY_REQUESTS = 429;
const SERVER_ERROR = 500;
const DROPS = ['spam', 'full', 'failed'] as const;

/** Disposing writes what is queued, for a few seconds at most. */
export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  return new Recorder(options);
}

class Recorder implements EventRecorder {
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
    const message = printable(redact(note.message), LONGEST_MESSAGE);
    const write = this.#correlator.correlate(subject, { ...note, message });
    if (write === undefined) {
      this.#drop('spam');
      return;
    }
    if (this.#closed || this.#queue.length >= QUEUE) {
      this.#drop('full');
      return;
    }
    this.#queue.push(write);
    this.#writing ??= this.#writeAll();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    const patience = setTimeout(() => this.#stopping.abort(), FAREWELL);
    await this.#writing;
    clearTimeout(patience);
  }

  async #writeAll(): Promise<void> {
    for (let write = this.#queue.shift(); write !== undefined; write = this.#queue.shift()) {
      if (this.#stopping.signal.aborted) this.#drop('failed');
      else await this.#insist(write);
    }
    this.#writing = undefined;
  }

  async #insist(write: EventWrite): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#stopping;
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#write(write, signal);
        return;
      } catch (error) {
        if (signal.aborted || attempt >= ATTEMPTS || !mayPass(error)) {
          this.#drop('failed');
          this.#correlator.forget(write);
          log.warn({ event: write.name, reason: write.note.reason, error }, 'an event could not be written');
          return;
        }
      }
      // Told to stop, the next attempt fails at once.
      await clock.sleep(PAUSE * attempt, signal).catch(() => {});
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
        // Events live an hour; this one is over.
        if (!(error instanceof ApiError) || error.status !== NOT_FOUND) throw error;
      }
    }
    try {
      await client.create(EVENTS, this.#eventOf(write), signal);
    } catch (error) {
      // Written by an attempt whose answer was lost: nobody else has this name.
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

/** Objects without a namespace have their events in `default`; the server wants it so. */
function namespaceOf({ subject }: EventWrite): string {
  const { namespace } = subject.metadata;
  return namespace === undefined || namespace === '' ? 'default' : namespace;
}

function seconds(time: Date): string {
  return `${time.toISOString().slice(0, 19)}Z`;
}

/** A refusal stays one; a server that is busy or out of reach may take it later. */
function mayPass(error: unknown): boolean {
  if (error instanceof ApiError) return error.status === TOO_MANY_REQUESTS || error.status >= SERVER_ERROR;
  return !isTemperError(error, 'TEMPER_NOT_LEADER');
}
