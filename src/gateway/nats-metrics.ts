import type { JetStreamConnection } from '../nats/connection/connection.ts';
import { reportRequests } from '../nats/connection/request-metrics.ts';
import type { NatsAudit } from '../nats/audit.ts';
import { STREAMS } from '../nats/jetstream/names.ts';
import { isTemperError } from '../lib/errors.ts';
import type { Logger } from '../telemetry/log.ts';
import type { GatewayMetrics } from '../telemetry/temper-metrics.ts';

/** Metrics of NATS that are read at scrape time. */
export function registerNatsMetrics(bus: JetStreamConnection, metrics: GatewayMetrics): void {
  metrics.watch('temper_nats_connected', {}, () => (bus.state().connected ? 1 : 0));
  reportRequests(bus, metrics);
  metrics.watchAll('temper_dead_letters', async () => {
    // A scrape does not wait for NATS: without a connection the last value stays.
    if (!bus.state().connected) throw new Error('NATS is not connected');
    const { state } = await bus.request(() => bus.manager.streams.info(STREAMS.deadLetters));
    return [{ labels: {}, value: state.messages }];
  });
}

/** Counts and logs observed evidence that does not fit: an alarm, because NATS removes nothing for it. */
export function withAuditAlarm(audit: NatsAudit, metrics: GatewayMetrics, log: Logger): NatsAudit {
  metrics.count('temper_audit_rejected_total', {}, 0);
  return {
    ...audit,
    async append(source, record, once) {
      try {
        return await audit.append(source, record, once);
      } catch (error) {
        if (record.evidence === 'observed' && isTemperError(error, 'TEMPER_BUS_FULL')) {
          metrics.count('temper_audit_rejected_total', {});
          const { namespace } = source;
          log.error({ namespace, action: record.action, error }, 'the audit stream is too full for observed evidence');
        }
        throw error;
      }
    },
  };
}
