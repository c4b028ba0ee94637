import type { FastifyRequest } from 'fastify';
import {
  CREATE_SCHEDULE_TOOL,
  DELETE_SCHEDULE_TOOL,
  LIST_SCHEDULES_TOOL,
} from '../../agent/tools/schedules/schedule-tools.ts';
import {
  CreatedSchedule,
  CreateScheduleRequest,
  DeleteScheduleRequest,
  ListSchedulesRequest,
  OwnScheduleList,
} from '../../gateway-api/schedules/schedule-schemas.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { digestOf } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import { scheduleRequest } from '../../policy/schedules.ts';
import type { PolicyRequest } from '../../policy/types.ts';
import type { OwnSchedule } from '../../schedule/agent-schedule.ts';
import type { AgentSchedules, ScheduleOwner } from '../../schedule/agent-schedules.ts';
import {
  requireSchedule,
  scheduleIdOf,
  wantedSchedule,
  withoutSchedule,
  withSchedule,
} from '../../schedule/wanted-schedule.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { GatewayDeps } from '../deps.ts';
import { type AuthorizedDelivery, authorizeDelivery } from '../delivery/authorize.ts';
import { assertBrokeredCall } from '../delivery/brokered-call.ts';
import type { GatewayServer } from '../http/routes.ts';
import { Done, ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';
import { assertWithinNamespace, keepWithinNamespace, listOwn } from './own-schedules.ts';

/** Agents make, delete and list schedules for themselves. The gateway decides and stores; the operator starts the runs. */
export function ownScheduleRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    POD_API_PATHS.schedules,
    {
      config: { access: 'pod', idempotent: true },
      schema: {
        ...POD_SECURITY,
        summary: 'Makes a schedule of the agent',
        body: CreateScheduleRequest,
        response: { 200: CreatedSchedule, ...ERROR_RESPONSES },
      },
    },
    async (request) => create(request, request.body, deps),
  );
  server.post(
    POD_API_PATHS.deleteSchedule,
    {
      config: { access: 'pod', idempotent: true },
      schema: {
        ...POD_SECURITY,
        summary: 'Deletes a schedule that the agent made',
        body: DeleteScheduleRequest,
        response: { 204: Done, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      await remove(request, request.body, deps);
      return reply.code(204).send(null);
    },
  );
  server.post(
    POD_API_PATHS.listSchedules,
    {
      config: { access: 'pod' },
      schema: {
        ...POD_SECURITY,
        summary: 'The schedules that the agent made',
        body: ListSchedulesRequest,
        response: { 200: OwnScheduleList, ...ERROR_RESPONSES },
      },
    },
    async (request) => {
      const delivery = authorizeDelivery(request, request.body.deliveryToken, deps);
      await assertCall(delivery, LIST_SCHEDULES_TOOL, { input: {}, key: delivery.claims.message }, [], deps);
      const stored = await deps.agentSchedules.read(ownerOf(delivery));
      await deps.recorder.used(delivery.claims, LIST_SCHEDULES_TOOL.category);
      return listOwn(stored, deps.directory.decider(delivery.state, false), deps);
    },
  );
}

async function create(
  request: FastifyRequest,
  { deliveryToken, input }: CreateScheduleRequest,
  deps: GatewayDeps,
): Promise<CreatedSchedule> {
  const delivery = authorizeDelivery(request, deliveryToken, deps);
  const { claims, state } = delivery;
  const key = request.idempotencyKey;
  const call = { id: scheduleIdOf(key), agentUid: state.uid, session: claims.session, now: deps.clock.now().getTime() };
  const { schedule, nextRun } = wantedSchedule(input, call);
  const owner = ownerOf(delivery);
  const stored = await deps.agentSchedules.read(owner);
  if (isMade(stored, schedule)) return { name: schedule.name, nextRun };
  const asked = scheduleRequest(stored.own, schedule.runsPerHour, claims.depth);
  await assertCall(delivery, CREATE_SCHEDULE_TOOL, { input, key }, [asked], deps);
  await assertWithinNamespace(claims.namespace, deps);
  const tainted = await deps.sessions.tainted(claims.agentUid, claims.session);
  const added = tainted ? { ...schedule, tainted } : schedule;
  await deps.agentSchedules.update(owner, (before) =>
    isMade(before, schedule) ? before : withSchedule(before, added),
  );
  await keepWithinNamespace(owner, schedule.id, deps);
  await record('schedule.created', delivery, added, deps);
  await deps.recorder.used(claims, CREATE_SCHEDULE_TOOL.category);
  return { name: schedule.name, nextRun };
}

async function remove(
  request: FastifyRequest,
  { deliveryToken, name }: DeleteScheduleRequest,
  deps: GatewayDeps,
): Promise<void> {
  const delivery = authorizeDelivery(request, deliveryToken, deps);
  await assertCall(delivery, DELETE_SCHEDULE_TOOL, { input: { name }, key: request.idempotencyKey }, [], deps);
  const owner = ownerOf(delivery);
  const found = requireSchedule(await deps.agentSchedules.read(owner), name);
  await deps.agentSchedules.update(owner, (before) => withoutSchedule(before, found.id));
  await record('schedule.deleted', delivery, found, deps);
  await deps.recorder.used(delivery.claims, DELETE_SCHEDULE_TOOL.category);
}

function assertCall(
  delivery: AuthorizedDelivery,
  tool: ToolDescriptor,
  { input, key }: { input: Json; key: string },
  requests: readonly PolicyRequest[],
  deps: GatewayDeps,
): Promise<void> {
  return assertBrokeredCall(delivery, { tool, input, requests, digests: [digestOf(input)], key }, deps);
}

function isMade({ own }: AgentSchedules, { id }: OwnSchedule): boolean {
  return own.some((schedule) => schedule.id === id);
}

function ownerOf({ claims, state }: AuthorizedDelivery): ScheduleOwner {
  return { uid: state.uid, name: claims.agent, namespace: claims.namespace };
}

/** Without the message, which is text of the agent. */
async function record(
  action: 'schedule.created' | 'schedule.deleted',
  { claims }: AuthorizedDelivery,
  { id, name, times, timeZone, runsPerHour, tainted = false }: OwnSchedule,
  { audit }: GatewayDeps,
): Promise<void> {
  const { namespace, agentUid, agent, session, root } = claims;
  await audit.append(
    { namespace, agentUid },
    {
      action,
      actor: `agent/${agent}`,
      evidence: 'observed',
      subject: name,
      facts: { agentUid, session, rootMessage: root, times, timeZone, runsPerHour, tainted },
    },
    `${action}/${agentUid}/${id}`,
  );
}
