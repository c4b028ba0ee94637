import type { Digest } from '../../lib/canonical.ts';
import { isDigest } from '../../lib/canonical.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { CONSUMERS, STREAMS, subjects } from '../jetstream/names.ts';
import { deduplicationId, publish } from '../jetstream/publish.ts';
import { consumeQueue } from '../jetstream/queue-consumer.ts';
import { parseJsonBytes } from '../jetstream/stream-reader.ts';

/** A review that the panel is asked for. The model keys are in the gateways, so a gateway takes it. */
export interface PanelReviewRequest {
  agentUid: string;
  session: string;
  digest: Digest;
  attempt: string;
  /** Numbers for the reviewers: the figures of the re-runs, and those of the examinations. */
  facts: Record<string, number>;
}

export interface PanelReviews {
  /** `repetition` counts the requests of one attempt; each is stored once within 30 minutes. Throws TEMPER_BUS_*. */
  request(review: PanelReviewRequest, repetition: number): Promise<void>;
  /** Calls `take` for each request, one at a time, until the signal aborts. When `take` throws, the request is redelivered. */
  consume(
    take: (review: PanelReviewRequest, deliveries: number) => Promise<void>,
    signal: AbortSignal,
    onFailure: (error: unknown) => void,
  ): Promise<void>;
}

export function createPanelReviews(connection: JetStreamConnection): PanelReviews {
  return {
    async request(review, repetition) {
      const id = deduplicationId(`panel-review/${review.agentUid}/${review.attempt}/${repetition}`);
      await publish(connection, subjects.panelReviews(review.agentUid), review as unknown as Json, { id });
    },
    async consume(take, signal, onFailure) {
      const queue = { stream: STREAMS.panelReviews, consumer: CONSUMERS.panelReviews, signal, onFailure };
      await consumeQueue(connection, queue, async ({ data, deliveries }) => {
        const review = parseReview(parseJsonBytes(data));
        // Acknowledged without effect: a redelivery would fail in the same way.
        if (review !== undefined) await take(review, deliveries);
      });
    },
  };
}

function parseReview(value: Json | undefined): PanelReviewRequest | undefined {
  if (!isJsonObject(value) || !isJsonObject(value.facts) || !isDigest(value.digest)) return undefined;
  const isValid =
    [value.agentUid, value.session, value.attempt].every((text) => typeof text === 'string') &&
    Object.values(value.facts).every((fact) => typeof fact === 'number');
  return isValid ? (value as unknown as PanelReviewRequest) : undefined;
}
