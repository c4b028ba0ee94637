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

/** The messages of an event are one deeper than the message whose work caused it, and have no later deadline. Undefined: they would be too deep. */
export function chainAfter(
  { root, depth: before, deadline, ancestors = [] }: PublisherMessage,
  uid: string,
): EventChain | undefined {
  const depth = before + 1;
  return depth > MAX_CHAIN_DEPTH ? undefined : { root, depth, deadline, ancestors: [...ancestors, uid] };
}

/** `ttlSeconds`: the time after which the event is of no use. Throws TEMPER_MESSAGE_DEPTH. */
export function eventChain(
  message: PublisherMessage,
  { name, uid }: Publisher,
  ttlSeconds: number | undefined,
  now: number,
): EventChain {
  const chain = chainAfter(message, uid);
  if (chain === undefined) {
    throw new TemperError(
      'TEMPER_MESSAGE_DEPTH',
      `the messages of an event of "${name}" would be ${message.depth + 1} deep in their chain; ${MAX_CHAIN_DEPTH} is allowed`,
    );
  }
  const ends = [Date.parse(chain.deadline), ...(ttlSeconds === undefined ? [] : [now + ttlSeconds * 1_000])];
  return { ...chain, deadline: new Date(Math.min(...ends)).toISOString() };
}
