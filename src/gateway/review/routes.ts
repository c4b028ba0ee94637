import type { AuditRecord } from '../../audit/port.ts';
import { FORGE_TOOL } from '../../forge/forge-tool.ts';
import { GateRecorder } from '../../forge/gate-recorder.ts';
import { createForgeReview, judgeNote } from '../../forge/review.ts';
import type { AcceptedTool, ToolCandidate, ForgeCaller, ForgeResult as ReviewResult } from '../../forge/types.ts';
import { builtInNames } from '../../engine/built-in.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';
import type { ToolEvidence } from '../../nats/promotion/evidence.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { DropToolRequest, ForgeResult, RejectedToolRequest, ReviewRequest } from '../../gateway-api/tool-schemas.ts';
import { ATTRIBUTES, continueTrace, inSpan, SPANS } from '../../telemetry/spans.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import type { Canaries } from '../../tempering/canary/canaries.ts';
import { createJudge } from '../../tempering/judge/judge.ts';
import { DROP_TOOL } from '../../tempering/lifecycle/drop-tool.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import { WithheldSources } from '../../tempering/withheld/withheld-sources.ts';
import type { EventSink } from '../../tools/events.ts';
import { type Demotions, inService } from '../cluster/demotions.ts';
import type { GatewayDeps } from '../deps.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';
import { type AuthorizedDelivery, authorizeDelivery } from '../delivery/authorize.ts';
import { messageLogFields, parentSpanOf } from '../tracing/message-traces.ts';
import type { GatewayServer, RouteModule } from '../http/routes.ts';
import { deduplicationKey } from '../http/deduplication-key.ts';
import { Done, ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';
import { type AgentModelAccess, modelAccessFor, type ModelAccessDeps } from '../models/agent-model-access.ts';
import { publishForged } from '../events/work-events.ts';
import { createReviewEvents } from './event-publisher.ts';
import { withholdsSources } from '../storage/withheld-sessions.ts';
import { candidateOf, refusedOf } from './request.ts';
import { gatewaySessionTools } from './session-tools.ts';
import { descriptionOnlyView } from './tool-view.ts';
import type { ArtifactVetter } from './vetting/pool.ts';

export interface ReviewRouteDeps extends Omit<ModelAccessDeps, 'directory'> {
  registry: SessionRegistry;
  evidence: Pick<ToolEvidence, 'remove'>;
  demotions: Demotions;
  /** Vets submitted artifacts outside the thread that serves requests. */
  vetter: ArtifactVetter;
  /** Supervises the judges. */
  canaries: Canaries;
}

const MAX_BODY_BYTES = 2 * 1_024 * 1_024;
const REVIEW_TIMEOUT_MS = 4 * 60_000;
const CONFIG = { access: 'pod', idempotent: true } as const;

/** The part of the forge that runs outside the pod: review and registration of tools. */
export function reviewRoutes(own: ReviewRouteDeps): RouteModule {
  return (server, deps) => {
    server.post(
      POD_API_PATHS.forgeReview,
      {
        config: CONFIG,
        bodyLimit: MAX_BODY_BYTES,
        schema: {
          ...POD_SECURITY,
          body: ReviewRequest,
          summary: 'Reviews a tool and registers it',
          response: { 200: ForgeResult, ...ERROR_RESPONSES },
        },
      },
      async (request) => {
        const delivery = authorizeDelivery(request, request.body.deliveryToken, deps);
        deps.reviewLimits.take(delivery.claims.agentUid, 1);
        const deadline = deps.clock.monotonic() + REVIEW_TIMEOUT_MS;
        const op = { signal: request.disconnected, deadline, key: request.idempotencyKey };
        // Includes the digest: a pod that reuses a key must not hide a second tool.
        const key = deduplicationKey('review/observed', delivery.claims.agentUid, [
          request.idempotencyKey,
          request.body.candidate.digest,
        ]);
        const review = await openReview(own, deps, delivery, key);
        const parent = parentSpanOf(delivery.claims, request.headers[TRACEPARENT]);
        try {
          const result = await continueTrace(parent, () =>
            instrumented(deps, () => review.submit(request.body.candidate, op)),
          );
          if (result.accepted) {
            await publishForged(delivery.claims, { name: result.artifact.name, digest: result.digest }, deps);
            await deps.recorder.used(delivery.claims, FORGE_TOOL.category);
          }
          return result;
        } finally {
          await review.eventsFlushed();
        }
      },
    );
    rejectedRoute(own, server, deps);
    dropRoute(own, server, deps);
  };
}

function rejectedRoute(own: ReviewRouteDeps, server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    POD_API_PATHS.forgeRejected,
    {
      config: CONFIG,
      bodyLimit: MAX_BODY_BYTES,
      schema: {
        ...POD_SECURITY,
        body: RejectedToolRequest,
        summary: 'Records a tool that the pod itself refused',
        response: { 204: Done, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      const { claims, state } = authorizeDelivery(request, request.body.deliveryToken, deps);
      deps.reviewLimits.take(claims.agentUid, 1);
      const modelAccess = modelAccessFor({ ...own, ...deps, models: own.models }, state, false);
      const key = deduplicationKey('review/reported', claims.agentUid, [request.idempotencyKey]);
      const withholds = withholdsSources(state);
      const tools = toolsOf(own, deps, { claims, key, evidence: 'reported', withholds }, modelAccess);
      await tools.recordRejected(refusedOf(request.body), callerOf(claims, modelAccess));
      return reply.code(204).send(null);
    },
  );
}

function dropRoute(own: ReviewRouteDeps, server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    POD_API_PATHS.forgeDrop,
    {
      config: CONFIG,
      schema: {
        ...POD_SECURITY,
        body: DropToolRequest,
        summary: 'Removes a tool from the session of the delivery',
        response: { 204: Done, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      const { deliveryToken, digest } = request.body;
      const { claims, state } = authorizeDelivery(request, deliveryToken, deps);
      deps.reviewLimits.take(claims.agentUid, 1);
      const modelAccess = modelAccessFor({ ...own, ...deps, models: own.models }, state, false);
      const key = deduplicationKey('review/drop', claims.agentUid, [request.idempotencyKey]);
      const withholds = withholdsSources(state);
      await toolsOf(own, deps, { claims, key, evidence: 'observed', withholds }, modelAccess).drop(
        claims.session,
        digest,
      );
      await deps.recorder.used(claims, DROP_TOOL.category);
      return reply.code(204).send(null);
    },
  );
}

/** Runs the review in its own span and counts its outcome. The judge's model call is a child span. */
function instrumented({ metrics }: GatewayDeps, work: () => Promise<ReviewResult>): Promise<ReviewResult> {
  return inSpan(SPANS.review, {}, async (span) => {
    let outcome = 'failed';
    try {
      const result = await work();
      outcome = result.accepted ? 'accepted' : result.gate;
      return result;
    } finally {
      span.setAttribute(ATTRIBUTES.reviewOutcome, outcome);
      metrics.count('temper_forge_reviews_total', { outcome });
    }
  });
}

interface OpenReview {
  submit(candidate: Parameters<typeof candidateOf>[0], op: CallOptions): Promise<ReviewResult>;
  eventsFlushed(): Promise<void>;
}

/** Builds the review from the gateway's own state. The author's model is the agent's, not the one the pod states. */
async function openReview(
  own: ReviewRouteDeps,
  deps: GatewayDeps,
  { claims, state }: AuthorizedDelivery,
  key: string,
): Promise<OpenReview> {
  const { clock, ids, log } = deps;
  const { agentUid, session } = claims;
  const [tainted, registered] = await Promise.all([
    deps.sessions.tainted(agentUid, session),
    own.registry.tools(agentUid, session),
  ]);
  const isOut = (digest: Digest): boolean => own.demotions.reason(claims, digest) !== undefined;
  const tools = inService(registered, isOut);
  const modelAccess = modelAccessFor({ ...own, ...deps, models: own.models }, state, tainted, { root: claims.root });
  const { judge: judgeModel, judgeMayBeAuthor } = modelAccess.agentModel();
  const nonce = (): string => ids.next('nonce');
  const judge = createJudge({
    model: modelAccess.meteredModel,
    judgeModel,
    mayBeAuthor: judgeMayBeAuthor,
    clock,
    nonce,
    canaries: own.canaries,
  });
  const withheld = withholdsSources(state) ? new WithheldSources() : undefined;
  const events = createReviewEvents(deps.events, clock, claims, {
    key,
    withheld,
    failed: (error) => log.warn({ error, ...messageLogFields(claims) }, 'an event of a review could not be published'),
  });
  const caller = callerOf(claims, modelAccess);
  const view = descriptionOnlyView(tools, caller, deps.brokered);
  const withholds = withheld !== undefined;
  const sessionTools = toolsOf(own, deps, { claims, key, evidence: 'observed', withholds }, modelAccess);
  const review = createForgeReview({
    judge,
    sessionTools,
    context: () => ({ decider: modelAccess.decider, view, events: events.sink }),
    vet: (artifact, { signal }) => own.vetter.vet(claims, artifact, signal),
  });
  return {
    async submit(body, op) {
      const candidate = candidateOf(body);
      withheld?.learn(candidate.artifact.implementation.source ?? '');
      const existing = tools.find(({ digest, tier }) => tier === 'Session' && digest === candidate.digest);
      if (existing === undefined) return review.submit(candidate, caller, op);
      // A retry after a lost response: the same bytes in the same session are the same tool. Its audit record may be missing.
      await sessionTools.recordAccepted(existing, caller);
      return repeatAccepted(existing, candidate, events.sink);
    },
    eventsFlushed: () => events.flushed(),
  };
}

/** Publishes the events of the first acceptance again, in the same order. */
function repeatAccepted(
  { artifact, digest, verdicts }: RegisteredTool,
  candidate: ToolCandidate,
  events: EventSink,
): AcceptedTool {
  const [verdict] = verdicts;
  const log = new GateRecorder(artifact.name, events, candidate);
  log.pass('policy');
  log.pass('judge', verdict === undefined ? undefined : judgeNote(verdict));
  log.pass('registration', 'Session');
  events({ type: 'forge-accepted', tool: artifact.name, digest, tier: 'Session' });
  return {
    accepted: true,
    artifact,
    digest,
    evidence: candidate.evidence,
    gates: log.gates,
    ...(verdict === undefined ? {} : { verdict }),
  };
}

interface ReviewSubject {
  claims: DeliveryTokenClaims;
  /** Idempotency key of the audit records. */
  key: string;
  evidence: 'observed' | 'reported';
  withholds: boolean;
}

function toolsOf(
  own: ReviewRouteDeps,
  deps: GatewayDeps,
  { claims, key, evidence, withholds }: ReviewSubject,
  { decider }: AgentModelAccess,
) {
  const { agentUid, namespace } = claims;
  const append = async (record: AuditRecord): Promise<void> => {
    await deps.audit.append({ namespace, agentUid }, record, `${key}/${record.action}/${record.subject}`);
  };
  return gatewaySessionTools({
    agentUid,
    registry: own.registry,
    audit: { append },
    clock: deps.clock,
    builtIn: new Set([...builtInNames(), ...deps.brokered.list(namespace).map(({ descriptor }) => descriptor.name)]),
    limits: decider.forgeLimits,
    demoted: (digest) => own.demotions.reason({ namespace, agentUid }, digest),
    async removeEvidence(digest) {
      const all = await own.registry.allTools(agentUid);
      if (!all.some((tool) => tool.digest === digest)) await own.evidence.remove(agentUid, digest);
    },
    evidence,
    withholds,
  });
}

function callerOf(
  { agent, namespace, session, root }: DeliveryTokenClaims,
  modelAccess: AgentModelAccess,
): ForgeCaller {
  return { agent, namespace, session, rootMessage: root, authorModel: modelAccess.agentModel().author };
}
