/** Values of labels are few and known: enums, configured names; never a key, an id or text somebody else chose. */
export type Labels = Readonly<Record<string, string>>;

export interface MetricEntry {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
  /** Upper bounds of a histogram, in seconds. */
  readonly buckets?: readonly number[];
}

/** Names, kinds, labels and help of metrics: one table a part, so that what a dashboard may use can be read in one place. */
export type MetricTable = Readonly<Record<string, MetricEntry>>;

export type NamesOf<Table extends MetricTable, Type extends MetricEntry['type']> = {
  [Name in keyof Table]: Table[Name]['type'] extends Type ? Name : never;
}[keyof Table];

/** One value of a gauge. */
export interface Reading {
  readonly labels: Labels;
  readonly value: number;
}

/** Where the numbers of a table go. Durations are in seconds. */
export interface MetricsOf<Table extends MetricTable> {
  /** Adds `by`, one when not given; zero makes the combination of labels known. */
  count(name: NamesOf<Table, 'counter'>, labels: Labels, by?: number): void;
  gauge(name: NamesOf<Table, 'gauge'>, labels: Labels, value: number): void;
  observe(name: NamesOf<Table, 'histogram'>, labels: Labels, seconds: number): void;
  /** A gauge that is read when somebody looks, since its value changes by itself. */
  watch(name: NamesOf<Table, 'gauge'>, labels: Labels, read: () => number): void;
}

/** A table of which gauges can be read whole as well, where even their labels change by themselves. */
export interface WatchedMetricsOf<Table extends MetricTable> extends MetricsOf<Table> {
  /** All values of a gauge, read when somebody looks; what is not among them is shown no more. A failure shows the last ones. */
  watchAll(name: NamesOf<Table, 'gauge'>, read: () => Iterable<Reading> | Promise<Iterable<Reading>>): void;
}

/** What a registry shows to who asks for `/metrics`. */
export interface MetricsPage {
  readonly contentType: string;
  metrics(): Promise<string>;
}
