import type { FastifyRequest } from 'fastify';
import { hasRuns } from '../../api/schedule/definition.ts';
import type { TriggeredRun } from '../../gateway-api/schedules/user-schedule-schemas.ts';
import { sha256 } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { type RunMessage, runMessage } from '../../schedule/run-message.ts';
import { requireSchedule } from '../../schedule/wanted-schedule.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { requestWakeup } from '../pods/wakeup.ts';
import { assertNotClosed } from '../storage/closed-sessions.ts';
import { publishTraced } from '../tracing/message-traces.ts';

const RUN_TIMEOUT_MS = 3_600_000;

export function hasSpecSchedule({ agent: { spec } }: AgentState): boolean {
  return spec.schedule !== undefined && hasRuns(spec.schedule);
}

/**
 * Sends the message of a run now. It is beside the runs of the schedule: the next due time stays, and an active run does not prevent it.
 * Throws TEMPER_NOT_FOUND for an unknown schedule.
 */
export async function triggerRun(
  state: AgentState,
  schedule: string | undefined,
  request: Pick<FastifyRequest, 'headers' | 'idempotencyKey'>,
  deps: GatewayDeps,
): Promise<TriggeredRun> {
  const now = deps.clock.now();
  const key = `${state.uid}/${request.idempotencyKey}`;
  const { text, session, tainted } = await contentOf(state, schedule, { key, now: now.getTime() }, deps);
  await assertNotClosed(state, session, deps);
  const message = {
    to: state.agent.metadata.name,
    from: 'schedule',
    source: 'Schedule' as const,
    session,
    text,
    depth: 0,
    deadline: new Date(now.getTime() + RUN_TIMEOUT_MS).toISOString(),
    time: now.toISOString(),
    ...(tainted ? { tainted } : {}),
  };
  const sender = { uid: `trigger-${state.uid}`, key };
  const { receipt } = await publishTraced(request.headers[TRACEPARENT], { session, seed: key }, (traceparent) =>
    deps.inbox.publish(state.uid, sender, { ...message, traceparent }),
  );
  await requestWakeup(state, deps);
  return { id: receipt.id, session, duplicate: receipt.duplicate };
}

async function contentOf(
  state: AgentState,
  schedule: string | undefined,
  { key, now }: { key: string; now: number },
  deps: Pick<GatewayDeps, 'agentSchedules'>,
): Promise<Pick<RunMessage, 'text' | 'session'> & { tainted: boolean }> {
  const { name, namespace = '' } = state.agent.metadata;
  // A repeated request has the session of its first attempt, which was sent in another second.
  const session = `schedule-run-${sha256(key).slice('sha256:'.length, 'sha256:'.length + 24)}`;
  if (schedule !== undefined) {
    const found = requireSchedule(await deps.agentSchedules.read({ uid: state.uid, name, namespace }), schedule);
    return { ...runMessage({ session, ...found }, now), tainted: found.tainted === true };
  }
  if (hasSpecSchedule(state)) return { ...runMessage({ session, ...state.agent.spec.schedule }, now), tainted: false };
  throw new TemperError('TEMPER_NOT_FOUND', `the spec of agent "${name}" has no schedule; name one that it made`);
}
