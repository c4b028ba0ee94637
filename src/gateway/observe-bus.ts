import type { BusConnection } from '../nats/connection.ts';
import { STREAMS } from '../nats/names.ts';
import type { GatewayMetrics } from '../telemetry/temper-metrics.ts';

/** What of the bus is read when somebody looks. */
export function observeBus(bus: BusConnection, metrics: GatewayMetrics): void {
  metrics.watch('temper_bus_connected', {}, () => (bus.state().connected ? 1 : 0));
  metrics.watchAll('temper_dead_letters', async () => {
    // Nobody who looks waits for a bus that is away: the last number stands then.
    if (!bus.state().connected) throw new Error('the bus is away');
    const { state } = await bus.ask(() => bus.manager.streams.info(STREAMS.deadLetters));
    return [{ labels: {}, value: state.messages }];
  });
}
