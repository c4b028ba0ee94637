import { hasRuns } from '../../../api/schedule/definition.ts';
import { triggersOf } from '../../../api/schedule/triggers.ts';
import { printable } from '../../../lib/printable.ts';
import type { Standalone } from '../../../standalone/standalone.ts';
import { type AgentDefinition } from '../../../standalone/team/member.ts';
import { type CliIo, EXIT } from '../../io.ts';

type Served = Pick<Standalone, 'serve'>;

/** Starts the runs of schedules until an interrupt. Work that has not ended then stays for the next run with this state folder. */
export async function serveTeam(standalone: Served, team: readonly AgentDefinition[], io: CliIo): Promise<number> {
  const names = team.map(({ agent }) => agent.metadata.name).join(', ');
  io.error(`note: serving ${printable(names, 1_000)}; Ctrl-C ends the run\n`);
  await standalone.serve(io.signal);
  return EXIT.ok;
}

/** Names what starts no work in this run. */
export function noteIdle(team: readonly AgentDefinition[], isServing: boolean, io: CliIo): void {
  noteWebhooks(team, io);
  if (!isServing) noteSchedules(team, io);
}

/** Nothing outside of a cluster receives signed requests, which a user of a webhook has to know. */
function noteWebhooks(team: readonly AgentDefinition[], io: CliIo): void {
  const names = team.flatMap(({ agent: { metadata, spec } }) =>
    triggersOf(spec).flatMap(({ name, webhook }) => (webhook === undefined ? [] : [`${metadata.name}.${name}`])),
  );
  if (names.length === 0) return;
  io.error(
    `note: temper run serves no webhooks, so these triggers get no event: ${printable(names.join(', '), 1_000)}\n`,
  );
}

/** Without --serve no run starts, which a user of a schedule has to know. */
function noteSchedules(team: readonly AgentDefinition[], io: CliIo): void {
  const names = team.flatMap(({ agent }) => {
    const { schedule } = agent.spec;
    return schedule !== undefined && hasRuns(schedule) ? [agent.metadata.name] : [];
  });
  if (names.length === 0) return;
  io.error(`note: the schedules of ${printable(names.join(', '), 1_000)} start runs only with temper run --serve\n`);
}
