import type { FastifyRequest } from 'fastify';
import type { AuditRecord } from '../../audit/port.ts';
import type { PodIdentity } from '../../identity/types.ts';
import type { JsonObject } from '../../lib/json.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { PodReports } from '../../gateway-api/report-schemas.ts';
import type { EvidencedCall, ToolUse } from '../../tempering/types.ts';
import { recordWithoutWords } from '../../tempering/withheld/withheld-records.ts';
import { WithheldSources } from '../../tempering/withheld/withheld-sources.ts';
import { asReported } from '../../tempering/use/use-recording.ts';
import type { Gate, StampedEvent } from '../../tools/events.ts';
import { deliveryOf } from '../delivery/authorize.ts';
import { asCarried } from '../delivery/carried-calls.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';
import type { GatewayDeps } from '../deps.ts';
import { publishCreatedFiles } from '../events/work-events.ts';
import { deduplicationKey } from '../http/deduplication-key.ts';
import type { GatewayServer } from '../http/routes.ts';
import { withholdsSources } from '../storage/withheld-sessions.ts';
import { Done, POD_SECURITY, ERROR_RESPONSES } from '../http/schemas.ts';

/** A pod sends batches of at most 128 KiB, single reports of at most 48 KiB, and uses with inputs of at most 256 KiB. */
const MAX_BODY_BYTES = 512 * 1_024;
/** Sessions of one report. A pod reports each message by itself; each session costs a read. */
const MAX_SESSIONS = 16;
/** What each record counts at least against the rate of its agent: it is a write to NATS, however small. */
const MIN_RECORD_BYTES = 1_024;
/** Facts of one audit record. Larger facts are replaced by their size. */
const MAX_FACTS_BYTES = 16_384;

/**
 * Accepts the reports of pods and stores them under the agent of the pod as reported evidence, never as observed. A pod retries a request
 * without a response at any replica; the idempotency key makes each report stored once.
 */
export function reportRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    POD_API_PATHS.reports,
    {
      config: { access: 'pod', idempotent: true, writesStorage: true },
      bodyLimit: MAX_BODY_BYTES,
      schema: {
        ...POD_SECURITY,
        summary: 'Events, audit records and tool uses, as the pod reports them',
        body: PodReports,
        response: { 204: Done, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      takeReportBytes(request.pod.agentUid, request.body, deps);
      await storeReports(request, request.body, request.idempotencyKey, deps);
      await countCalls(request.pod, request.body, deps);
      return reply.code(204).send(null);
    },
  );
}

/** Throws TEMPER_RATE_LIMITED when the agent reports too much. */
export function takeReportBytes(agentUid: string, reports: PodReports, deps: GatewayDeps): void {
  const { events = [], audit = [], uses = [], toolCalls = [] } = reports;
  const records = events.length + audit.length + uses.length + Math.min(toolCalls.length, 1);
  const bytes = Math.max(Buffer.byteLength(JSON.stringify(reports)), records * MIN_RECORD_BYTES);
  try {
    deps.reportLimits.take(agentUid, bytes);
  } catch (error) {
    deps.metrics.count('temper_report_bytes_rejected_total', {}, bytes);
    throw error;
  }
}

/** The calls of a message count, also when its pod ends without an outcome. An outcome states them itself. */
async function countCalls(pod: PodIdentity, reports: PodReports, deps: GatewayDeps): Promise<void> {
  const { deliveryToken, toolCalls = [] } = reports;
  const delivery = deliveryOf(pod, deliveryToken, deps);
  if (delivery !== undefined) await deps.recorder.called(delivery, toolCalls);
}

/** Stores reports once per key. Logs dropped events. `ended`: the delivery that ends with them. */
export async function storeReports(
  { id, pod }: Pick<FastifyRequest, 'id' | 'pod'>,
  reports: PodReports,
  idempotencyKey: string,
  deps: GatewayDeps,
  ended?: DeliveryTokenClaims,
): Promise<void> {
  const { agentUid, namespace } = pod;
  const key = deduplicationKey('reports', agentUid, [idempotencyKey]);
  const { audit = [], uses = [] } = reports;
  const withheld = withheldOf(agentUid, deps);
  const events = (reports.events ?? []).filter((event) => withheld === undefined || !isDelta(event));
  const sessions = new Map<string, boolean>();
  for (const session of [...new Set(events.map((event) => event.session))].slice(0, MAX_SESSIONS)) {
    sessions.set(session, await deps.sessions.exists(agentUid, session));
  }
  const accepted = events.filter((event) => !isGatewayOnly(event) && sessions.get(event.session) === true);
  for (const [session, ofSession] of Map.groupBy(accepted, (event) => event.session)) {
    const stamped = ofSession.map((event) => stampedEvent(pod, withheld?.event(event) ?? event, deps));
    await deps.events.appendAll(agentUid, session, stamped, `${key}/events/${session}`);
  }
  for (const [index, record] of audit.entries()) {
    const reported = reportedRecord(pod, record);
    const stored = withheld === undefined ? reported : recordWithoutWords(reported);
    await deps.audit.append({ namespace, agentUid }, stored, `${key}/audit/${index}`);
  }
  const delivery = deliveryOf(pod, reports.deliveryToken, deps);
  const working = ended ?? delivery;
  const shown = accepted.map((event) => withheld?.event(event) ?? event);
  if (working !== undefined) await publishCreatedFiles(working, shown, key, deps);
  const isCarried = carriedBy(delivery, new Set(reports.answerSignatures), deps);
  const ofPod = uses.map((use) => reportedUse(pod, use, delivery, isCarried));
  // A call of a program of a user is no evidence for a promotion: the model of the agent did not choose the tool.
  await deps.uses.record(agentUid, ofPod, key, delivery !== undefined && delivery.isCall !== true);
  const dropped = events.length - accepted.length;
  if (dropped > 0)
    deps.log.warn(
      { correlation: id, dropped },
      'dropped reported events that only a gateway may publish, or of sessions that the agent does not have',
    );
}

/** The pod removes what else may quote a source; this holds whatever a pod sends. */
function withheldOf(agentUid: string, { directory }: GatewayDeps): WithheldSources | undefined {
  const state = directory.byUid(agentUid);
  return state !== undefined && withholdsSources(state) ? new WithheldSources() : undefined;
}

/** A part of an answer may have a part of a line that no filter finds. The whole answer is an event too. */
function isDelta(event: StampedEvent): boolean {
  return event.type === 'message' && event.delta;
}

const GATEWAY_GATES: ReadonlySet<Gate> = new Set(['judge', 'registration']);

/** Decisions made outside the pod are published by the component that makes them, so that no client sees a verdict invented by an agent. */
function isGatewayOnly(event: StampedEvent): boolean {
  switch (event.type) {
    case 'forge-gate': {
      const { gate, passed } = event.result;
      // A failed policy gate may be the pod's own: it does not submit a tool that its policy check refuses.
      return GATEWAY_GATES.has(gate) || (gate === 'policy' && passed);
    }
    case 'forge-refused':
      return GATEWAY_GATES.has(event.gate);
    case 'forge-accepted':
    case 'promotion':
    case 'demotion':
    case 'approval-requested':
    case 'approval-decided':
    case 'turn-parked':
      return true;
    default:
      return false;
  }
}

function stampedEvent(pod: PodIdentity, event: StampedEvent, { clock }: GatewayDeps): StampedEvent {
  const time = Number.isFinite(Date.parse(event.time)) ? event.time : clock.now().toISOString();
  return { ...event, agent: pod.agent, time };
}

function reportedRecord(pod: PodIdentity, record: AuditRecord): AuditRecord {
  const facts = withinLimit(record.facts);
  return { ...record, facts, actor: `agent/${pod.agent}`, evidence: 'reported' };
}

/** Session and root message are those of the delivery: a pod cannot report uses for messages that no gateway delivered to it. */
function reportedUse(
  pod: PodIdentity,
  use: ToolUse,
  delivery: DeliveryTokenClaims | undefined,
  isCarried: (call: EvidencedCall) => boolean,
): ToolUse {
  const ofDelivery = delivery === undefined ? {} : { session: delivery.session, rootMessage: delivery.root };
  const ofPod = { agent: pod.agent, namespace: pod.namespace, evidence: 'reported' } as const;
  const reported = { ...use, ...ofDelivery, ...ofPod };
  return use.recording === undefined ? reported : { ...reported, recording: asReported(use.recording, isCarried) };
}

/** Whether a gateway carried the call for this delivery, by the signatures that the pod got with the answers. */
function carriedBy(
  delivery: DeliveryTokenClaims | undefined,
  signatures: ReadonlySet<string>,
  { answerSignatures }: GatewayDeps,
): (call: EvidencedCall) => boolean {
  return ({ name, input, answer }) =>
    delivery !== undefined &&
    answer?.ok === true &&
    answerSignatures.isSigned(delivery, asCarried({ name, input, value: answer.value }, delivery.session), signatures);
}

function withinLimit(facts: JsonObject): JsonObject {
  const bytes = Buffer.byteLength(JSON.stringify(facts));
  return bytes > MAX_FACTS_BYTES ? { omitted: `${bytes} bytes` } : facts;
}
