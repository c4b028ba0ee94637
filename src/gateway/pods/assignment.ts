import { modelNames } from '../../api/names.ts';
import type { PodIdentity, PodToken } from '../../identity/types.ts';
import { digestOf } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { BrokeredToolDefinition } from '../../gateway-api/brokered/brokered-api.ts';
import { Assignment, AssignmentQuery } from '../../gateway-api/polls/assignment-schema.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { toolRequest } from '../../tools/authorize.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { longPollSignal } from '../http/long-poll.ts';
import type { GatewayServer } from '../http/routes.ts';
import { NoContent, POD_SECURITY, ERROR_RESPONSES } from '../http/schemas.ts';

/** Sends pods their assignment: when they are bound, and after each change. */
export function assignmentRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.get(
    POD_API_PATHS.assignment,
    {
      config: { access: 'warm-pod', longPoll: true },
      schema: {
        ...POD_SECURITY,
        summary: 'The assignment of the pod, when it differs from the known version',
        querystring: AssignmentQuery,
        response: { 200: Assignment, 204: NoContent, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      const { wait = 0, version } = request.query;
      const signal = longPollSignal(wait * 1_000, request, deps);
      const assignment = await nextAssignment(request.podToken, version, deps, signal);
      return assignment === undefined ? reply.code(204).send(null) : assignment;
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
    const bound = deps.identity.boundIdentity(caller);
    if (bound === undefined && 'agentUid' in caller) {
      throw new TemperError('TEMPER_POD_NOT_BOUND', 'the pod is no longer bound to its agent');
    }
    const state = bound === undefined ? undefined : deps.directory.byUid(bound.agentUid);
    const changed = state === undefined ? undefined : changedAssignment(state, known, deps);
    if (changed !== undefined) return changed;
    if (signal.aborted) return undefined;
    await deps.directory.changed({ podUid: caller.podUid, state }, signal);
  }
}

/** The assignment when it differs from the known version. */
export function changedAssignment(
  state: AgentState,
  known: string | undefined,
  deps: GatewayDeps,
): Assignment | undefined {
  const assignment = assignmentOf(state, deps);
  return assignment?.version === known ? undefined : assignment;
}

/** Undefined while the policy of the agent does not exist: nothing is allowed then. */
function assignmentOf(state: AgentState, deps: GatewayDeps): Assignment | undefined {
  const specs = specsOf(state, deps);
  if (specs === undefined) return undefined;
  const { namespace = '', name } = state.agent.metadata;
  const brokered = brokeredToolsOf(state, namespace, deps);
  const repositories = deps.repositories.list(namespace);
  const assignment = {
    ...specs,
    suspended: state.suspended,
    tools: deps.toolsVersion(namespace, name),
    ...(deps.skills.any(namespace) ? { skills: true as const } : {}),
    ...(deps.models.hasEmbedder === true ? { hasEmbedder: true as const } : {}),
    ...(brokered.length === 0 ? {} : { brokered }),
    ...(repositories.length === 0 ? {} : { repositories: [...repositories] }),
  };
  return { version: digestOf(assignment as unknown as Json), ...assignment };
}

/** A pod does not get the definitions of tools that its agent may not list. A tainted session may list fewer; the engine decides that. */
function brokeredToolsOf(
  state: AgentState,
  namespace: string,
  { brokered, directory }: Pick<GatewayDeps, 'brokered' | 'directory'>,
): BrokeredToolDefinition[] {
  const tools = brokered.list(namespace);
  if (tools.length === 0) return [];
  const decider = directory.decider(state, false);
  return tools
    .filter(({ descriptor }) => decider.decide(toolRequest(descriptor)).effect !== 'Deny')
    .map(({ definition, descriptor }) => {
      const { locality: _locality, forged: _forged, examples, usage, failures, hosts, ...described } = descriptor;
      return {
        definition,
        ...described,
        ...(examples === undefined ? {} : { examples: [...examples] }),
        ...(usage === undefined ? {} : { usage: [...usage] }),
        ...(failures === undefined ? {} : { failures: [...failures] }),
        ...(hosts === undefined ? {} : { hosts: [...hosts] }),
      };
    });
}

/** Everything that an engine of the agent needs. Undefined while its policy does not exist. */
export function specsOf(
  { agent, policy, level, categoryLevels, uid, ancestors }: AgentState,
  { models }: Pick<GatewayDeps, 'models'>,
):
  | Omit<Assignment, 'version' | 'tools' | 'skills' | 'hasEmbedder' | 'brokered' | 'repositories' | 'suspended'>
  | undefined {
  if (policy === undefined) return undefined;
  const { judge, reviewers = [] } = policy.spec.models ?? {};
  const names = [...modelNames(agent.spec.model), ...(judge === undefined ? [] : [judge]), ...reviewers];
  const resolved = [...new Set(names)].flatMap((name) => {
    const model = models.resolve(name);
    return model === undefined ? [] : [[name, model] as const];
  });
  return {
    agent: { name: agent.metadata.name, namespace: agent.metadata.namespace ?? '', uid, spec: agent.spec },
    policy: { name: policy.metadata.name, spec: policy.spec },
    level,
    ...(Object.keys(categoryLevels).length === 0 ? {} : { categoryLevels }),
    ...(ancestors.length === 0 ? {} : { generation: ancestors.length }),
    models: Object.fromEntries(resolved),
  };
}
