import { createForgeReview } from '../../forge/review.ts';
import type { Accepted, Candidate, ForgeCaller } from '../../forge/types.ts';
import { builtInNames } from '../../engine/built-in.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { Op } from '../../lib/operation.ts';
import type { SessionRegistry } from '../../nats/session-registry.ts';
import { PATHS } from '../../remote/wire.ts';
import { createJudge } from '../../tempering/judge.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { GatewayDeps } from '../deps.ts';
import type { LeaseClaims } from '../lease.ts';
import { type HeldLease, leaseOf } from '../lease-check.ts';
import type { RouteModule } from '../routes.ts';
import { Done, POD } from '../schemas.ts';
import { type Speaker, speakerOf, type SpeakerDeps } from '../speaker.ts';
import { observedEvents } from './observed-events.ts';
import { candidateOf, RejectedBody, refusedOf, ReviewBody } from './request.ts';
import { gatewaySessionTools } from './session-tools.ts';
import { describedView } from './tool-view.ts';

export interface ReviewRouteDeps extends Omit<SpeakerDeps, 'directory' | 'ids'> {
  registry: SessionRegistry;
  /** Why a tool was taken out of service in a namespace; nothing when it was not. */
  demoted: (namespace: string, digest: Digest) => string | undefined;
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
        const review = await openReview(own, deps, held);
        try {
          return await review.submit(request.body.candidate, op);
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
        const tools = toolsOf(own, deps, claims, speaker, 'claimed');
        await tools.keepRejected(refusedOf(request.body), callerOf(claims, speaker));
        return reply.code(204).send(null);
      },
    );
  };
}

interface Review {
  submit(candidate: Parameters<typeof candidateOf>[0], op: Op): Promise<object>;
  settled(): Promise<void>;
}

/** The world as this gateway knows it; the author's model is the agent's, whatever the pod says. */
async function openReview(own: ReviewRouteDeps, deps: GatewayDeps, { claims, state }: HeldLease): Promise<Review> {
  const { clock, ids, log } = deps;
  const { agentUid, session } = claims;
  const [tainted, tools] = await Promise.all([
    deps.sessions.tainted(agentUid, session),
    own.registry.tools(agentUid, session),
  ]);
  const speaker = speakerOf({ ...own, ...deps, models: own.models }, state, tainted);
  const { judge: judgeModel } = speaker.agentModel();
  const nonce = (): string => ids.next('nonce');
  const judge = createJudge({ model: speaker.charged, judgeModel, clock, nonce });
  const events = observedEvents(deps.events, clock, claims, (error) =>
    log.warn({ error, agent: claims.agent }, 'an event of a review could not be told'),
  );
  const caller = callerOf(claims, speaker);
  const view = describedView(tools, caller);
  const review = createForgeReview({
    judge,
    sessionTools: toolsOf(own, deps, claims, speaker, 'observed'),
    world: () => ({ decider: speaker.decider, view, events: events.sink }),
  });
  return {
    async submit(given, op) {
      const candidate = candidateOf(given);
      const registered = tools.find(({ digest }) => digest === candidate.digest);
      // The answer to the first submission was lost: the same bytes in the same session are the same tool.
      return registered === undefined ? review.submit(candidate, caller, op) : acceptedBefore(registered, candidate);
    },
    settled: () => events.settled(),
  };
}

function acceptedBefore({ artifact, digest, verdicts }: RegisteredTool, { evidence, gates }: Candidate): Accepted {
  const [verdict] = verdicts;
  return {
    accepted: true,
    artifact,
    digest,
    evidence,
    gates: [...(gates ?? [])],
    ...(verdict === undefined ? {} : { verdict }),
  };
}

function toolsOf(
  own: ReviewRouteDeps,
  deps: GatewayDeps,
  { agentUid, namespace }: LeaseClaims,
  { decider }: Speaker,
  evidence: 'observed' | 'claimed',
) {
  const append = async (record: Parameters<GatewayDeps['audit']['append']>[1]): Promise<void> => {
    await deps.audit.append(namespace, record);
  };
  return gatewaySessionTools({
    agentUid,
    registry: own.registry,
    audit: { append },
    clock: deps.clock,
    builtIn: builtInNames(),
    limits: decider.ceilings,
    demoted: (digest) => own.demoted(namespace, digest),
    evidence,
  });
}

function callerOf({ agent, namespace, session, root }: LeaseClaims, speaker: Speaker): ForgeCaller {
  return { agent, namespace, session, rootMessage: root, authorModel: speaker.agentModel().author };
}
