import type { JetStreamConnection } from '../../nats/connection/connection.ts';
import { STREAMS } from '../../nats/jetstream/names.ts';
import { messageCounts } from '../../nats/jetstream/stream-reader.ts';
import { MAX_NAMESPACE_RECORDS, type StreamUsage } from '../../nats/jetstream/topology.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { OperatorMetrics } from '../../telemetry/temper-metrics.ts';

/** From here on the log has an error: NATS rejects evidence of decisions when the stream, or the part of a namespace, is full. */
const ALARM_SHARE = 0.8;
const PREFIX = 'temper.audit.';

/** Warns before NATS rejects evidence of decisions. Each alarm is logged once, until the stream or namespace is below the share again. */
export class AuditAlarm {
  readonly #log: Pick<Logger, 'error'>;
  readonly #metrics: Pick<OperatorMetrics, 'gauge'>;
  #isStreamNearlyFull = false;
  #nearlyFull = new Set<string>();

  constructor(log: Pick<Logger, 'error'>, metrics: Pick<OperatorMetrics, 'gauge'>) {
    this.#log = log;
    this.#metrics = metrics;
  }

  /** The bytes of the audit stream. */
  checkStream({ bytes, maxBytes }: Pick<StreamUsage, 'bytes' | 'maxBytes'>): void {
    const isNearlyFull = bytes >= ALARM_SHARE * maxBytes;
    if (isNearlyFull && !this.#isStreamNearlyFull)
      this.#log.error(
        { bytes, maxBytes },
        'the audit stream is nearly full; a full one rejects observed evidence, and nothing is forged',
      );
    this.#isStreamNearlyFull = isNearlyFull;
  }

  /** The records of each namespace in the audit stream. Throws TEMPER_BUS_*. */
  async checkNamespaces(connection: JetStreamConnection): Promise<void> {
    const counts = Object.entries(await messageCounts(connection, STREAMS.audit, `${PREFIX}*`));
    const most = counts.reduce((max, [, records]) => Math.max(max, records), 0);
    this.#metrics.gauge('temper_audit_namespace_max_ratio', {}, most / MAX_NAMESPACE_RECORDS);
    const nearlyFull = counts.filter(([, records]) => records >= ALARM_SHARE * MAX_NAMESPACE_RECORDS);
    for (const [subject, records] of nearlyFull) {
      if (this.#nearlyFull.has(subject)) continue;
      const namespace = subject.slice(PREFIX.length);
      this.#log.error(
        { namespace, records, maxRecords: MAX_NAMESPACE_RECORDS },
        'a namespace has nearly as many audit records as it may have; further ones are rejected, and nothing is forged in it',
      );
    }
    this.#nearlyFull = new Set(nearlyFull.map(([subject]) => subject));
  }
}
