import type { MetricList } from './metrics.ts';

/** What the gateway counts. Models and providers are configured names; agents and tools are never labels. */
export const GATEWAY_METRICS = {
  temper_messages_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Messages by what became of them: sent, duplicate, delivered, answered, retried, rejected, refused.',
  },
  temper_message_duration_seconds: {
    type: 'histogram',
    labels: [],
    help: 'From the acceptance of a message to its answer.',
  },
  temper_model_requests_total: {
    type: 'counter',
    labels: ['provider', 'model', 'outcome'],
    help: 'Model calls by how they ended: ok, cancelled, or the code of the error.',
  },
  temper_model_duration_seconds: {
    type: 'histogram',
    labels: ['provider', 'model'],
    help: 'How long model calls took, to the end of the stream.',
  },
  temper_model_tokens_total: {
    type: 'counter',
    labels: ['provider', 'model', 'direction'],
    help: 'Tokens charged: input, output.',
  },
  temper_model_cost_micros_total: {
    type: 'counter',
    labels: ['provider', 'model'],
    help: 'Cost charged, in millionths of a dollar.',
  },
  temper_quota_denials_total: { type: 'counter', labels: ['quota'], help: 'Reservations refused, by the quota.' },
  temper_forge_reviews_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Candidates reviewed: accepted, or the gate that refused.',
  },
  temper_door_refusals_total: { type: 'counter', labels: ['code'], help: 'Calls refused at the door, by code.' },
  temper_requests_total: { type: 'counter', labels: ['route', 'status'], help: 'HTTP requests by route and status.' },
  temper_request_duration_seconds: {
    type: 'histogram',
    labels: ['route'],
    help: 'How long requests took, long polls left out.',
  },
  temper_deliveries_in_flight: {
    type: 'gauge',
    labels: [],
    help: 'Messages this gateway has delivered and not ended.',
  },
  temper_bus_connected: { type: 'gauge', labels: [], help: '1 while NATS is connected.' },
} as const satisfies MetricList;

/** What the operator counts beside what its controllers do. */
export const OPERATOR_METRICS = {
  temper_agents: {
    type: 'gauge',
    labels: ['ready', 'reason'],
    help: 'Agents by the status and reason of their condition Ready.',
  },
  temper_pods: { type: 'gauge', labels: ['state'], help: 'Agent pods: bound, warm, starting, failed.' },
  temper_wakes_total: { type: 'counter', labels: [], help: 'Agents woken by a message.' },
  temper_certificate_expiry_seconds: {
    type: 'gauge',
    labels: ['certificate'],
    help: 'Seconds until the certificate ends.',
  },
  temper_guard_ok: { type: 'gauge', labels: [], help: '1 while the admission policies are there and hold.' },
  temper_bus_connected: { type: 'gauge', labels: [], help: '1 while NATS is connected.' },
} as const satisfies MetricList;
