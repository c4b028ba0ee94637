import { Type } from 'typebox';
import { closed, ObjectName } from '../../api/v1alpha1/common.ts';
import { TemperError } from '../../lib/errors.ts';
import {
  SessionSummary,
  SessionToolSummary,
  TopAgent,
  UsageBreakdown,
  UsageReport,
} from '../../gateway-api/user-schemas.ts';
import { USAGE_GROUPS } from '../../ledger/usage/usage-groups.ts';
import { SessionId } from '../../tools/event-schema/parts.ts';
import { mapInBatches } from '../concurrency-limit.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { AGENT_PATH, AgentParams, Namespace, NAMESPACE_PATH, requireAgent } from './messages.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, USER_SECURITY } from '../http/schemas.ts';

/** Agents of one namespace in the response of `top`. */
const MAX_TOP_AGENTS = 500;

/** Read-only reports about agents for users. */
export function userReportRoutes(server: GatewayServer, deps: GatewayDeps): void {
  agentReportRoutes(server, deps);
  chargeRoutes(server, deps);
  namespaceReportRoutes(server, deps);
}

const config = { access: 'user' } as const;

const UsageQuery = Type.Object(
  {
    by: Type.Enum([...USAGE_GROUPS], { description: 'What the usage is added up by.' }),
    since: Type.String({ pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$', description: 'The first day, in UTC.' }),
  },
  closed,
);

function agentReportRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.get(
    `${AGENT_PATH}/sessions`,
    {
      config,
      schema: {
        ...USER_SECURITY,
        params: AgentParams,
        response: { 200: Type.Array(SessionSummary, { description: 'Newest first.' }), ...ERROR_RESPONSES },
      },
    },
    (request) => deps.sessions.sessions(requireAgent(request.params, deps).uid),
  );
  server.get(
    `${AGENT_PATH}/tools`,
    {
      config,
      schema: {
        ...USER_SECURITY,
        params: AgentParams,
        querystring: Type.Object({ session: Type.Optional(SessionId) }, closed),
        response: { 200: Type.Array(SessionToolSummary), ...ERROR_RESPONSES },
      },
    },
    (request) => deps.sessions.tools(requireAgent(request.params, deps).uid, request.query.session),
  );
  server.get(
    `${AGENT_PATH}/usage`,
    { config, schema: { ...USER_SECURITY, params: AgentParams, response: { 200: UsageReport, ...ERROR_RESPONSES } } },
    (request) => deps.usage.agent(requireAgent(request.params, deps)),
  );
}

/** What model calls were charged, of one team, one child, or all agents of the namespace. */
function chargeRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.get(
    `${AGENT_PATH}/charges`,
    {
      config,
      schema: {
        ...USER_SECURITY,
        params: AgentParams,
        querystring: UsageQuery,
        summary: 'Usage of the agent, and of all agents below one without a parent',
        response: { 200: UsageBreakdown, ...ERROR_RESPONSES },
      },
    },
    (request) => deps.usage.breakdown([requireAgent(request.params, deps)], request.query),
  );
  server.get(
    `${NAMESPACE_PATH}/charges`,
    {
      config,
      schema: {
        ...USER_SECURITY,
        params: Type.Object({ namespace: Namespace }),
        querystring: UsageQuery,
        summary: 'Usage of all agents of the namespace',
        response: { 200: UsageBreakdown, ...ERROR_RESPONSES },
      },
    },
    (request) => {
      const agents = deps.directory.agents(request.params.namespace);
      const teams = agents.filter(({ ancestors }) => ancestors.length === 0).slice(0, MAX_TOP_AGENTS);
      return deps.usage.breakdown(teams, request.query);
    },
  );
}

function namespaceReportRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.get(
    `${NAMESPACE_PATH}/policies/:policy/usage`,
    {
      config,
      schema: {
        ...USER_SECURITY,
        params: Type.Object({ namespace: Namespace, policy: ObjectName }),
        summary: 'Usage of all agents under the policy',
        response: { 200: UsageReport, ...ERROR_RESPONSES },
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
        ...USER_SECURITY,
        params: Type.Object({ namespace: Namespace }),
        response: { 200: Type.Array(TopAgent), ...ERROR_RESPONSES },
      },
    },
    (request) => {
      const states = deps.directory.agents(request.params.namespace).slice(0, MAX_TOP_AGENTS);
      return mapInBatches(states, (state) => countersOf(state, deps));
    },
  );
}

async function countersOf(state: AgentState, deps: GatewayDeps): Promise<TopAgent> {
  const [{ pending: waiting, inFlight }, deadLetters, usage, sessions] = await Promise.all([
    deps.inbox.depth(state.uid),
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
