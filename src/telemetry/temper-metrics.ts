import type { MetricTable, WatchedMetricsOf } from './metrics.ts';

/** Messages wait for a pod to start, and are worked on for as long as models and tools take. */
const MESSAGE_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3_600] as const;

/** What the gateway counts. Providers and models are configured names; agents, sessions and tools are never labels. */
export const GATEWAY_METRICS = {
  temper_messages_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Messages by what became of them: sent, duplicate, refused, delivered, answered, retried, rejected.',
  },
  temper_message_wait_seconds: {
    type: 'histogram',
    labels: [],
    help: 'From the acceptance of a message to its first delivery.',
    buckets: MESSAGE_BUCKETS,
  },
  temper_message_duration_seconds: {
    type: 'histogram',
    labels: [],
    help: 'From the acceptance of a message to its answer.',
    buckets: MESSAGE_BUCKETS,
  },
  temper_lease_extensions_total: {
    type: 'counter',
    labels: [],
    help: 'Extensions of delivery leases, by pods that still work on their message.',
  },
  temper_dead_letters: {
    type: 'gauge',
    labels: [],
    help: 'Messages among the dead letters; every gateway shows the same number.',
  },
  temper_model_requests_total: {
    type: 'counter',
    labels: ['provider', 'model', 'outcome'],
    help: 'Calls of providers by how they ended: ok, cancelled, or the code of the error.',
  },
  temper_model_duration_seconds: {
    type: 'histogram',
    labels: ['provider', 'model'],
    help: 'How long calls of providers took, to the end of the stream.',
  },
  temper_model_tokens_total: {
    type: 'counter',
    labels: ['provider', 'model', 'direction'],
    help: 'Tokens of answers that came to their end, as the provider counted them: input, output.',
  },
  temper_model_cost_dollars_total: {
    type: 'counter',
    labels: ['provider', 'model'],
    help: 'Cost of answers that came to their end, by the configured prices.',
  },
  temper_quota_denials_total: {
    type: 'counter',
    labels: ['scope', 'quota'],
    help: 'Model calls refused for a quota, by whose it is (agent, policy) and its field.',
  },
  temper_forge_reviews_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Candidates reviewed: accepted, the gate that refused, or failed when the review itself did.',
  },
  temper_door_refusals_total: { type: 'counter', labels: ['code'], help: 'Calls refused, by code.' },
  temper_requests_total: { type: 'counter', labels: ['route', 'status'], help: 'HTTP requests by route and status.' },
  temper_request_duration_seconds: {
    type: 'histogram',
    labels: ['route'],
    help: 'How long requests took, long polls left out.',
  },
  temper_long_polls: { type: 'gauge', labels: [], help: 'Long polls that wait now.' },
  temper_bus_connected: { type: 'gauge', labels: [], help: '1 while NATS is connected, 0 while it is not.' },
  temper_pod_spans_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Spans that pods reported: taken, refused.',
  },
} as const satisfies MetricTable;

/** What the operator counts beside what its controllers do. */
export const OPERATOR_METRICS = {
  temper_agents: {
    type: 'gauge',
    labels: ['ready', 'reason'],
    help: 'Agents by the status and reason of their condition Ready; every replica shows the same.',
  },
  temper_pods: {
    type: 'gauge',
    labels: ['kind', 'state'],
    help: 'Pods of agents, and warm ones that wait for an agent, by state: ready, starting, unschedulable, imagePullFailed, crashLooping, nodeNotReady, ended, terminating.',
  },
  temper_warm_pods: {
    type: 'gauge',
    labels: ['sandbox_class', 'kind'],
    help: 'Warm pods of a sandbox class over all namespaces: wanted, and there.',
  },
  temper_writes_total: {
    type: 'counter',
    labels: ['resource', 'verb', 'outcome'],
    help: 'Writes to the API server by resource, verb and outcome: ok, conflict, failed. Leases and Events are not among them.',
  },
  temper_wakes_total: { type: 'counter', labels: [], help: 'Times an agent was looked at because a message woke it.' },
  temper_certificate_expiration_timestamp_seconds: {
    type: 'gauge',
    labels: ['certificate'],
    help: 'When the certificate ends, in seconds since 1970; shown by the leader.',
  },
  temper_guard_namespaces: {
    type: 'gauge',
    labels: ['state'],
    help: 'Namespaces with agents by their guard: fenced, notFenced, missing; shown by the leader.',
  },
  temper_bus_connected: { type: 'gauge', labels: [], help: '1 while NATS is connected, 0 while it is not.' },
  temper_bus_connection_changes_total: {
    type: 'counter',
    labels: ['to'],
    help: 'How often the connection to NATS came and went: connected, lost.',
  },
  temper_bus_store_losses_total: {
    type: 'counter',
    labels: [],
    help: 'How often NATS came back with another store than it had.',
  },
  temper_bus_topology_ready: {
    type: 'gauge',
    labels: [],
    help: '1 when the streams and buckets were found or made as declared at the last look, 0 otherwise.',
  },
} as const satisfies MetricTable;

export type GatewayMetrics = WatchedMetricsOf<typeof GATEWAY_METRICS>;
export type OperatorMetrics = WatchedMetricsOf<typeof OPERATOR_METRICS>;
