import { AckPolicy, type ConsumerConfig, type ConsumerInfo, DeliverPolicy } from '@nats-io/jetstream';
import type { JetStreamConnection } from '../connection/connection.ts';
import { natsError, isConsumerMissing, isStreamMissing } from '../connection/errors.ts';
import { STREAMS, subjects, token } from '../jetstream/names.ts';
import { messageCounts, firstMessage } from '../jetstream/stream-reader.ts';

export interface DeliveryRules {
  /** Ack wait of each delivery, in order. The number of entries is the maximum number of deliveries (`max_deliver`). */
  ackWaitsMs: readonly number[];
}

const DEFAULT_ACK_WAITS_MS = [60_000, 60_000, 90_000, 120_000, 120_000];
const NANOS_PER_MS = 1_000_000;

export interface InboxConsumers {
  /** Creates the consumer of an inbox, or updates its configuration. */
  ensure(agentUid: string): Promise<void>;
  info(agentUid: string): Promise<ConsumerInfo | undefined>;
  /** Messages in an inbox that has no consumer yet. */
  countWithoutConsumer(agentUid: string): Promise<number>;
  remove(agentUid: string): Promise<void>;
  list(): Promise<string[]>;
  ackWaitMs(deliveries: number): number;
}

export function createInboxConsumers(
  connection: JetStreamConnection,
  { ackWaitsMs = DEFAULT_ACK_WAITS_MS }: Partial<DeliveryRules> = {},
): InboxConsumers {
  const ackWaitMs = (deliveries: number): number =>
    ackWaitsMs[Math.min(deliveries, ackWaitsMs.length) - 1] ?? DEFAULT_ACK_WAITS_MS[0] ?? 0;
  const config = (agentUid: string): Partial<ConsumerConfig> => ({
    durable_name: token(agentUid),
    filter_subject: subjects.inbox(agentUid),
    deliver_policy: DeliverPolicy.All,
    ack_policy: AckPolicy.Explicit,
    ack_wait: ackWaitMs(1) * NANOS_PER_MS,
    backoff: ackWaitsMs.map((milliseconds) => milliseconds * NANOS_PER_MS),
    max_deliver: ackWaitsMs.length,
    max_ack_pending: 1,
  });
  const ifExists = async <T>(doing: string, work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await connection.request(work);
    } catch (error) {
      if (isConsumerMissing(error) || isStreamMissing(error)) return undefined;
      throw natsError(error, doing);
    }
  };
  return {
    async ensure(agentUid) {
      try {
        await connection.request(() => connection.manager.consumers.add(STREAMS.inbox, config(agentUid)));
      } catch (error) {
        throw natsError(error, 'creating the consumer of an inbox');
      }
    },
    info: (agentUid) =>
      ifExists('reading the consumer of an inbox', () =>
        connection.manager.consumers.info(STREAMS.inbox, token(agentUid)),
      ),
    async countWithoutConsumer(agentUid) {
      const subject = subjects.inbox(agentUid);
      return (await messageCounts(connection, STREAMS.inbox, subject))[subject] ?? 0;
    },
    async remove(agentUid) {
      await ifExists('deleting the consumer of an inbox', () =>
        connection.manager.consumers.delete(STREAMS.inbox, token(agentUid)),
      );
    },
    async list() {
      const names: string[] = [];
      await ifExists('listing the consumers of inboxes', async () => {
        for await (const { name } of connection.manager.consumers.list(STREAMS.inbox)) names.push(name);
      });
      return names;
    },
    ackWaitMs: ackWaitMs,
  };
}

/**
 * Stream sequences of the delivered messages that are still stored: the last one is in flight, those before it have reached
 * `max_deliver`.
 */
export async function deliveredMessages(
  connection: JetStreamConnection,
  agentUid: string,
  info: ConsumerInfo,
): Promise<{ inFlight: number | undefined; exhausted: number[] }> {
  const sequences: number[] = [];
  for (let fromSequence = 1; ; ) {
    const found = await firstMessage(connection, STREAMS.inbox, subjects.inbox(agentUid), fromSequence);
    if (found === undefined || found.seq > info.delivered.stream_seq) break;
    sequences.push(found.seq);
    fromSequence = found.seq + 1;
  }
  const inFlight = info.num_ack_pending > 0 ? sequences.pop() : undefined;
  return { inFlight, exhausted: sequences };
}
