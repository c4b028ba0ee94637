import { Type } from 'typebox';
import { ObjectName } from '../api/v1alpha1/common.ts';
import { TemperError } from '../lib/errors.ts';
import type { TopAgent } from '../remote/people.ts';
import { inBatches } from './batches.ts';
import type { AgentState, GatewayDeps } from './deps.ts';
import { AGENT_PATH, AgentParams, Namespace, NAMESPACE_PATH, namedAgent } from './people.ts';
import type { GatewayServer } from './routes.ts';
import { closed, PERSON, REFUSALS, SessionId } from './schemas.ts';

/** Agents of one namespace in the response of `top`. */
const MAX_TOP_AGENTS = 500;

const responses = (description: string) => ({ 200: Type.Unknown({ description }), ...REFUSALS });

/** Read-only reports about agents for users. */
export function peopleReportRoutes(server: GatewayServer, deps: GatewayDeps): void {
  const config = { access: 'user' } as const;
  server.get(
    `${AGENT_PATH}/sessions`,
    { config, schema: { ...PERSON, params: AgentParams, response: responses('`SessionSummary[]`, newest first.') } },
    (request) => deps.sessions.sessions(namedAgent(request.params, deps).uid),
  );
  server.get(
    `${AGENT_PATH}/tools`,
    {
      config,
      schema: {
        ...PERSON,
        params: AgentParams,
        querystring: Type.Object({ session: Type.Optional(SessionId) }, closed),
        response: responses('`SessionToolSummary[]`: tools of sessions.'),
      },
    },
    (request) => deps.sessions.tools(namedAgent(request.params, deps).uid, request.query.session),
  );
  server.get(
    `${AGENT_PATH}/usage`,
    { config, schema: { ...PERSON, params: AgentParams, response: responses('`UsageReport` of the agent.') } },
    (request) => deps.usage.agent(namedAgent(request.params, deps)),
  );
  server.get(
    `${NAMESPACE_PATH}/policies/:policy/usage`,
    {
      config,
      schema: {
        ...PERSON,
        params: Type.Object({ namespace: Namespace, policy: ObjectName }),
        response: responses('`UsageReport` of all agents under the policy.'),
      },
    },
    async (request) => {
      const { namespace, policy: name } = request.params;
      const policy = deps.directory.policy(namespace, name);
      if (policy === undefined) throw new TemperError('TEMPER_NOT_FOUND', `there is no TrustPolicy "${name}"`);
      return deps.usage.policy(policy);
    },
  );
  server.get(
    `${NAMESPACE_PATH}/top`,
    {
      config,
      schema: {
        ...PERSON,
        params: Type.Object({ namespace: Namespace }),
        response: responses('`TopAgent[]`: live counters.'),
      },
    },
    (request) => {
      const states = deps.directory.agents(request.params.namespace).slice(0, MAX_TOP_AGENTS);
      return inBatches(states, (state) => countersOf(state, deps));
    },
  );
}

async function countersOf(state: AgentState, deps: GatewayDeps): Promise<TopAgent> {
  const [{ waiting, inFlight }, deadLetters, usage, sessions] = await Promise.all([
    deps.inbox.waiting(state.uid),
    deps.deadLetters.count(state.uid),
    deps.usage.agent(state),
    deps.sessions.sessions(state.uid),
  ]);
  const hour = usage.windows.find(({ window }) => window === 'hour');
  const last = sessions[0];
  return {
    agent: state.agent.metadata.name,
    waiting,
    inFlight,
    deadLetters,
    tokensThisHour: (hour?.inputTokens ?? 0) + (hour?.outputTokens ?? 0),
    ...(last === undefined ? {} : { lastSeen: last.lastUsedAt }),
  };
}
