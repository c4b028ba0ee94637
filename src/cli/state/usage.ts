import { readUsage } from '../../ledger/journal.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { printable } from '../../lib/printable.ts';
import { systemClock } from '../../lib/clock.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { dollars } from '../run/model-usage.ts';
import { table } from '../table.ts';
import { stateFolder } from './state-folder.ts';

export interface StateUsageOptions {
  agent?: string | undefined;
  policy?: string;
  state: string;
  output: 'text' | 'json';
}

const WINDOWS = ['hour', 'day', 'month'] as const;

/** Prints what agents and policies have used in the current hour, day and month (UTC), as the quotas count it. */
export async function stateUsage(options: StateUsageOptions, io: CliIo): Promise<number> {
  const records = fileRecordStore(await stateFolder(io, options.state));
  const accounts = await readUsage(records, systemClock.now().getTime());
  const chosen = [...accounts].filter(([name]) => isChosen(name, options)).sort(([a], [b]) => (a < b ? -1 : 1));
  if (options.output === 'json') {
    for (const [account, { hour, day, month }] of chosen) {
      writeJsonLine(io, { account, hour: hour.counts, day: day.counts, month: month.counts });
    }
    return EXIT.ok;
  }
  if (chosen.length === 0) {
    io.out(`No usage in ${printable(options.state, 200)}.\n`);
    return EXIT.ok;
  }
  const rows = chosen.flatMap(([name, account]) =>
    WINDOWS.map((window) => {
      const { inputTokens, outputTokens, costMicros } = account[window].counts;
      return [
        name,
        window,
        inputTokens.toLocaleString('en-US'),
        outputTokens.toLocaleString('en-US'),
        dollars(costMicros),
      ];
    }),
  );
  io.out(table(['ACCOUNT', 'WINDOW', 'INPUT-TOKENS', 'OUTPUT-TOKENS', 'COST'], rows));
  return EXIT.ok;
}

/** Account names are `agent/NAMESPACE/NAME` and `policy/NAMESPACE/NAME`. */
function isChosen(account: string, { agent, policy }: StateUsageOptions): boolean {
  const [kind, , name] = account.split('/');
  if (agent !== undefined) return kind === 'agent' && name === agent;
  if (policy !== undefined) return kind === 'policy' && name === policy;
  return true;
}
