import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../lib/clock.ts';
import type { EventNote, EventSubject } from './event-recorder.ts';

/** What to write: a new event, or a higher count of one that is there. */
export interface EventWrite {
  readonly subject: EventSubject;
  readonly note: EventNote;
  /** Name of the Event, the same for each count of it. */
  readonly name: string;
  readonly count: number;
  readonly first: Date;
  readonly last: Date;
}

/** Objects, groups and events that are remembered; the ones not heard of for longest are forgotten. */
const REMEMBERED = 4_096;
/** So many different messages of one reason within the window are told apart; the rest are counted together. */
const SIMILAR = 10;
const SIMILAR_WINDOW = 600_000;
/** Events of one object and reason at once, and then one more each so many milliseconds. */
const BURST = 25;
const REFILL = 300_000;

interface Group {
  readonly messages: Set<string>;
  last: number;
}

interface Bucket {
  tokens: number;
  since: number;
}

interface Known {
  readonly name: string;
  readonly first: Date;
  count: number;
}

/**
 * Turns what is reported into as few writes as tell the same, by the rules of the recorder that Go controllers use; but each reason has its
 * own share, so that a pod that crashes again and again does not hide what is said of its agent once. Reasons are few.
 */
export class EventCorrelator {
  readonly #clock: Clock;
  readonly #instance: string;
  readonly #groups = new LRUCache<string, Group>({ max: REMEMBERED });
  readonly #known = new LRUCache<string, Known>({ max: REMEMBERED });
  readonly #buckets = new LRUCache<string, Bucket>({ max: REMEMBERED });
  #sequence = 0;

  /** The instance makes the names of two processes differ. */
  constructor(clock: Clock, instance: string) {
    this.#clock = clock;
    this.#instance = instance;
  }

  /** Undefined when the object has reported too much of this. */
  correlate(subject: EventSubject, note: EventNote): EventWrite | undefined {
    const object = keyOfSubject(subject);
    const { key, told } = this.#grouped(object, note);
    const write = this.#counted(key, subject, told);
    return this.#mayReport(keyOf(object, note.reason)) ? write : undefined;
  }

  /** The Event is not there any more; the next one like it is a new one. */
  forget(write: EventWrite): void {
    for (const [key, known] of this.#known.entries()) {
      if (known.name === write.name) this.#known.delete(key);
    }
  }

  #grouped(object: string, note: EventNote): { key: string; told: EventNote } {
    const now = this.#clock.monotonic();
    const groupKey = keyOf(object, note.type, note.reason);
    const known = this.#groups.get(groupKey);
    const isRecent = known !== undefined && now - known.last <= SIMILAR_WINDOW;
    const group: Group = isRecent ? known : { messages: new Set(), last: now };
    group.last = now;
    group.messages.add(digestOf(note.message));
    this.#groups.set(groupKey, group);
    if (group.messages.size <= SIMILAR) return { key: keyOf(groupKey, note.message), told: note };
    // As many as are told apart stay remembered, not all.
    const [oldest] = group.messages;
    if (oldest !== undefined) group.messages.delete(oldest);
    return { key: groupKey, told: { ...note, message: `(combined from similar events): ${note.message}` } };
  }

  #counted(key: string, subject: EventSubject, note: EventNote): EventWrite {
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

  #mayReport(key: string): boolean {
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(key) ?? { tokens: BURST, since: now };
    bucket.tokens = Math.min(BURST, bucket.tokens + (now - bucket.since) / REFILL);
    bucket.since = now;
    const may = bucket.tokens >= 1;
    if (may) bucket.tokens -= 1;
    this.#buckets.set(key, bucket);
    return may;
  }
}

function keyOfSubject({ apiVersion, kind, metadata }: EventSubject): string {
  return keyOf(apiVersion, kind, metadata.namespace ?? '', metadata.name, metadata.uid ?? '');
}

/** Texts of strangers stand in it: a plain joint would let one pass for two. */
function keyOf(...parts: readonly string[]): string {
  return digestOf(JSON.stringify(parts));
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

const LONGEST_NAME = 253;

function nameOf({ metadata }: EventSubject, seed: string): string {
  const suffix = `.${createHash('sha256')
    .update(`${metadata.uid ?? ''} ${seed}`)
    .digest('hex')
    .slice(0, 16)}`;
  return metadata.name.slice(0, LONGEST_NAME - suffix.length).replace(/[.-]+$/, '') + suffix;
}
