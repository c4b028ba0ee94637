import type { MetricsOf, MetricTable, NamesOf } from '../telemetry/metrics.ts';

/** Where the runtime's numbers go. */
export type Metrics = MetricsOf<typeof METRICS>;

/** Up to a minute, when a reconcile is told to stop. */
const RECONCILE_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60] as const;
const QUEUE_BUCKETS = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1_000] as const;
const REQUEST_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60] as const;

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
    buckets: RECONCILE_BUCKETS,
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
    buckets: QUEUE_BUCKETS,
  },
  workqueue_work_duration_seconds: {
    type: 'histogram',
    labels: ['name', 'controller'],
    help: 'How long workers held a key.',
    buckets: QUEUE_BUCKETS,
  },
  workqueue_unfinished_work_seconds: {
    type: 'gauge',
    labels: ['name', 'controller'],
    help: 'Time the keys in work have been in work, all together; grows when workers are stuck.',
  },
  workqueue_longest_running_processor_seconds: {
    type: 'gauge',
    labels: ['name', 'controller'],
    help: 'Time the key that is longest in work has been in work.',
  },
  rest_client_requests_total: {
    type: 'counter',
    labels: ['code', 'method', 'host'],
    help: 'Requests to the API server by status; <error> when none came.',
  },
  rest_client_request_duration_seconds: {
    type: 'histogram',
    labels: ['verb', 'host'],
    help: 'Time until the API server began to answer.',
    buckets: REQUEST_BUCKETS,
  },
  reflector_lists_total: { type: 'counter', labels: ['name'], help: 'Whole lists fetched.' },
  reflector_watches_total: { type: 'counter', labels: ['name'], help: 'Watches begun.' },
  reflector_short_watches_total: {
    type: 'counter',
    labels: ['name'],
    help: 'Watches that ended at once.',
  },
  events_dropped_total: {
    type: 'counter',
    labels: ['reason'],
    help: 'Events that were not written: spam, full, failed.',
  },
  leader_election_master_status: {
    type: 'gauge',
    labels: ['name'],
    help: '1 in the process that leads, 0 in the others.',
  },
} as const satisfies MetricTable;

export type CounterName = NamesOf<typeof METRICS, 'counter'>;
export type GaugeName = NamesOf<typeof METRICS, 'gauge'>;
export type HistogramName = NamesOf<typeof METRICS, 'histogram'>;
