import { MAX_CHAIN_DEPTH } from '../../agent/messages/chain.ts';
import type { EventChain } from '../../events/event.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';

/** The messages of an event are one deeper than the message whose work caused it, and have no later deadline. Undefined: they would be too deep. */
export function chainAfter({
  root,
  depth: before,
  deadline,
  ancestors = [],
  agentUid,
}: DeliveryTokenClaims): EventChain | undefined {
  const depth = before + 1;
  return depth > MAX_CHAIN_DEPTH ? undefined : { root, depth, deadline, ancestors: [...ancestors, agentUid] };
}
