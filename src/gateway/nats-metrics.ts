import type { JetStreamConnection } from '../nats/connection/connection.ts';
import { STREAMS } from '../nats/jetstream/names.ts';
import type { GatewayMetrics } from '../telemetry/temper-metrics.ts';

/** Metrics of NATS that are read at scrape time. */
export function registerNatsMetrics(bus: JetStreamConnection, metrics: GatewayMetrics): void {
  metrics.watch('temper_nats_connected', {}, () => (bus.state().connected ? 1 : 0));
  metrics.watchAll('temper_dead_letters', async () => {
    // A scrape does not wait for NATS: without a connection the last value stays.
    if (!bus.state().connected) throw new Error('NATS is not connected');
    const { state } = await bus.request(() => bus.manager.streams.info(STREAMS.deadLetters));
    return [{ labels: {}, value: state.messages }];
  });
}
