import { ulids } from '../../../lib/ids.ts';
import { isJsonObject, type JsonObject, member, textAt } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { table } from '../../table.ts';
import { type Cluster, openCluster, toTemperError } from '../cluster.ts';
import { GatewayUserClient } from '../gateway-user-client.ts';
import type { ClusterOptions } from '../options.ts';

interface ScheduleOptions extends ClusterOptions {
  output: 'text' | 'json';
}

interface ScheduleTarget extends ScheduleOptions {
  agent: string;
  /** A schedule that the agent made; absent for that of its spec. */
  schedule?: string;
}

export interface ScheduleDecision extends ScheduleTarget {
  action: 'pause' | 'resume';
  /** With `pause`. */
  reason?: string;
}

/** Lists the schedules of one agent, or of all agents of the namespace. */
export async function listSchedules(
  options: ScheduleOptions & { agent?: string | undefined },
  io: CliIo,
): Promise<number> {
  await using cluster = await openCluster(options, io);
  const gateway = new GatewayUserClient(cluster, io.signal);
  const query = options.agent === undefined ? '' : `?agent=${encodeURIComponent(options.agent)}`;
  const found = await gateway.call({ method: 'GET', path: `schedules${query}` });
  const listed = member(found, 'schedules');
  const schedules = (Array.isArray(listed) ? listed : []).filter(isJsonObject);
  if (options.output === 'json') for (const schedule of schedules) writeJsonLine(io, schedule);
  else io.out(schedules.length === 0 ? `No schedules in ${cluster.location}.\n` : tableOf(schedules));
  if (member(found, 'complete') === false)
    io.error('note: there are more schedules than the list has; name an agent\n');
  return EXIT.ok;
}

/** Starts a run now, beside the runs of the schedule. */
export async function triggerSchedule(options: ScheduleTarget, io: CliIo): Promise<number> {
  await using cluster = await openCluster(options, io);
  const receipt = await post(cluster, 'trigger', options, {}, io);
  if (options.output === 'json') writeJsonLine(io, receipt);
  else {
    const session = printable(textAt(receipt, ['session']), 128);
    const follow = `temper trace ${session} --agent ${printable(options.agent, 63)} shows it`;
    io.out(`run of ${subjectOf(options)} started in ${cluster.location}, session ${session}; ${follow}\n`);
  }
  return EXIT.ok;
}

/** Stops a schedule until it is resumed, with who and why, or resumes it. The spec of the agent stays as it is. */
export async function decideSchedule(options: ScheduleDecision, io: CliIo): Promise<number> {
  const { action, reason } = options;
  await using cluster = await openCluster(options, io);
  await post(cluster, action, options, reason === undefined ? {} : { reason }, io);
  const done = action === 'pause' ? 'paused' : 'resumed';
  if (options.output === 'json') writeJsonLine(io, { [done]: subjectOf(options), location: cluster.location });
  else io.out(`${subjectOf(options)} ${done} in ${cluster.location}\n`);
  return EXIT.ok;
}

async function post(
  cluster: Cluster,
  action: string,
  { agent, schedule }: ScheduleTarget,
  more: object,
  { signal }: CliIo,
) {
  const { username } = await cluster.kube.whoAmI(signal).catch((error: unknown) => {
    throw toTemperError(error, 'reading who you are', cluster);
  });
  const body = { by: username, ...(schedule === undefined ? {} : { schedule }), ...more };
  const path = `agents/${encodeURIComponent(agent)}/schedules/${action}`;
  return new GatewayUserClient(cluster, signal).call({ method: 'POST', path, body, idempotencyKey: ulids.next('cli') });
}

function subjectOf({ agent, schedule }: ScheduleTarget): string {
  const name = printable(agent, 63);
  return schedule === undefined
    ? `the schedule of agent/${name}`
    : `schedule/${printable(schedule, 40)} of agent/${name}`;
}

function tableOf(schedules: readonly JsonObject[]): string {
  const rows = schedules.map((schedule) => [
    textAt(schedule, ['agent']),
    textAt(schedule, ['schedule']) || '(spec)',
    textAt(schedule, ['times']),
    textAt(schedule, ['timeZone']),
    textAt(schedule, ['lastRun']) || '-',
    textAt(schedule, ['nextRun']) || '-',
    stateOf(schedule),
  ]);
  return table(['AGENT', 'SCHEDULE', 'TIMES', 'ZONE', 'LAST', 'NEXT', 'STATE'], rows);
}

function stateOf(schedule: JsonObject): string {
  const by = textAt(schedule, ['paused', 'by']);
  if (by !== '') return `paused by ${by}: ${textAt(schedule, ['paused', 'reason'])}`;
  return textAt(schedule, ['stopped']) || 'active';
}
