import { groupUsage } from '../../ledger/usage/group-usage.ts';
import type { DatedUsage } from '../../ledger/usage/usage-entry.ts';
import { systemClock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { textAt } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { type LocalUsageKind, usageSince } from '../../standalone/usage/usage-days.ts';
import { type CliIo, EXIT } from '../io.ts';
import { stateFolder } from '../state/state-folder.ts';
import { assertExists } from '../state/state-records.ts';
import { type BreakdownOptions, firstDay } from './breakdown-options.ts';
import { printBreakdown } from './print-breakdown.ts';

const MAX_ROWS = 500;

/** Prints what the calls of the agents of a state folder were charged; with an agent, those of its team, or of a child alone. */
export async function stateBreakdown(
  options: BreakdownOptions & { agent: string | undefined; state: string },
  io: CliIo,
): Promise<number> {
  const { by, agent, output } = options;
  const records = fileRecordStore(await stateFolder(io, options.state));
  const since = firstDay(options.since, systemClock.now());
  const kind = by === 'Root' ? 'roots' : 'teams';
  const entries = await allSince(records, since, kind);
  const chosen = ofAgent(entries, agent);
  if (agent !== undefined && chosen.length === 0) {
    const earlier = await allSince(records, '', 'teams');
    await assertExists(
      records,
      'agents',
      agent,
      earlier.flatMap((entry) => [entry.team, entry.agent]),
    );
  }
  const rows = groupUsage(chosen, by);
  const shown = rows.slice(0, MAX_ROWS).map((row) => ({ ...row, unpriced: [...row.unpriced] }));
  printBreakdown({ by, since, rows: shown, complete: rows.length <= MAX_ROWS }, output, io);
  return EXIT.ok;
}

/** The namespaces are those of the agents that ran with the folder. */
async function allSince(records: RecordStore, since: string, kind: LocalUsageKind): Promise<DatedUsage[]> {
  const agents = await records.list('agents');
  const namespaces = new Set(agents.map(({ value }) => textAt(value, ['metadata', 'namespace']) || 'default'));
  const found: DatedUsage[] = [];
  for (const namespace of namespaces) found.push(...(await usageSince(records, namespace, since, kind)));
  return found;
}

function ofAgent(usage: readonly DatedUsage[], agent: string | undefined): readonly DatedUsage[] {
  if (agent === undefined) return usage;
  const isTeam = usage.some(({ team }) => team === agent);
  return usage.filter((entry) => (isTeam ? entry.team === agent : entry.agent === agent));
}
