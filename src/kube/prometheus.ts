import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { type CounterName, type GaugeName, type HistogramName, type Labels, METRICS, type Metrics } from './metrics.ts';

type Entry = (typeof METRICS)[keyof typeof METRICS];

interface Watched {
  readonly labels: Labels;
  readonly read: () => number;
}

/** The metrics of the runtime, in a registry that takes metrics of a role too. Throws when the registry has them already. */
export function prometheusMetrics(registry: Registry): Metrics {
  const counters = new Map<string, Counter>();
  const gauges = new Map<string, Gauge>();
  const histograms = new Map<string, Histogram>();
  const watched = new Map<string, Watched[]>();
  for (const [name, entry] of Object.entries(METRICS) as [string, Entry][]) {
    const options = { name, help: entry.help, labelNames: [...entry.labels], registers: [registry] };
    if (entry.type === 'counter') counters.set(name, new Counter(options));
    else if (entry.type === 'histogram') {
      histograms.set(name, new Histogram({ ...options, buckets: [...entry.buckets] }));
    } else {
      const collect = function (this: Gauge): void {
        for (const { labels, read } of watched.get(name) ?? []) this.set(labels, read());
      };
      gauges.set(name, new Gauge({ ...options, collect }));
    }
  }
  return {
    count: (name: CounterName, labels: Labels, by = 1) => counters.get(name)?.inc(labels, by),
    gauge: (name: GaugeName, labels: Labels, value: number) => gauges.get(name)?.set(labels, value),
    observe: (name: HistogramName, labels: Labels, seconds: number) => histograms.get(name)?.observe(labels, seconds),
    watch(name: GaugeName, labels: Labels, read: () => number) {
      const all = watched.get(name) ?? [];
      all.push({ labels, read });
      watched.set(name, all);
    },
  };
}
