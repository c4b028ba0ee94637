import type { Json } from '../lib/json.ts';
import { printable } from '../lib/printable.ts';
import type { PublishedEvent } from './event.ts';

/** What an event caused. */
export interface EventCounts {
  readonly messages: number;
  /** Triggers and subscriptions that matched and did not fire, or whose message found no space. */
  readonly refused: number;
}

/** An event of the history, as users see it. */
export interface ListedEvent extends Omit<PublishedEvent, 'data' | 'chain'>, EventCounts {
  /** The beginning of the data, as JSON. */
  readonly excerpt: string;
}

const MAX_EXCERPT_CHARACTERS = 200;

export function eventSummary(
  { id, subject, source, agent, time, tainted, data }: PublishedEvent,
  { messages, refused }: EventCounts,
): ListedEvent {
  return { id, subject, source, agent, time, tainted, messages, refused, excerpt: excerptOf(data) };
}

function excerptOf(data: Json): string {
  return printable(JSON.stringify(data), MAX_EXCERPT_CHARACTERS);
}
