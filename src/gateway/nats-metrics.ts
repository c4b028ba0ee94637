import type { JetStreamConnection } from '../nats/connection/connection.ts';
import { reportRequests } from '../nats/connection/request-metrics.ts';
import type { AuditRecord } from '../audit/port.ts';
import type { AuditSource, NatsAudit } from '../nats/audit.ts';
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
  const alarmed = async <T>({ namespace }: AuditSource, record: AuditRecord, stored: Promise<T>): Promise<T> => {
    try {
      return await stored;
    } catch (error) {
      if (record.evidence === 'observed' && isTemperError(error, 'TEMPER_BUS_FULL')) {
        metrics.count('temper_audit_rejected_total', {});
        log.error({ namespace, action: record.action, error }, 'the audit stream is too full for observed evidence');
      }
      throw error;
    }
  };
  return {
    ...audit,
    append: (source, record, once) => alarmed(source, record, audit.append(source, record, once)),
    appendFirst: (source, record, key) => alarmed(source, record, audit.appendFirst(source, record, key)),
  };
}
