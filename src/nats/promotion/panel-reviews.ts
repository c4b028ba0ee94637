import type { Digest } from '../../lib/canonical.ts';
import { isDigest } from '../../lib/canonical.ts';
import { isJsonObject, type Json, parseJsonBytes } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { QUEUES, subjects } from '../jetstream/names.ts';
import { deduplicationId, publish } from '../jetstream/publish.ts';
import { consumeQueue } from '../jetstream/queue-consumer.ts';

/** The testers of the policy are asked for cases. */
export interface TesterRequest {
  agentUid: string;
  session: string;
  digest: Digest;
  attempt: string;
}

/** A review that the panel is asked for. */
export interface PanelReviewRequest extends TesterRequest {
  /** Numbers for the reviewers: the figures of the re-runs, and those of the examination. */
  facts: Record<string, number>;
}

/** What models are asked about a promotion. The model keys are in the gateways, so a gateway takes it. */
export type ReviewJob = ({ kind: 'Testers' } & TesterRequest) | ({ kind: 'Panel' } & PanelReviewRequest);

export interface PanelReviews {
  /** `repetition` counts the requests of one attempt; each is stored once within 30 minutes. Throws TEMPER_BUS_*. */
  request(review: PanelReviewRequest, repetition: number): Promise<void>;
  requestTesters(request: TesterRequest, repetition: number): Promise<void>;
  /** Calls `take` for each request, one at a time, until the signal aborts. When `take` throws, the request is redelivered. */
  consume(
    take: (job: ReviewJob, deliveries: number) => Promise<void>,
    signal: AbortSignal,
    onFailure: (error: unknown) => void,
  ): Promise<void>;
}

export function createPanelReviews(connection: JetStreamConnection): PanelReviews {
  const send = async (job: ReviewJob, repetition: number): Promise<void> => {
    const name = job.kind === 'Panel' ? 'panel-review' : 'testers';
    const id = deduplicationId(`${name}/${job.agentUid}/${job.attempt}/${repetition}`);
    await publish(connection, subjects.panelReviews(job.agentUid), job as unknown as Json, { id });
  };
  return {
    request: (review, repetition) => send({ kind: 'Panel', ...review }, repetition),
    requestTesters: (request, repetition) => send({ kind: 'Testers', ...request }, repetition),
    async consume(take, signal, onFailure) {
      const queue = { ...QUEUES.panelReviews, signal, onFailure };
      await consumeQueue(connection, queue, async ({ data, deliveries }) => {
        const job = parseJob(parseJsonBytes(data));
        // Acknowledged without effect: a redelivery would fail in the same way.
        if (job !== undefined) await take(job, deliveries);
      });
    },
  };
}

function parseJob(value: Json | undefined): ReviewJob | undefined {
  if (!isJsonObject(value) || !isDigest(value.digest)) return undefined;
  const { agentUid, session, attempt, facts, kind = 'Panel' } = value;
  if (![agentUid, session, attempt].every((text) => typeof text === 'string')) return undefined;
  if (kind === 'Testers') return value as unknown as ReviewJob;
  const isPanel =
    kind === 'Panel' && isJsonObject(facts) && Object.values(facts).every((fact) => typeof fact === 'number');
  return isPanel ? ({ ...value, kind } as unknown as ReviewJob) : undefined;
}
