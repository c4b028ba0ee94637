import type { Clock } from '../../lib/clock.ts';
import type { NatsInbox } from '../../nats/inbox/inbox.ts';
import type { GatewayMetrics } from '../../telemetry/temper-metrics.ts';

/** The inbox with metrics: counts every message by its outcome at this gateway. */
export function withInboxMetrics(inbox: NatsInbox, metrics: GatewayMetrics, clock: Clock): NatsInbox {
  const count = (outcome: string): void => metrics.count('temper_messages_total', { outcome });
  showZeroes(metrics);
  return {
    async publish(agentUid, sender, message) {
      try {
        const receipt = await inbox.publish(agentUid, sender, message);
        count(receipt.duplicate ? 'duplicate' : 'sent');
        return receipt;
      } catch (error) {
        count('refused');
        throw error;
      }
    },
    async fetchNext(agentUid, waitMilliseconds, signal, limit) {
      const delivery = await inbox.fetchNext(agentUid, waitMilliseconds, signal, limit);
      if (delivery === undefined) return undefined;
      count('delivered');
      if (delivery.redelivery !== undefined) {
        metrics.count('temper_redeliveries_total', { reason: delivery.redelivery });
      }
      if (delivery.coordinates.deliveries === 1) {
        metrics.observe('temper_message_wait_seconds', {}, secondsSince(delivery.message.time, clock));
      }
      return delivery;
    },
    async ack(at, storeReply) {
      await inbox.ack(at, storeReply);
      count('answered');
    },
    async retry(at, delayMs) {
      await inbox.retry(at, delayMs);
      count('retried');
    },
    async park(at, untilMs) {
      await inbox.park(at, untilMs);
      count('parked');
    },
    async reject(at, code, reason) {
      await inbox.reject(at, code, reason);
      count('rejected');
    },
    async rejectSession(agentUid, session, rejection) {
      const rejected = await inbox.rejectSession(agentUid, session, rejection);
      for (const _ of rejected) count('rejected');
      return rejected;
    },
    async withdraw(agentUid, of, storeEnd) {
      const isWithdrawn = await inbox.withdraw(agentUid, of, storeEnd);
      if (isWithdrawn) count('rejected');
      return isWithdrawn;
    },
    async working(at) {
      await inbox.working(at);
      metrics.count('temper_delivery_extensions_total', {});
    },
    ...uncounted(inbox),
  };
}

type Uncounted = 'resume' | 'unendedIn' | 'unendedSessions' | 'parked' | 'inFlight' | 'redeliver' | 'depth' | 'remove';

function uncounted(inbox: NatsInbox): Pick<NatsInbox, Uncounted> {
  return {
    resume: (agentUid, message) => inbox.resume(agentUid, message),
    unendedIn: (agentUid, session) => inbox.unendedIn(agentUid, session),
    unendedSessions: (agentUid) => inbox.unendedSessions(agentUid),
    parked: (agentUid) => inbox.parked(agentUid),
    inFlight: (agentUid) => inbox.inFlight(agentUid),
    redeliver: (agentUid, only) => inbox.redeliver(agentUid, only),
    depth: (agentUid) => inbox.depth(agentUid),
    remove: (agentUid) => inbox.remove(agentUid),
  };
}

/** Every outcome is a series before it happens. */
function showZeroes(metrics: GatewayMetrics): void {
  for (const outcome of ['sent', 'duplicate', 'refused', 'delivered', 'answered', 'retried', 'parked', 'rejected']) {
    metrics.count('temper_messages_total', { outcome }, 0);
  }
  for (const reason of ['timeout', 'retry', 'podDeleted', 'parked'] as const) {
    metrics.count('temper_redeliveries_total', { reason }, 0);
  }
}

/** Never negative: the clocks of gateways may differ a little. */
export function secondsSince(time: string, clock: Clock): number {
  const milliseconds = clock.now().getTime() - Date.parse(time);
  return Number.isFinite(milliseconds) ? Math.max(0, milliseconds / 1_000) : 0;
}
