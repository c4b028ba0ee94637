import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import { TokenBucket } from '../../lib/async/token-bucket.ts';
import type { Clock } from '../../lib/clock.ts';
import type { EventNote, EventSubject } from './event-note.ts';

/** An Event to write: a new one, or a higher count of an existing one. */
export interface EventWrite {
  readonly subject: EventSubject;
  readonly note: EventNote;
  /** The name of the Event object; the same for every count. */
  readonly name: string;
  readonly count: number;
  readonly first: Date;
  readonly last: Date;
}

/** The size of each LRU cache of objects, groups and events. */
const CACHE_SIZE = 4_096;
/** The number of different messages of one reason within the window that get separate Events; further messages are combined into one. */
const MAX_SIMILAR = 10;
const SIMILAR_WINDOW_MS = 600_000;
/** The token bucket per object and reason: one event in five minutes, after a burst. */
const RATE = { burst: 25, perSecond: 1 / 300 };

interface EventGroup {
  readonly messages: Set<string>;
  last: number;
}

interface KnownEvent {
  readonly name: string;
  readonly first: Date;
  count: number;
}

/**
 * Deduplicates, aggregates and rate-limits events by the rules of client-go's EventCorrelator. Unlike client-go, each reason has its own rate
 * limit, so that the events of a crash-looping pod do not suppress a single event of another reason. The number of reasons is small.
 */
export class EventCorrelator {
  readonly #clock: Clock;
  readonly #instance: string;
  readonly #groups = new LRUCache<string, EventGroup>(entries(CACHE_SIZE));
  readonly #known = new LRUCache<string, KnownEvent>(entries(CACHE_SIZE));
  /** By object and reason. */
  readonly #buckets = new LRUCache<string, TokenBucket>({
    ...entries(CACHE_SIZE),
    memoMethod: () => new TokenBucket(this.#clock, RATE),
  });
  #sequence = 0;

  /** `instance` makes the Event names unique per process. */
  constructor(clock: Clock, instance: string) {
    this.#clock = clock;
    this.#instance = instance;
  }

  /** Undefined when the rate limit of the object and reason is exceeded. */
  correlate(subject: EventSubject, note: EventNote): EventWrite | undefined {
    const object = keyOfSubject(subject);
    const group = this.#aggregate(object, note);
    const write = this.#count(group.key, subject, group.note);
    return this.#buckets.memo(keyOf(object, note.reason)).tryTake() ? write : undefined;
  }

  /** Makes the next similar event a new Event object; called when the Event could not be written. */
  forget(write: EventWrite): void {
    for (const [key, known] of this.#known.entries()) {
      if (known.name === write.name) this.#known.delete(key);
    }
  }

  #aggregate(object: string, note: EventNote): { key: string; note: EventNote } {
    const now = this.#clock.monotonic();
    const groupKey = keyOf(object, note.type, note.reason);
    const known = this.#groups.get(groupKey);
    const isRecent = known !== undefined && now - known.last <= SIMILAR_WINDOW_MS;
    const group: EventGroup = isRecent ? known : { messages: new Set(), last: now };
    group.last = now;
    group.messages.add(digestOf(note.message));
    this.#groups.set(groupKey, group);
    if (group.messages.size <= MAX_SIMILAR) return { key: keyOf(groupKey, note.message), note };
    // Keep at most MAX_SIMILAR messages in memory.
    const [oldest] = group.messages;
    if (oldest !== undefined) group.messages.delete(oldest);
    return { key: groupKey, note: { ...note, message: `(combined from similar events): ${note.message}` } };
  }

  #count(key: string, subject: EventSubject, note: EventNote): EventWrite {
    const last = this.#clock.now();
    const known = this.#known.get(key);
    if (known !== undefined) {
      known.count += 1;
      return { subject, note, name: known.name, count: known.count, first: known.first, last };
    }
    this.#sequence += 1;
    const name = nameOf(subject, `${this.#instance} ${this.#sequence} ${last.getTime()}`);
    this.#known.set(key, { name, first: last, count: 1 });
    return { subject, note, name, count: 1, first: last, last };
  }
}

function keyOfSubject({ apiVersion, kind, metadata }: EventSubject): string {
  return keyOf(apiVersion, kind, metadata.namespace ?? '', metadata.name, metadata.uid ?? '');
}

/** Some parts are untrusted text: with a plain separator, different parts could produce the same key. */
function keyOf(...parts: readonly string[]): string {
  return digestOf(JSON.stringify(parts));
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

const MAX_NAME_LENGTH = 253;

function nameOf({ metadata }: EventSubject, seed: string): string {
  const suffix = `.${createHash('sha256')
    .update(`${metadata.uid ?? ''} ${seed}`)
    .digest('hex')
    .slice(0, 16)}`;
  return metadata.name.slice(0, MAX_NAME_LENGTH - suffix.length).replace(/[.-]+$/, '') + suffix;
}
