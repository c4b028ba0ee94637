import { quotaLimits } from '../../agent/quotas.ts';
import type { Account } from '../../ledger/account.ts';
import { isNearlyUsed, type QuotaUse, quotaUses } from '../../ledger/nearly-used.ts';
import { readUsage } from '../../ledger/journal.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { member, textAt } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { printable } from '../../lib/printable.ts';
import { systemClock } from '../../lib/clock.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { dollars } from '../run/model-usage.ts';
import { table } from '../table.ts';
import { stateFolder } from './state-folder.ts';
import { assertExists } from './state-records.ts';

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
  if (chosen.length === 0) await assertKnown(records, options, [...accounts.keys()]);
  const uses = await usesOf(records, chosen);
  if (options.output === 'json') {
    for (const [account, { hour, day, month }] of chosen) {
      const quotas = (uses.get(account) ?? []).map(({ field, percent, resumesAt }) => ({ field, percent, resumesAt }));
      writeJsonLine(io, { account, hour: hour.counts, day: day.counts, month: month.counts, quotas });
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
        quotaText((uses.get(name) ?? []).filter(({ field }) => field.toLowerCase().endsWith(window))),
      ];
    }),
  );
  io.out(table(['ACCOUNT', 'WINDOW', 'INPUT-TOKENS', 'OUTPUT-TOKENS', 'COST', 'QUOTAS'], rows));
  return EXIT.ok;
}

/** Account names are `agent/NAMESPACE/NAME` and `policy/NAMESPACE/NAME`. */
function isChosen(account: string, { agent, policy }: StateUsageOptions): boolean {
  const [kind, , name] = account.split('/');
  if (agent !== undefined) return kind === 'agent' && name === agent;
  if (policy !== undefined) return kind === 'policy' && name === policy;
  return true;
}

/** Throws TEMPER_NOT_FOUND for an agent or a policy without a manifest and without an account. */
async function assertKnown(
  records: RecordStore,
  { agent, policy }: StateUsageOptions,
  accounts: readonly string[],
): Promise<void> {
  const kind = agent === undefined ? 'policy' : 'agent';
  const named = agent ?? policy;
  if (named === undefined) return;
  const parts = accounts.map((account) => account.split('/'));
  const names = parts.flatMap(([accountKind, , name]) => (accountKind === kind && name !== undefined ? [name] : []));
  await assertExists(records, MANIFESTS[kind], named, names);
}

const MANIFESTS = { agent: 'agents', policy: 'trustpolicies' } as const;

/** The use of the quotas that the manifests of the last run have, by account. */
async function usesOf(
  records: RecordStore,
  accounts: readonly [string, Account][],
): Promise<ReadonlyMap<string, readonly QuotaUse[]>> {
  const now = systemClock.now().getTime();
  const found = new Map<string, readonly QuotaUse[]>();
  for (const [account, counts] of accounts) {
    const [kind, namespace, name = ''] = account.split('/');
    const manifest = await records.get(MANIFESTS[kind === 'agent' ? 'agent' : 'policy'], name);
    const isSame = (textAt(manifest, ['metadata', 'namespace']) || 'default') === namespace;
    const quotas = isSame ? member(member(manifest, 'spec'), 'quotas') : undefined;
    found.set(
      account,
      quotaUses(counts, quotaLimits(quotas as Parameters<typeof quotaLimits>[0]), 'spec.quotas.', now),
    );
  }
  return found;
}

/** `85 % of tokensPerHour (nearly used)`. */
function quotaText(uses: readonly QuotaUse[]): string {
  const texts = uses.map((use) => `${use.percent} % of ${use.field}${isNearlyUsed(use) ? ' (nearly used)' : ''}`);
  return texts.join(', ') || '-';
}
