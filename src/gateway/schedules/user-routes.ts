import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import {
  PauseScheduleRequest,
  ResumeScheduleRequest,
  TriggeredRun,
  TriggerScheduleRequest,
  UserScheduleList,
} from '../../gateway-api/schedules/user-schedule-schemas.ts';
import { AgentName } from '../../gateway-api/schema-parts.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { ScheduleOwner } from '../../schedule/agent-schedules.ts';
import { paused, resumed } from '../../schedule/user-decisions.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer } from '../http/routes.ts';
import { Done, ERROR_RESPONSES, USER_SECURITY } from '../http/schemas.ts';
import { AGENT_PATH, AgentParams, Namespace, NAMESPACE_PATH, requireAgent } from '../users/messages.ts';
import { hasSpecSchedule, triggerRun } from './trigger.ts';
import { userSchedules } from './user-list.ts';

const MAX_REASON = 1_000;

/** Schedules for users: what is due, and decisions that no edit of a spec is, because another source of truth may own that. */
export function userScheduleRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.get(
    `${NAMESPACE_PATH}/schedules`,
    {
      config: { access: 'user' },
      schema: {
        ...USER_SECURITY,
        summary: 'The schedules of one agent, or of all agents of the namespace',
        params: Type.Object({ namespace: Namespace }),
        querystring: Type.Object({ agent: Type.Optional(AgentName) }, closed),
        response: { 200: UserScheduleList, ...ERROR_RESPONSES },
      },
    },
    async ({ params: { namespace }, query: { agent } }) => {
      const agents =
        agent === undefined ? deps.directory.agents(namespace) : [requireAgent({ namespace, agent }, deps)];
      return userSchedules(namespace, agents, deps);
    },
  );
  server.post(
    `${AGENT_PATH}/schedules/trigger`,
    {
      config: { access: 'user', idempotent: true },
      schema: {
        ...USER_SECURITY,
        summary: 'Starts a run of a schedule now',
        params: AgentParams,
        body: TriggerScheduleRequest,
        response: { 200: TriggeredRun, ...ERROR_RESPONSES },
      },
    },
    async (request) => {
      const state = requireAgent(request.params, deps);
      const run = await triggerRun(state, request.body.schedule, request, deps);
      await record('schedule.triggered', state, request, { message: run.id }, deps);
      return run;
    },
  );
  decisionRoutes(server, deps);
}

function decisionRoutes(server: GatewayServer, deps: GatewayDeps): void {
  const response = { 204: Done, ...ERROR_RESPONSES };
  server.post(
    `${AGENT_PATH}/schedules/pause`,
    {
      config: { access: 'user', idempotent: true },
      schema: {
        ...USER_SECURITY,
        summary: 'Stops a schedule until a user resumes it',
        params: AgentParams,
        body: PauseScheduleRequest,
        response,
      },
    },
    async (request, reply) => {
      const state = requireAgent(request.params, deps);
      const { schedule, by } = request.body;
      const reason = printable(request.body.reason, MAX_REASON);
      const pause = { by: printable(by, 256), reason, since: deps.clock.now().toISOString() };
      assertHasSpecSchedule(state, schedule);
      await deps.agentSchedules.update(ownerOf(state), (before) => paused(before, schedule, pause));
      await record('schedule.paused', state, request, { reason }, deps);
      return reply.code(204).send(null);
    },
  );
  server.post(
    `${AGENT_PATH}/schedules/resume`,
    {
      config: { access: 'user', idempotent: true },
      schema: {
        ...USER_SECURITY,
        summary: 'Ends the pause of a schedule, and failures that stopped it',
        params: AgentParams,
        body: ResumeScheduleRequest,
        response,
      },
    },
    async (request, reply) => {
      const state = requireAgent(request.params, deps);
      const { schedule } = request.body;
      assertHasSpecSchedule(state, schedule);
      await deps.agentSchedules.update(ownerOf(state), (before) => resumed(before, schedule));
      await record('schedule.resumed', state, request, {}, deps);
      return reply.code(204).send(null);
    },
  );
}

function assertHasSpecSchedule(state: AgentState, schedule: string | undefined): void {
  if (schedule !== undefined || hasSpecSchedule(state)) return;
  const { name } = state.agent.metadata;
  throw new TemperError('TEMPER_NOT_FOUND', `the spec of agent "${name}" has no schedule; name one that it made`);
}

function ownerOf({ uid, agent: { metadata } }: AgentState): ScheduleOwner {
  return { uid, name: metadata.name, namespace: metadata.namespace ?? '' };
}

async function record(
  action: 'schedule.triggered' | 'schedule.paused' | 'schedule.resumed',
  { uid, agent }: AgentState,
  { body, idempotencyKey }: Pick<FastifyRequest, 'idempotencyKey'> & { body: { schedule?: string; by: string } },
  facts: { message?: string; reason?: string },
  { audit }: GatewayDeps,
): Promise<void> {
  const { name, namespace = '' } = agent.metadata;
  await audit.append(
    { namespace, agentUid: uid },
    {
      action,
      actor: 'user',
      evidence: 'observed',
      subject: body.schedule ?? 'spec',
      facts: { agentUid: uid, agent: name, by: printable(body.by, 256), ...facts },
    },
    `${action}/${uid}/${idempotencyKey}`,
  );
}
