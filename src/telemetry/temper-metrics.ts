import type { MetricTable, ObservableMetricsOf } from './metrics.ts';

/** In seconds. A message waits while a pod starts, and its processing includes model and tool calls. */
const MESSAGE_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3_600] as const;

/** In seconds. A warm agent takes milliseconds; a new node for a pod takes minutes. */
const START_BUCKETS = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900] as const;

/** In seconds. A search over the largest catalog of a namespace takes milliseconds. */
const SEARCH_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1] as const;

const BUILD_INFO = {
  type: 'gauge',
  labels: ['version', 'node'],
  help: 'Always 1; the labels are the version of Temper and of Node.',
} as const;

/** Of gateway and operator. */
const NATS_REQUEST_METRICS = {
  temper_nats_request_duration_seconds: {
    type: 'histogram',
    labels: ['operation'],
    help: 'Duration of requests to NATS by operation: publish, get, page, count, purge, ack, other.',
  },
  temper_nats_errors_total: {
    type: 'counter',
    labels: ['operation', 'code'],
    help: 'Failed requests to NATS by operation and error code.',
  },
} as const;

/** In seconds. A call to a model ends after ten minutes at the latest. */
const MODEL_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600] as const;

/** The metrics of the gateway. Providers and models are configured names; agents, sessions and tools are never labels. */
export const GATEWAY_METRICS = {
  temper_build_info: BUILD_INFO,
  temper_messages_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Messages by outcome: sent, duplicate, refused, delivered, answered, retried, parked (waits for an approval), rejected.',
  },
  temper_redeliveries_total: {
    type: 'counter',
    labels: ['reason'],
    help: 'Messages delivered again, by reason: timeout (no acknowledgement in time), retry (the agent asked for it), podDeleted, parked (an approval was decided).',
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
  temper_brokered_calls_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Calls of tools that the gateway executed, by outcome: ok, or the code of the failure.',
  },
  temper_brokered_results_unrecorded_total: {
    type: 'counter',
    labels: [],
    help: 'Executed calls with side effects whose result the audit log does not have; it has their start.',
  },
  temper_brokered_call_duration_seconds: {
    type: 'histogram',
    labels: [],
    help: 'Duration of calls that the gateway executed, without the checks before.',
    buckets: MODEL_BUCKETS,
  },
  temper_discovery_searches_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Searches of agents for capabilities by outcome: found, empty.',
  },
  temper_discovery_search_duration_seconds: {
    type: 'histogram',
    labels: [],
    help: 'Duration of a search with its vectors, without reading the tools of its session.',
    buckets: SEARCH_BUCKETS,
  },
  temper_discovery_step_duration_seconds: {
    type: 'histogram',
    labels: ['step'],
    help: 'Duration of the steps of a search by meaning: embed-query, embed-entries (in the background), vectors.',
    buckets: SEARCH_BUCKETS,
  },
  temper_discovery_embeddings_total: {
    type: 'counter',
    labels: ['part', 'outcome'],
    help: 'Requests to the embedder of discovery for a query or for entries, by outcome: ok, or an error code.',
  },
  temper_discovery_embedding_cache_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Texts of queries by outcome: hit (their vector was in the cache), miss.',
  },
  temper_discovery_vector_queries_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Requests to the vector index of discovery by outcome: ok, or an error code. After a failure a search uses words alone.',
  },
  temper_delivery_extensions_total: {
    type: 'counter',
    labels: [],
    help: 'Extensions of delivery tokens, by pods that still process their message.',
  },
  temper_dead_letters: {
    type: 'gauge',
    labels: [],
    help: 'Dead-lettered messages; every gateway replica reports the same number.',
  },
  temper_model_requests_total: {
    type: 'counter',
    labels: ['provider', 'model', 'outcome'],
    help: 'Calls to model providers by outcome: ok, cancelled, or the error code.',
  },
  temper_model_duration_seconds: {
    type: 'histogram',
    labels: ['provider', 'model'],
    help: 'Duration of calls to model providers, to the end of the stream.',
    buckets: MODEL_BUCKETS,
  },
  temper_model_first_event_seconds: {
    type: 'histogram',
    labels: ['provider', 'model'],
    help: 'From the call to a model provider to the first event of its answer (time to first token).',
    buckets: MODEL_BUCKETS,
  },
  temper_model_circuits_open: {
    type: 'gauge',
    labels: ['provider', 'scope'],
    help: 'Open circuits of a model provider in this gateway, by scope: provider (1 while it fails for enough agents, else 0), agent (the number of agents whose own calls fail).',
  },
  temper_model_tokens_total: {
    type: 'counter',
    labels: ['provider', 'model', 'direction'],
    help: 'Tokens of completed model responses, as counted by the provider, by direction: input, output.',
  },
  temper_model_cost_dollars_total: {
    type: 'counter',
    labels: ['provider', 'model'],
    help: 'Cost of completed model responses in US dollars, by the configured prices.',
  },
  temper_ledger_reservation_seconds: {
    type: 'histogram',
    labels: [],
    help: 'Duration of quota reservations; longer than a millisecond when the gateway needs a new allocation from the shared ledger.',
  },
  temper_ledger_writes_total: {
    type: 'counter',
    labels: [],
    help: 'Changes of accounts that this gateway wrote to the shared ledger.',
  },
  temper_ledger_conflicts_total: {
    type: 'counter',
    labels: [],
    help: 'Attempts of these changes that failed because another gateway had changed the account.',
  },
  temper_quota_denials_total: {
    type: 'counter',
    labels: ['scope', 'quota'],
    help: 'Model calls denied by a quota, by its scope (agent, policy) and field.',
  },
  temper_forge_reviews_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Reviews of tool candidates by outcome: accepted, the gate that rejected the candidate, or failed for an error of the review itself.',
  },
  temper_callers_refused_total: {
    type: 'counter',
    labels: ['caller'],
    help: 'Callers of which a gateway refused 100 requests within a minute: pods of agents, users, peers over A2A, or addresses without a valid token.',
  },
  temper_http_errors_total: { type: 'counter', labels: ['code'], help: 'HTTP error responses by error code.' },
  temper_connections_refused_total: {
    type: 'counter',
    labels: ['reason'],
    help: 'Connections that the gateway did not serve: address (its address has too many), unauthenticated (its address opened too many without a valid token), namespace (its users have too many), pods (pods have all but those for users), total (the gateway has too many), tls (no handshake), request (no complete or valid request). The log names the address.',
  },
  temper_requests_total: { type: 'counter', labels: ['route', 'status'], help: 'HTTP requests by route and status.' },
  temper_request_duration_seconds: {
    type: 'histogram',
    labels: ['route'],
    help: 'Duration of HTTP requests, without long polls.',
  },
  temper_mcp_sessions: {
    type: 'gauge',
    labels: [],
    help: 'Open sessions of agents at MCP servers, those that are opening included.',
  },
  temper_long_polls: { type: 'gauge', labels: [], help: 'Current long polls.' },
  temper_nats_connected: { type: 'gauge', labels: [], help: '1 while NATS is connected, 0 while it is not.' },
  ...NATS_REQUEST_METRICS,
  temper_audit_rejected_total: {
    type: 'counter',
    labels: [],
    help: 'Observed audit records that did not fit into NATS; what they would have recorded did not happen. Alert on any increase.',
  },
  temper_judge_canaries_total: {
    type: 'counter',
    labels: ['role', 'outcome'],
    help: 'Known-bad tools put before judges and reviewers, by role (judge, safety, correctness) and outcome: caught, passed.',
  },
  temper_judges_suspended: {
    type: 'gauge',
    labels: [],
    help: 'Models whose verdicts count for nothing, because they approved a known-bad tool; every gateway replica reports the same number.',
  },
  temper_events_total: {
    type: 'counter',
    labels: ['source'],
    help: 'Events of namespaces by source: Agent, Platform, Webhook.',
  },
  temper_trigger_messages_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Triggers and subscriptions that matched an event, by outcome: Sent, or why the agent got no message: MaxFires, Cooldown, HourlyLimit, Ended, Suspended, Denied, SessionClosed, Full, TooLarge.',
  },
  temper_stream_trims_total: {
    type: 'counter',
    labels: ['stream', 'scope'],
    help: 'Times that an agent or a namespace (scope) exceeded its share of a stream, so that its own oldest messages were removed.',
  },
  temper_report_bytes_rejected_total: {
    type: 'counter',
    labels: [],
    help: 'Bytes of reports of agents that exceeded their rate.',
  },
  temper_pod_spans_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Spans reported by pods, by outcome: taken, refused.',
  },
} as const satisfies MetricTable;

/** The metrics of the operator, besides those of its controllers. */
export const OPERATOR_METRICS = {
  temper_build_info: BUILD_INFO,
  temper_reports_contradicted_total: {
    type: 'counter',
    labels: [],
    help: 'Test results and outputs of uses that an agent pod reported and that re-runs in a verifier pod contradict. The audit records name the agents.',
  },
  temper_tools_deactivated_total: {
    type: 'counter',
    labels: ['cause'],
    help: 'Tools that were deactivated for one agent, by cause: Harmful, Failing, LeastUseful. The statuses of the agents name them.',
  },
  temper_agents: {
    type: 'gauge',
    labels: ['ready', 'reason'],
    help: 'Agents by the status and reason of their condition Ready; reported by the leader.',
  },
  temper_agent_budgets: {
    type: 'gauge',
    labels: ['reason'],
    help: 'Agents by the reason of their condition BudgetAvailable, agents without it excluded; reported by the leader.',
  },
  temper_agents_unresponsive: {
    type: 'gauge',
    labels: [],
    help: 'Agents with messages for which no pod reported within three minutes, by their condition Responsive; reported by the leader.',
  },
  temper_pods: {
    type: 'gauge',
    labels: ['kind', 'state'],
    help: 'Agent pods, and warm pods without an agent, by state: ready, starting, unschedulable, imagePullFailed, crashLooping, nodeNotReady, ended, terminating; reported by the leader.',
  },
  temper_warm_pods: {
    type: 'gauge',
    labels: ['sandbox_class', 'state'],
    help: 'Warm pods of a sandbox class in all namespaces: the desired number (desired) and the existing unclaimed number (available); reported by the leader.',
  },
  temper_agent_ready_seconds: {
    type: 'histogram',
    labels: ['path'],
    help: 'Time until an agent without a pod is Ready, by path: cold (a new pod), warm (a pod of the pool), wake (an agent that was scaled to zero, from its message).',
    buckets: START_BUCKETS,
  },
  temper_pool_claims_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Agents that needed a pod of a warm pool, by outcome: hit (claimed a warm pod), miss (none was available), lost (the pod was deleted or claimed meanwhile).',
  },
  temper_pods_replaced_total: {
    type: 'counter',
    labels: ['reason'],
    help: 'Pods that agents lost or left, by reason: deleted, ended (failed or evicted), template (images, resources or class changed), conflict (bound to two agents).',
  },
  temper_writes_total: {
    type: 'counter',
    labels: ['resource', 'verb', 'outcome'],
    help: 'Writes to the API server by resource, verb and outcome: ok, conflict, failed. Excludes Leases and Events.',
  },
  temper_schedule_runs_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Due times of schedules by outcome: started, missed, skipped because the previous run had not ended; and ends of runs: completed, failed.',
  },
  temper_schedule_delay_seconds: {
    type: 'histogram',
    labels: [],
    help: 'From the due time of a run until its message was in the inbox of the agent.',
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800],
  },
  temper_agent_wakeups_total: { type: 'counter', labels: [], help: 'Reconciles of agents triggered by a new message.' },
  temper_certificate_expiration_timestamp_seconds: {
    type: 'gauge',
    labels: ['certificate'],
    help: 'Expiry time of the certificate, in seconds since 1970; reported by the leader.',
  },
  temper_admission_policy_namespaces: {
    type: 'gauge',
    labels: ['state'],
    help: 'Namespaces with agents by the state of their admission policies: protected, notProtected, notEnforced; reported by the leader.',
  },
  temper_nats_connected: { type: 'gauge', labels: [], help: '1 while NATS is connected, 0 while it is not.' },
  temper_nats_connection_changes_total: {
    type: 'counter',
    labels: ['to'],
    help: 'Changes of the connection to NATS, by new state: connected, lost.',
  },
  temper_audit_chain_intact: {
    type: 'gauge',
    labels: [],
    help: '1 while the audit stream is as the signed heads of the provenance chain say; 0 after a difference. Only the leader reports it.',
  },
  temper_audit_chain_records: {
    type: 'gauge',
    labels: [],
    help: 'Records of the provenance chain since it began. Only the leader reports it.',
  },
  ...NATS_REQUEST_METRICS,
  temper_nats_data_loss_total: {
    type: 'counter',
    labels: [],
    help: 'Times that NATS reconnected with a different data store.',
  },
  temper_nats_account_conflict: {
    type: 'gauge',
    labels: [],
    help: '1 while another installation uses the NATS account, so that this operator refuses it, 0 otherwise.',
  },
  temper_nats_stream_bytes: {
    type: 'gauge',
    labels: ['stream'],
    help: 'Bytes of each stream and bucket at the last check.',
  },
  temper_nats_stream_max_bytes: {
    type: 'gauge',
    labels: ['stream'],
    help: 'Limit in bytes of each stream and bucket. Alert when temper-audit is nearly full: it then rejects evidence.',
  },
  temper_nats_stream_messages: {
    type: 'gauge',
    labels: ['stream'],
    help: 'Messages of each stream and keys of each bucket at the last check; temper-inbox: messages that wait or are in flight.',
  },
  temper_nats_stream_removed_messages: {
    type: 'gauge',
    labels: ['stream'],
    help: 'Records that temper-activity and temper-reports had and have not any more: they reached their age, or newer ones of the same agent or namespace replaced them.',
  },
  temper_audit_namespace_max_ratio: {
    type: 'gauge',
    labels: [],
    help: 'Records in temper-audit of the namespace that has most, as a share of what a namespace may have; at 1 NATS rejects its evidence. The log of the operator names the namespace from 0.8 on.',
  },
  temper_inbox_oldest_seconds: {
    type: 'gauge',
    labels: [],
    help: 'Age of the oldest message that waits or is in flight, at the last check; 0 without messages.',
  },
  temper_agents_with_data: {
    type: 'gauge',
    labels: ['state'],
    help: 'Agents with data in NATS, by state: present, missing (deleted, data kept for now), foreign (another release or namespace), failed (could not be checked or deleted; the log names them); reported by the leader.',
  },
  temper_agent_data_deletions_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Deleted agents whose NATS data was deleted (deleted) or would have been (dryRun).',
  },
  temper_nats_server_up: {
    type: 'gauge',
    labels: ['server'],
    help: '1 while the leader reaches the NATS server of this release and it stores messages, by pod, 0 otherwise; reported by the leader.',
  },
  temper_nats_server_current: {
    type: 'gauge',
    labels: ['server'],
    help: '1 when the NATS server loaded the current certificate, users and configuration, by pod, 0 otherwise; reported by the leader.',
  },
  temper_nats_stream_replicas: {
    type: 'gauge',
    labels: ['stream', 'state'],
    help: 'Copies of each stream and bucket, by state: declared, current (up to date at the last check).',
  },
  temper_nats_stream_lag: {
    type: 'gauge',
    labels: ['stream'],
    help: 'Operations by which the slowest copy of each stream and bucket is behind its leader.',
  },
  temper_nats_topology_ready: {
    type: 'gauge',
    labels: [],
    help: '1 when the last check found or created all streams and buckets as declared and no limit of the account is too low, 0 otherwise.',
  },
} as const satisfies MetricTable;

/** The metrics of the egress proxy. Agents, hosts and addresses are never labels; the log has them. */
export const EGRESS_METRICS = {
  temper_build_info: BUILD_INFO,
  temper_egress_requests_total: {
    type: 'counter',
    labels: ['method', 'outcome'],
    help: 'Requests to the egress proxy by method (CONNECT, other) and outcome: ok, or the error code.',
  },
  temper_egress_bytes_total: {
    type: 'counter',
    labels: ['direction'],
    help: 'Bytes of ended connections by direction, from the view of the agent: sent, received.',
  },
  temper_egress_open_connections: {
    type: 'gauge',
    labels: [],
    help: 'Authorized connections that are open at this replica.',
  },
  temper_egress_refused_connections_total: {
    type: 'counter',
    labels: ['reason'],
    help: 'Connections of clients that were not served, by reason: address, unauthenticated, namespace, total, tls, request.',
  },
} as const satisfies MetricTable;

export type GatewayMetrics = ObservableMetricsOf<typeof GATEWAY_METRICS>;
export type OperatorMetrics = ObservableMetricsOf<typeof OPERATOR_METRICS>;
export type EgressMetrics = ObservableMetricsOf<typeof EGRESS_METRICS>;
