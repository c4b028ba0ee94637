import type { MetricsOf } from '../../telemetry/metrics.ts';

/** What the operator counts of the bus. */
export const BUS_METRICS = {
  temper_bus_connected: { type: 'gauge', labels: [], help: '1 while the bus is connected, 0 while it is not.' },
  temper_bus_connection_changes_total: {
    type: 'counter',
    labels: ['to'],
    help: 'How often the connection to the bus came and went: connected, lost.',
  },
  temper_bus_topology_ready: {
    type: 'gauge',
    labels: [],
    help: '1 when the streams and buckets were found or made as declared at the last look, 0 otherwise.',
  },
} as const;

export type BusMetrics = MetricsOf<typeof BUS_METRICS>;
