import type { BusConnection } from '../nats/connection.ts';
import { STREAMS } from '../nats/names.ts';
import type { GatewayMetrics } from '../telemetry/temper-metrics.ts';

/** Metrics of NATS that are read at scrape time. */
export function observeBus(bus: BusConnection, metrics: GatewayMetrics): void {
  metrics.watch('temper_bus_connected', {}, () => (bus.state().connected ? 1 : 0));
  metrics.watchAll('temper_dead_letters', async () => {
    // A scrape does not wait for NATS: without a connection the last value stays.
    if (!bus.state().connected) throw new Error('NATS is not connected');
    const { state } = await bus.ask(() => bus.manager.streams.info(STREAMS.deadLetters));
    return [{ labels: {}, value: state.messages }];
  });
}
