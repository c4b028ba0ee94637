import type { Json } from '../lib/json.ts';
import { sha256 } from '../lib/canonical.ts';
import type { JetStreamConnection } from './connection/connection.ts';
import { CONSUMERS, STREAMS, subjects } from './jetstream/names.ts';
import { publish } from './jetstream/publish.ts';
import { parseJsonBytes } from './jetstream/stream-reader.ts';
import { consumeQueue } from './jetstream/queue-consumer.ts';

export interface PromotionMessage {
  agentUid: string;
  /** As it was published; the consumer must validate it. */
  request: Json;
}

/** Promotion requests, stored until the operator acknowledges them. */
export interface Promotions {
  /** Deduplicated per key for 30 minutes; consumers must be idempotent beyond that. Throws TEMPER_BUS_FULL when the stream is full. */
  publish(agentUid: string, key: string, request: Json): Promise<void>;
  /** Calls `take` for each request until the signal is aborted. When `take` throws, `onFailure` is called and the request is redelivered. */
  consume(
    take: (message: PromotionMessage) => Promise<void>,
    signal: AbortSignal,
    onFailure?: (error: unknown) => void,
  ): Promise<void>;
}

export function createPromotions(connection: JetStreamConnection): Promotions {
  return {
    async publish(agentUid, key, request) {
      await publish(connection, subjects.promotions(agentUid), request, { id: `${agentUid}:${sha256(key)}` });
    },
    async consume(take, signal, onFailure = () => undefined) {
      const queue = { stream: STREAMS.promotions, consumer: CONSUMERS.promotions, signal, onFailure };
      await consumeQueue(connection, queue, async ({ subject, data }) => {
        const request = parseJsonBytes(data);
        const agentUid = subject.slice('temper.promotions.'.length);
        // Invalid JSON is acknowledged: a redelivery would fail in the same way.
        if (request !== undefined) await take({ agentUid, request });
      });
    },
  };
}
