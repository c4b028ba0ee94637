import type { JetStreamConnection } from '../../nats/connection/connection.ts';
import { StreamShares } from '../../nats/shares/stream-shares.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { GatewayMetrics } from '../../telemetry/temper-metrics.ts';
import { MinuteCounts } from '../http/limits/minute-counts.ts';

export interface TrimmedStreamsDeps {
  connection: JetStreamConnection;
  /** Share of each stream for the agents of one namespace together, in percent. */
  namespacePercent: number;
  namespaceOf: (agentUid: string) => string | undefined;
  metrics: Pick<GatewayMetrics, 'count'>;
  log: Pick<Logger, 'warn'>;
}

/** Holds agents and namespaces to their shares of streams, and names those that exceed them in the log and in a metric. */
export function trimStreams({ metrics, log, ...deps }: TrimmedStreamsDeps): void {
  // An agent that stores without a pause exceeds its share again and again.
  const trims = new MinuteCounts(deps.connection.clock);
  const shares = new StreamShares({
    ...deps,
    onTrimmed: ({ stream, scope, namespace, agentUid }) => {
      metrics.count('temper_stream_trims_total', { stream, scope });
      const key = `${stream}/${scope}/${scope === 'agent' ? agentUid : namespace}`;
      if (trims.add(key) > 1) return;
      log.warn(
        { stream, scope, namespace, agentUid },
        'the share of a stream is exceeded; its oldest messages are removed',
      );
    },
    onError: (error) => log.warn({ error }, 'messages beyond the share of a stream could not be removed'),
  });
  deps.connection.onPublished((subject, bytes, sequence) => shares.count(subject, bytes, sequence));
}
