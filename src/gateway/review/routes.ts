import type { AuditRecord } from '../../audit/port.ts';
import { GateLog } from '../../forge/gate-log.ts';
import { createForgeReview } from '../../forge/review.ts';
import type { Accepted, Candidate, ForgeCaller, ForgeResult } from '../../forge/types.ts';
import { builtInNames } from '../../engine/built-in.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { Op } from '../../lib/operation.ts';
import type { SessionRegistry } from '../../nats/session-registry.ts';
import { PATHS } from '../../remote/wire.ts';
import { ATTRIBUTES, continuingTrace, inSpan, SPANS } from '../../telemetry/spans.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import { createJudge } from '../../tempering/judge.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { EventSink } from '../../tools/events.ts';
import { type Demotions, inService } from '../demotions.ts';
import type { GatewayDeps } from '../deps.ts';
import type { LeaseClaims } from '../lease.ts';
import { type HeldLease, leaseOf } from '../lease-check.ts';
import { factsOf, parentUnder } from '../message-traces.ts';
import type { RouteModule } from '../routes.ts';
import { Done, POD } from '../schemas.ts';
import { type Speaker, speakerOf, type SpeakerDeps } from '../speaker.ts';
import { observedEvents } from './observed-events.ts';
import { candidateOf, RejectedBody, refusedOf, ReviewBody } from './request.ts';
import { gatewaySessionTools } from './session-tools.ts';
import { describedView } from './tool-view.ts';

export interface ReviewRouteDeps extends Omit<SpeakerDeps, 'directory' | 'ids'> {
  registry: SessionRegistry;
  demotions: Demotions;
}

const BODY_BYTES = 2 * 1_024 * 1_024;
const REVIEW_MILLISECONDS = 4 * 60_000;

/** The half of a forge in which the author has no hand. */
export function reviewRoutes(own: ReviewRouteDeps): RouteModule {
  return (server, deps) => {
    const config = { access: 'pod', idempotent: true } as const;
    server.post(
      PATHS.forgeReview,
      {
        config,
        bodyLimit: BODY_BYTES,
        schema: { ...POD, body: ReviewBody, summary: 'Judges a tool and registers it' },
      },
      async (request) => {
        const held = leaseOf(request, request.body.lease, deps);
        const { clock } = deps;
        const op = {
          signal: request.gone,
          deadline: clock.monotonic() + REVIEW_MILLISECONDS,
          key: request.idempotencyKey,
        };
        // With the bytes it is about: a pod that uses one key for two tools must not hide the second one.
        const key = `${request.idempotencyKey}/${request.body.candidate.digest}`;
        const review = await openReview(own, deps, held, key);
        const parent = parentUnder(held.claims, request.headers[TRACEPARENT]);
        try {
          return await continuingTrace(parent, () => observed(deps, () => review.submit(request.body.candidate, op)));
        } finally {
          await review.settled();
        }
      },
    );
    server.post(
      PATHS.forgeRejected,
      {
        config,
        bodyLimit: BODY_BYTES,
        schema: { ...POD, body: RejectedBody, summary: 'Keeps what the pod refused itself', response: { 204: Done } },
      },
      async (request, reply) => {
        const { claims, state } = leaseOf(request, request.body.lease, deps);
        const speaker = speakerOf({ ...own, ...deps, models: own.models }, state, false);
        const tools = toolsOf(own, deps, { claims, key: request.idempotencyKey, evidence: 'claimed' }, speaker);
        await tools.keepRejected(refusedOf(request.body), callerOf(claims, speaker));
        return reply.code(204).send(null);
      },
    );
  };
}

/** A span of its own, counted by how it ended. The judge's call is below it. */
function observed({ metrics }: GatewayDeps, work: () => Promise<ForgeResult>): Promise<ForgeResult> {
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

interface Review {
  submit(candidate: Parameters<typeof candidateOf>[0], op: Op): Promise<ForgeResult>;
  settled(): Promise<void>;
}

/** The world as this gateway knows it; the author's model is the agent's, whatever the pod says. */
async function openReview(
  own: ReviewRouteDeps,
  deps: GatewayDeps,
  { claims, state }: HeldLease,
  key: string,
): Promise<Review> {
  const { clock, ids, log } = deps;
  const { agentUid, session } = claims;
  const [tainted, registered] = await Promise.all([
    deps.sessions.tainted(agentUid, session),
    own.registry.tools(agentUid, session),
  ]);
  const isOut = (digest: Digest): boolean => own.demotions.reason(claims.namespace, digest) !== undefined;
  const tools = inService(registered, isOut);
  const speaker = speakerOf({ ...own, ...deps, models: own.models }, state, tainted);
  const { judge: judgeModel } = speaker.agentModel();
  const nonce = (): string => ids.next('nonce');
  const judge = createJudge({ model: speaker.charged, judgeModel, clock, nonce });
  const events = observedEvents(deps.events, clock, claims, {
    key: `review/${key}`,
    failed: (error) => log.warn({ error, ...factsOf(claims) }, 'an event of a review could not be told'),
  });
  const caller = callerOf(claims, speaker);
  const view = describedView(tools, caller);
  const sessionTools = toolsOf(own, deps, { claims, key, evidence: 'observed' }, speaker);
  const review = createForgeReview({
    judge,
    sessionTools,
    world: () => ({ decider: speaker.decider, view, events: events.sink }),
  });
  return {
    async submit(given, op) {
      const candidate = candidateOf(given);
      const before = tools.find(({ digest, tier }) => tier === 'Session' && digest === candidate.digest);
      if (before === undefined) return review.submit(candidate, caller, op);
      // The answer to the first submission was lost, and maybe the word about it: the same bytes in the same session are the same tool.
      await sessionTools.recordAccepted(before, caller);
      return acceptedBefore(before, candidate, events.sink);
    },
    settled: () => events.settled(),
  };
}

/** Says once more what was said when it was accepted, in the same order. */
function acceptedBefore(
  { artifact, digest, verdicts }: RegisteredTool,
  { evidence, gates = [] }: Candidate,
  events: EventSink,
): Accepted {
  const [verdict] = verdicts;
  const log = new GateLog(artifact.name, events, gates);
  log.pass('policy');
  log.pass('judge', verdict?.confidence.toFixed(2));
  log.pass('register', 'Session');
  events({ type: 'forge-accepted', tool: artifact.name, digest, tier: 'Session' });
  return {
    accepted: true,
    artifact,
    digest,
    evidence,
    gates: log.gates,
    ...(verdict === undefined ? {} : { verdict }),
  };
}

interface OnBehalf {
  claims: LeaseClaims;
  /** Of the request; what is written down under it again is written down once. */
  key: string;
  evidence: 'observed' | 'claimed';
}

function toolsOf(own: ReviewRouteDeps, deps: GatewayDeps, { claims, key, evidence }: OnBehalf, { decider }: Speaker) {
  const { agentUid, namespace } = claims;
  const append = async (record: AuditRecord): Promise<void> => {
    await deps.audit.append(namespace, record, `review/${agentUid}/${key}/${record.action}/${record.subject}`);
  };
  return gatewaySessionTools({
    agentUid,
    registry: own.registry,
    audit: { append },
    clock: deps.clock,
    builtIn: builtInNames(),
    limits: decider.ceilings,
    demoted: (digest) => own.demotions.reason(namespace, digest),
    evidence,
  });
}

function callerOf({ agent, namespace, session, root }: LeaseClaims, speaker: Speaker): ForgeCaller {
  return { agent, namespace, session, rootMessage: root, authorModel: speaker.agentModel().author };
}
