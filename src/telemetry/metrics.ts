/** Label values have low cardinality: enums and configured names; never keys, ids or untrusted text. */
export type Labels = Readonly<Record<string, string>>;

export interface MetricEntry {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
  /** Upper bounds of a histogram, in seconds. */
  readonly buckets?: readonly number[];
}

/** Names, types, labels and help texts of metrics. Each module has one table, so that all its metrics are listed in one place. */
export type MetricTable = Readonly<Record<string, MetricEntry>>;

export type NamesOf<Table extends MetricTable, Type extends MetricEntry['type']> = {
  [Name in keyof Table]: Table[Name]['type'] extends Type ? Name : never;
}[keyof Table];

/** One sample of a gauge. */
export interface GaugeSample {
  readonly labels: Labels;
  readonly value: number;
}

/** Records the metrics of a table. Durations are in seconds. */
export interface MetricsOf<Table extends MetricTable> {
  /** Increments the counter by `by` (default 1); 0 creates the series of these labels. */
  count(name: NamesOf<Table, 'counter'>, labels: Labels, by?: number): void;
  gauge(name: NamesOf<Table, 'gauge'>, labels: Labels, value: number): void;
  observe(name: NamesOf<Table, 'histogram'>, labels: Labels, seconds: number): void;
  /** Registers a callback that computes the gauge at each scrape. */
  watch(name: NamesOf<Table, 'gauge'>, labels: Labels, read: () => number): void;
}

/** Metrics with gauges whose set of labels is also computed at each scrape. */
export interface ObservableMetricsOf<Table extends MetricTable> extends MetricsOf<Table> {
  /** Registers a callback that returns all samples of the gauge at each scrape; removes other series. If it fails, the previous samples stay. */
  watchAll(name: NamesOf<Table, 'gauge'>, read: () => Iterable<GaugeSample> | Promise<Iterable<GaugeSample>>): void;
}

/** The response of a registry to `GET /metrics`. */
export interface MetricsPage {
  readonly contentType: string;
  metrics(): Promise<string>;
}
