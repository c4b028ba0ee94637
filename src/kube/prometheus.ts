import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type Labels, METRICS, type MetricEntry, type Metrics, type MetricsOf, type MetricTable } from './metrics.ts';

interface Watched {
  readonly labels: Labels;
  readonly read: () => number;
}

/** A registry with the metrics of the process: CPU, memory, event loop, garbage collection. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** The metrics of the runtime. Throws when the registry has them already. */
export function prometheusMetrics(registry: Registry): Metrics {
  return registerMetrics(registry, METRICS);
}

/** The metrics of a table, for what a role counts besides. Throws when the registry has one of the names already. */
export function registerMetrics<const Table extends MetricTable>(registry: Registry, table: Table): MetricsOf<Table> {
  const counters = new Map<PropertyKey, Counter>();
  const gauges = new Map<PropertyKey, Gauge>();
  const histograms = new Map<PropertyKey, Histogram>();
  const watched = new Map<PropertyKey, Watched[]>();
  for (const [name, entry] of Object.entries<MetricEntry>(table)) {
    const options = { name, help: entry.help, labelNames: [...entry.labels], registers: [registry] };
    if (entry.type === 'counter') counters.set(name, new Counter(options));
    else if (entry.type === 'histogram') {
      histograms.set(
        name,
        new Histogram(entry.buckets === undefined ? options : { ...options, buckets: [...entry.buckets] }),
      );
    } else {
      const collect = function (this: Gauge): void {
        for (const { labels, read } of watched.get(name) ?? []) this.set(labels, read());
      };
      gauges.set(name, new Gauge({ ...options, collect }));
    }
  }
  return {
    count: (name, labels, by = 1) => counters.get(name)?.inc(labels, by),
    gauge: (name, labels, value) => gauges.get(name)?.set(labels, value),
    observe: (name, labels, seconds) => histograms.get(name)?.observe(labels, seconds),
    watch(name, labels, read) {
      const all = watched.get(name) ?? [];
      all.push({ labels, read });
      watched.set(name, all);
    },
  };
}
