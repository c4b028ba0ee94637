import type { EventChain } from '../../events/event.ts';
import { TemperError } from '../../lib/errors.ts';
import { MAX_CHAIN_DEPTH } from './chain.ts';

/** The message that the publisher of an event works on. */
interface PublisherMessage {
  readonly root: string;
  readonly depth: number;
  /** RFC 3339. */
  readonly deadline: string;
  readonly ancestors?: readonly string[] | undefined;
}

interface Publisher {
  readonly name: string;
  readonly uid: string;
}

/**
 * The messages of the event are one deeper than that of its publisher, and have no later deadline. `ttlSeconds`: the time after which the event
 * is of no use. Throws TEMPER_MESSAGE_DEPTH.
 */
export function eventChain(
  { root, depth: before, deadline: latest, ancestors = [] }: PublisherMessage,
  { name, uid }: Publisher,
  ttlSeconds: number | undefined,
  now: number,
): EventChain {
  const depth = before + 1;
  if (depth > MAX_CHAIN_DEPTH) {
    throw new TemperError(
      'TEMPER_MESSAGE_DEPTH',
      `the messages of an event of "${name}" would be ${depth} deep in their chain; ${MAX_CHAIN_DEPTH} is allowed`,
    );
  }
  const ends = [Date.parse(latest), ...(ttlSeconds === undefined ? [] : [now + ttlSeconds * 1_000])];
  return { root, depth, deadline: new Date(Math.min(...ends)).toISOString(), ancestors: [...ancestors, uid] };
}
