import type { Json } from '../lib/json.ts';
import { sha256 } from '../lib/canonical.ts';
import type { BusConnection } from './connection.ts';
import { CONSUMERS, STREAMS, subjects } from './names.ts';
import { publish } from './publish.ts';
import { jsonOf } from './stored.ts';
import { workOff } from './work.ts';

export interface PromotionMessage {
  agentUid: string;
  /** As it was published; whoever takes it checks its form. */
  request: Json;
}

/** Requests for promotion, kept until the operator has taken them. */
export interface Promotions {
  /** The same key twice within 30 minutes is one request; whoever takes them must be idempotent beyond that. TEMPER_BUS_FULL when full. */
  publish(agentUid: string, key: string, request: Json): Promise<void>;
  /** Calls `take` for each until the signal is aborted. One whose `take` throws comes again; `onFailure` is told. */
  consume(
    take: (message: PromotionMessage) => Promise<void>,
    signal: AbortSignal,
    onFailure?: (error: unknown) => void,
  ): Promise<void>;
}

export function createPromotions(connection: BusConnection): Promotions {
  return {
    async publish(agentUid, key, request) {
      await publish(connection, subjects.promotions(agentUid), request, { id: `${agentUid}:${sha256(key)}` });
    },
    async consume(take, signal, onFailure = () => undefined) {
      const queue = { stream: STREAMS.promotions, consumer: CONSUMERS.promotions, signal, onFailure };
      await workOff(connection, queue, async ({ subject, data }) => {
        const request = jsonOf(data);
        const agentUid = subject.slice('temper.promotions.'.length);
        // What is no JSON will be none next time either.
        if (request !== undefined) await take({ agentUid, request });
      });
    },
  };
}
