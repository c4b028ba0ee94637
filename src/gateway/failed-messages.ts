import type { ErrorCode } from '../lib/error-codes.ts';
import type { DeliveryCoordinates } from '../nats/delivery.ts';
import type { GatewayDeps } from './deps.ts';
import type { LeaseClaims } from './lease.ts';

/** A lease as the bus knows the delivery it is for. */
export function coordinatesOf({
  agentUid,
  message,
  at,
}: Pick<LeaseClaims, 'agentUid' | 'message' | 'at'>): DeliveryCoordinates {
  return { agentUid, message, ...at };
}

/** Gives a message up: first who follows is told, then it goes to the dead letters. Twice is once. */
export async function endMessage(
  claims: Pick<LeaseClaims, 'agentUid' | 'session' | 'message' | 'at'>,
  code: ErrorCode,
  text: string,
  { events, inbox }: Pick<GatewayDeps, 'events' | 'inbox'>,
): Promise<void> {
  const { agentUid, session, message } = claims;
  await events.append(agentUid, session, { kind: 'failed', message, code, text });
  await inbox.reject(coordinatesOf(claims), code, text);
}
