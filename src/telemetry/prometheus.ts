import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Labels, MetricEntry, MetricTable, GaugeSample, ObservableMetricsOf } from './metrics.ts';

/** In seconds: from a few milliseconds to the minutes of a model call. */
const DEFAULT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** The metrics registry of a role; contains the process metrics: CPU, memory, event loop, garbage collection. */
export function createRegistry(): Registry {
  const registry = new ValidTextRegistry();
  collectDefaultMetrics({ register: registry });
  return registry;
}

/**
 * Corrects the text of prom-client, which writes `Nan` for a value that is not a number, such as the mean event loop lag of an interval
 * without samples. The text format requires `NaN`, and a scraper may reject the whole page.
 */
class ValidTextRegistry extends Registry {
  override async metrics(): Promise<string> {
    return withValidNaN(await super.metrics());
  }
}

/** Replaces the value of samples only: comment lines start with `#`, and a label value cannot end a line. */
function withValidNaN(text: string): string {
  return text
    .split('\n')
    .map((line) => (line.endsWith(' Nan') && !line.startsWith('#') ? `${line.slice(0, -' Nan'.length)} NaN` : line))
    .join('\n');
}

/** Registers the metrics of a table. Throws when the registry already has a metric of the same name. */
export function registerMetrics<const Table extends MetricTable>(
  registry: Registry,
  table: Table,
): ObservableMetricsOf<Table> {
  const counters = new Map<PropertyKey, Counter>();
  const gauges = new Map<PropertyKey, ObservableGauge>();
  const histograms = new Map<PropertyKey, Histogram>();
  for (const [name, { type, labels, help, buckets = DEFAULT_BUCKETS }] of Object.entries<MetricEntry>(table)) {
    const options = { name, help, labelNames: [...labels], registers: [registry] };
    if (type === 'counter') counters.set(name, new Counter(options));
    else if (type === 'histogram') histograms.set(name, new Histogram({ ...options, buckets: [...buckets] }));
    else gauges.set(name, new ObservableGauge(options));
  }
  return {
    count: (name, labels, by = 1) => counters.get(name)?.inc(labels, by),
    gauge: (name, labels, value) => gauges.get(name)?.set(labels, value),
    observe: (name, labels, seconds) => histograms.get(name)?.observe(labels, seconds),
    watch: (name, labels, read) => gauges.get(name)?.watch(labels, read),
    watchAll: (name, read) => gauges.get(name)?.watchAll(read),
  };
}

/** A gauge whose value may be computed at each scrape. */
class ObservableGauge {
  readonly #gauge: Gauge;
  readonly #single: { labels: Labels; read: () => number }[] = [];
  #all: (() => Iterable<GaugeSample> | Promise<Iterable<GaugeSample>>) | undefined;

  constructor(options: { name: string; help: string; labelNames: string[]; registers: Registry[] }) {
    this.#gauge = new Gauge({ ...options, collect: () => this.#collect() });
  }

  set(labels: Labels, value: number): void {
    this.#gauge.set(labels, value);
  }

  watch(labels: Labels, read: () => number): void {
    this.#single.push({ labels, read });
  }

  watchAll(read: () => Iterable<GaugeSample> | Promise<Iterable<GaugeSample>>): void {
    this.#all = read;
  }

  async #collect(): Promise<void> {
    for (const { labels, read } of this.#single) this.#gauge.set(labels, read());
    if (this.#all === undefined) return;
    let readings: readonly GaugeSample[];
    try {
      readings = [...(await this.#all())];
    } catch {
      // A failing gauge must not fail the whole scrape.
      return;
    }
    this.#gauge.reset();
    for (const { labels, value } of readings) this.#gauge.set(labels, value);
  }
}
