import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Names, kinds, labels and help of metrics: one list a part, so that what a dashboard may use can be read in one place. */
export type MetricList = Readonly<
  Record<
    string,
    {
      readonly type: 'counter' | 'gauge' | 'histogram';
      /** Labels whose values are bounded: enums, configured names, never text somebody else chose. */
      readonly labels: readonly string[];
      readonly help: string;
      /** Upper bounds in seconds, for histograms. */
      readonly buckets?: readonly number[];
    }
  >
>;

type NamesOf<List extends MetricList, Type> = {
  [Name in keyof List]: List[Name]['type'] extends Type ? Name : never;
}[keyof List] &
  string;

type MetricLabels = Readonly<Record<string, string>>;

/** Where the numbers of one list go. Durations are in seconds. */
export interface MetricSink<List extends MetricList> {
  /** Adds `by`, one when not given; zero makes the combination of labels known. */
  count(name: NamesOf<List, 'counter'>, labels: MetricLabels, by?: number): void;
  gauge(name: NamesOf<List, 'gauge'>, labels: MetricLabels, value: number): void;
  observe(name: NamesOf<List, 'histogram'>, labels: MetricLabels, seconds: number): void;
}

/** From a few milliseconds to the minutes a model may take. */
const DEFAULT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** The list as Prometheus metrics of a registry. Throws when the registry has one of the names already. */
export function prometheusMetrics<List extends MetricList>(registry: Registry, list: List): MetricSink<List> {
  const counters = new Map<string, Counter>();
  const gauges = new Map<string, Gauge>();
  const histograms = new Map<string, Histogram>();
  for (const [name, { type, labels, help, buckets }] of Object.entries(list)) {
    const common = { name, help, labelNames: [...labels], registers: [registry] };
    if (type === 'counter') counters.set(name, new Counter(common));
    else if (type === 'gauge') gauges.set(name, new Gauge(common));
    else histograms.set(name, new Histogram({ ...common, buckets: [...(buckets ?? DEFAULT_BUCKETS)] }));
  }
  return {
    count: (name, labels, by = 1) => found(counters, name).inc({ ...labels }, by),
    gauge: (name, labels, value) => found(gauges, name).set({ ...labels }, value),
    observe: (name, labels, seconds) => found(histograms, name).observe({ ...labels }, seconds),
  };
}

function found<Metric>(metrics: ReadonlyMap<string, Metric>, name: string): Metric {
  const metric = metrics.get(name);
  if (metric === undefined) throw new RangeError(`no metric is named ${name}`);
  return metric;
}
