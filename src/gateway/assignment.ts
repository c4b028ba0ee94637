import { Type } from 'typebox';
import type { PodIdentity, PodToken } from '../identity/types.ts';
import { digestOf } from '../lib/canonical.ts';
import { TemperError } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import { type Assignment, PATHS } from '../remote/wire.ts';
import type { AgentState, GatewayDeps } from './deps.ts';
import { waitSignal } from './long-poll.ts';
import type { GatewayServer } from './routes.ts';
import { closed, Nothing, POD, REFUSALS } from './schemas.ts';

const Query = Type.Object(
  {
    wait: Type.Optional(Type.Integer({ minimum: 0, maximum: 60, description: 'Seconds.' })),
    version: Type.Optional(Type.String({ maxLength: 128, description: 'The version the pod has.' })),
  },
  closed,
);

/** Tells pods who they are: once they are bound, and again whenever something of it changes. */
export function assignmentRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.get(
    PATHS.assignment,
    {
      config: { access: 'warm-pod', longPoll: true },
      schema: {
        ...POD,
        summary: 'Who the pod is, when it differs from the version known',
        querystring: Query,
        response: { 200: Type.Unknown({ description: '`Assignment`.' }), 204: Nothing, ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { wait = 0, version } = request.query;
      const signal = waitSignal(wait * 1_000, request, deps);
      const found = await nextAssignment(request.podToken, version, deps, signal);
      return found === undefined ? reply.code(204).send(null) : found;
    },
  );
}

async function nextAssignment(
  caller: PodToken | PodIdentity,
  known: string | undefined,
  deps: GatewayDeps,
  signal: AbortSignal,
): Promise<Assignment | undefined> {
  for (;;) {
    const bound = deps.identity.bound(caller);
    if (bound === undefined && 'agentUid' in caller) {
      throw new TemperError('TEMPER_POD_NOT_BOUND', 'the pod is bound to its agent no more');
    }
    const state = bound === undefined ? undefined : deps.directory.byUid(bound.agentUid);
    const assignment = state === undefined ? undefined : assignmentOf(state, deps);
    if (assignment !== undefined && assignment.version !== known) return assignment;
    if (signal.aborted) return undefined;
    await deps.directory.changed({ podUid: caller.podUid, state }, signal);
  }
}

/** Undefined while the policy of the agent does not exist: there is nothing it may do. */
function assignmentOf(state: AgentState, { models }: GatewayDeps): Assignment | undefined {
  const { agent, policy, level, suspended, uid } = state;
  if (policy === undefined) return undefined;
  const { primary, fallbacks = [] } = agent.spec.model;
  const { judge, reviewers = [] } = policy.spec.models ?? {};
  const names = [primary, ...fallbacks, ...(judge === undefined ? [] : [judge]), ...reviewers];
  const resolved = [...new Set(names)].flatMap((name) => {
    const found = models.resolve(name);
    return found === undefined ? [] : [[name, found] as const];
  });
  const assignment = {
    agent: { name: agent.metadata.name, namespace: agent.metadata.namespace ?? '', uid, spec: agent.spec },
    policy: { name: policy.metadata.name, spec: policy.spec },
    level,
    models: Object.fromEntries(resolved),
    suspended,
  };
  return { version: digestOf(assignment as unknown as Json), ...assignment };
}
