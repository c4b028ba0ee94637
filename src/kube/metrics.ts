import type { MetricsOf, MetricTable, NamesOf } from '../telemetry/metrics.ts';

/** Records the metrics of the controller runtime. */
export type Metrics = MetricsOf<typeof METRICS>;

/** Up to a minute, the default timeout of a reconcile. */
const RECONCILE_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60] as const;
const QUEUE_BUCKETS = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1_000] as const;
const REQUEST_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60] as const;

/** The same names as in controller-runtime and client-go, so that their dashboards work for this runtime too. */
export const METRICS = {
  controller_runtime_reconcile_total: {
    type: 'counter',
    labels: ['controller', 'result'],
    help: 'Reconciles by result: success, error, requeue, requeue_after.',
  },
  controller_runtime_reconcile_errors_total: {
    type: 'counter',
    labels: ['controller'],
    help: 'Reconciles that ended in an error, including terminal errors and panics.',
  },
  controller_runtime_terminal_reconcile_errors_total: {
    type: 'counter',
    labels: ['controller'],
    help: 'Reconciles that ended in a terminal error, which is not retried.',
  },
  controller_runtime_reconcile_panics_total: {
    type: 'counter',
    labels: ['controller'],
    help: 'Reconciles that ended in a defect of the program.',
  },
  controller_runtime_reconcile_timeouts_total: {
    type: 'counter',
    labels: ['controller'],
    help: 'Reconciles that were aborted because they timed out.',
  },
  controller_runtime_reconcile_time_seconds: {
    type: 'histogram',
    labels: ['controller'],
    help: 'Duration of reconciles.',
    buckets: RECONCILE_BUCKETS,
  },
  controller_runtime_max_concurrent_reconciles: {
    type: 'gauge',
    labels: ['controller'],
    help: 'Maximum number of concurrent reconciles of the controller.',
  },
  controller_runtime_active_workers: {
    type: 'gauge',
    labels: ['controller'],
    help: 'Current number of running reconciles.',
  },
  workqueue_depth: {
    type: 'gauge',
    labels: ['name', 'controller', 'priority'],
    help: 'Keys that wait for a worker.',
  },
  workqueue_adds_total: { type: 'counter', labels: ['name', 'controller'], help: 'Keys added, without duplicates.' },
  workqueue_retries_total: { type: 'counter', labels: ['name', 'controller'], help: 'Rate-limited adds.' },
  workqueue_queue_duration_seconds: {
    type: 'histogram',
    labels: ['name', 'controller'],
    help: 'Time that keys waited for a worker.',
    buckets: QUEUE_BUCKETS,
  },
  workqueue_work_duration_seconds: {
    type: 'histogram',
    labels: ['name', 'controller'],
    help: 'Time that workers processed a key.',
    buckets: QUEUE_BUCKETS,
  },
  workqueue_unfinished_work_seconds: {
    type: 'gauge',
    labels: ['name', 'controller'],
    help: 'Total processing time so far of all keys in process; grows when workers are stuck.',
  },
  workqueue_longest_running_processor_seconds: {
    type: 'gauge',
    labels: ['name', 'controller'],
    help: 'Processing time so far of the key that is longest in process.',
  },
  rest_client_requests_total: {
    type: 'counter',
    labels: ['code', 'method', 'host'],
    help: 'Requests to the API server by status; <error> when there was no response.',
  },
  rest_client_request_duration_seconds: {
    type: 'histogram',
    labels: ['verb', 'host'],
    help: 'Time until the response headers of the API server arrived.',
    buckets: REQUEST_BUCKETS,
  },
  reflector_lists_total: { type: 'counter', labels: ['name'], help: 'Complete lists fetched.' },
  reflector_watches_total: { type: 'counter', labels: ['name'], help: 'Watches started.' },
  reflector_short_watches_total: {
    type: 'counter',
    labels: ['name'],
    help: 'Watches that ended within one second.',
  },
  reflector_stalls_total: {
    type: 'counter',
    labels: ['name'],
    help: 'Watches that ended because the server sent nothing, not even a bookmark, for 90 seconds.',
  },
  reflector_stale_lists_total: {
    type: 'counter',
    labels: ['name'],
    help: 'Lists that were older than what was read before, and therefore read again.',
  },
  reflector_last_event_timestamp_seconds: {
    type: 'gauge',
    labels: ['name'],
    help: 'Time of the last list or watch event, bookmarks included, in seconds since 1970; 0 before the first list. With one reflector per namespace the last event of any.',
  },
  events_dropped_total: {
    type: 'counter',
    labels: ['reason'],
    help: 'Events that were not written, by reason: spam, full, failed.',
  },
  leader_election_master_status: {
    type: 'gauge',
    labels: ['name'],
    help: '1 in the leader, 0 in the other processes.',
  },
  leader_election_transitions_total: {
    type: 'counter',
    labels: ['name', 'transition'],
    help: 'Changes of leadership of this process: acquired, released, lost.',
  },
} as const satisfies MetricTable;

export type CounterName = NamesOf<typeof METRICS, 'counter'>;
export type GaugeName = NamesOf<typeof METRICS, 'gauge'>;
export type HistogramName = NamesOf<typeof METRICS, 'histogram'>;
