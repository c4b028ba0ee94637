import { AckPolicy, type ConsumerConfig, type ConsumerInfo, DeliverPolicy } from '@nats-io/jetstream';
import type { BusConnection } from './connection.ts';
import { busFailure, isConsumerMissing, isStreamMissing } from './failures.ts';
import { STREAMS, subjects, token } from './names.ts';
import { countsOf, firstMessage } from './stored.ts';

export interface DeliveryRules {
  /** How long each delivery may take without a sign, in order; the number of entries is how often a message is delivered. */
  leasesMilliseconds: readonly number[];
}

const DEFAULT_LEASES = [60_000, 60_000, 90_000, 120_000, 120_000];
const NANOS = 1_000_000;

export interface InboxConsumers {
  /** Makes the consumer of an inbox, or gives it the rules of today. */
  ensure(agentUid: string): Promise<void>;
  info(agentUid: string): Promise<ConsumerInfo | undefined>;
  /** Messages in an inbox that has no consumer yet. */
  unclaimed(agentUid: string): Promise<number>;
  remove(agentUid: string): Promise<void>;
  list(): Promise<string[]>;
  leaseMilliseconds(deliveries: number): number;
}

export function createConsumers(
  connection: BusConnection,
  { leasesMilliseconds = DEFAULT_LEASES }: Partial<DeliveryRules> = {},
): InboxConsumers {
  const lease = (deliveries: number): number =>
    leasesMilliseconds[Math.min(deliveries, leasesMilliseconds.length) - 1] ?? DEFAULT_LEASES[0] ?? 0;
  const config = (agentUid: string): Partial<ConsumerConfig> => ({
    durable_name: token(agentUid),
    filter_subject: subjects.inbox(agentUid),
    deliver_policy: DeliverPolicy.All,
    ack_policy: AckPolicy.Explicit,
    ack_wait: lease(1) * NANOS,
    backoff: leasesMilliseconds.map((milliseconds) => milliseconds * NANOS),
    max_deliver: leasesMilliseconds.length,
    max_ack_pending: 1,
  });
  const asked = async <T>(doing: string, work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await connection.ask(work);
    } catch (error) {
      if (isConsumerMissing(error) || isStreamMissing(error)) return undefined;
      throw busFailure(error, doing);
    }
  };
  return {
    async ensure(agentUid) {
      try {
        await connection.ask(() => connection.manager.consumers.add(STREAMS.inbox, config(agentUid)));
      } catch (error) {
        throw busFailure(error, 'opening an inbox');
      }
    },
    info: (agentUid) =>
      asked('reading the state of an inbox', () => connection.manager.consumers.info(STREAMS.inbox, token(agentUid))),
    async unclaimed(agentUid) {
      const subject = subjects.inbox(agentUid);
      return (await countsOf(connection, STREAMS.inbox, subject))[subject] ?? 0;
    },
    async remove(agentUid) {
      await asked('closing an inbox', () => connection.manager.consumers.delete(STREAMS.inbox, token(agentUid)));
    },
    async list() {
      const names: string[] = [];
      await asked('listing inboxes', async () => {
        for await (const { name } of connection.manager.consumers.list(STREAMS.inbox)) names.push(name);
      });
      return names;
    },
    leaseMilliseconds: lease,
  };
}

/**
 * Where the messages lie that were delivered and are still there: the one in flight, which is the last, and before it those the
 * server gave up.
 */
export async function deliveredAndThere(
  connection: BusConnection,
  agentUid: string,
  info: ConsumerInfo,
): Promise<{ inFlight: number | undefined; givenUp: number[] }> {
  const places: number[] = [];
  for (let from = 1; ; ) {
    const found = await firstMessage(connection, STREAMS.inbox, subjects.inbox(agentUid), from);
    if (found === undefined || found.seq > info.delivered.stream_seq) break;
    places.push(found.seq);
    from = found.seq + 1;
  }
  const inFlight = info.num_ack_pending > 0 ? places.pop() : undefined;
  return { inFlight, givenUp: places };
}
