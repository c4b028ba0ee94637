/** Where the runtime's numbers go. Durations are in seconds. */
export interface Metrics {
  /** Adds `by`, one when not given; zero makes the combination of labels known. */
  count(name: CounterName, labels: Labels, by?: number): void;
  gauge(name: GaugeName, labels: Labels, value: number): void;
  observe(name: HistogramName, labels: Labels, seconds: number): void;
}

export type Labels = Readonly<Record<string, string>>;

interface MetricEntry {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
}

/** Named as controller-runtime and client-go name them, so that dashboards made for those show this runtime too. */
export const METRICS = {
  controller_runtime_reconcile_total: {
    type: 'counter',
    labels: ['controller', 'result'],
    help: 'Reconciles by how they ended: success, error, requeue, requeue_after.',
  },
  controller_runtime_reconcile_errors_total: {
    type: 'counter',
    labels: ['controller'],
    help: 'Reconciles that ended in an error, terminal ones and panics included.',
  },
  controller_runtime_terminal_reconcile_errors_total: {
    type: 'counter',
    labels: ['controller'],
    help: 'Reconciles that ended in an error a retry cannot mend.',
  },
  controller_runtime_reconcile_panics_total: {
    type: 'counter',
    labels: ['controller'],
    help: 'Reconciles that threw what they should have returned.',
  },
  controller_runtime_reconcile_timeouts_total: {
    type: 'counter',
    labels: ['controller'],
    help: 'Reconciles that were told to stop because their time was over.',
  },
  controller_runtime_reconcile_time_seconds: {
    type: 'histogram',
    labels: ['controller'],
    help: 'How long reconciles took.',
  },
  controller_runtime_max_concurrent_reconciles: {
    type: 'gauge',
    labels: ['controller'],
    help: 'Workers of the controller.',
  },
  controller_runtime_active_workers: {
    type: 'gauge',
    labels: ['controller'],
    help: 'Workers that reconcile now.',
  },
  workqueue_depth: {
    type: 'gauge',
    labels: ['name', 'controller', 'priority'],
    help: 'Keys that wait for a worker.',
  },
  workqueue_adds_total: { type: 'counter', labels: ['name', 'controller'], help: 'Keys added, duplicates left out.' },
  workqueue_retries_total: { type: 'counter', labels: ['name', 'controller'], help: 'Rate-limited adds.' },
  workqueue_queue_duration_seconds: {
    type: 'histogram',
    labels: ['name', 'controller'],
    help: 'How long keys waited for a worker.',
  },
  workqueue_work_duration_seconds: {
    type: 'histogram',
    labels: ['name', 'controller'],
    help: 'How long workers held a key.',
  },
} as const satisfies Record<string, MetricEntry>;

type NamesOf<Type extends MetricEntry['type']> = {
  [Name in keyof typeof METRICS]: (typeof METRICS)[Name]['type'] extends Type ? Name : never;
}[keyof typeof METRICS];

export type CounterName = NamesOf<'counter'>;
export type GaugeName = NamesOf<'gauge'>;
export type HistogramName = NamesOf<'histogram'>;
