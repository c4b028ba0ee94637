import type { JetStreamConnection } from './connection.ts';

/** The metrics of requests to NATS, which each process with a connection reports. */
export interface NatsRequestMetrics {
  observe(name: 'temper_nats_request_duration_seconds', labels: { operation: string }, seconds: number): void;
  count(name: 'temper_nats_errors_total', labels: { operation: string; code: string }): void;
}

export function reportRequests(connection: Pick<JetStreamConnection, 'onRequest'>, metrics: NatsRequestMetrics): void {
  connection.onRequest((operation, seconds, error) => {
    metrics.observe('temper_nats_request_duration_seconds', { operation }, seconds);
    if (error !== undefined) metrics.count('temper_nats_errors_total', { operation, code: error.code });
  });
}
