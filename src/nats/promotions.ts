import type { Json } from '../lib/json.ts';
import { TemperError } from '../lib/errors.ts';
import type { BusConnection } from './connection.ts';

export interface PromotionMessage {
  agentUid: string;
  request: Json;
}

/** Requests for promotion, kept until the operator has taken them. */
export interface Promotions {
  /** The same key twice within 30 minutes is one request; whoever takes them must be idempotent beyond that. TEMPER_BUS_FULL when full. */
  publish(agentUid: string, key: string, request: Json): Promise<void>;
  /** Calls `take` for each until the signal is aborted. One whose `take` throws comes again. */
  consume(take: (message: PromotionMessage) => Promise<void>, signal: AbortSignal): Promise<void>;
}

export function createPromotions(_connection: BusConnection): Promotions {
  throw new TemperError('TEMPER_INTERNAL', 'not built yet');
}
