import { isJsonObject, type Json, member, textAt } from '../../../lib/json.ts';
import { type Cluster, openCluster } from '../cluster.ts';
import type { ClusterOptions } from '../options.ts';
import { GatewayUserClient } from '../gateway-user-client.ts';
import { listOf, readSessionTools } from '../session-tools.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { formatAge, formatCell, table } from '../../table.ts';

interface ReportOptions extends ClusterOptions {
  output: 'text' | 'json';
}
export interface SessionsOptions extends ReportOptions {
  agent: string;
}
export interface UsageOptions extends ReportOptions {
  agent?: string | undefined;
  policy?: string;
}
export interface TopOptions extends ReportOptions {
  kind: 'agents' | 'tools';
  /** For `tools`: only the tools of this agent. */
  agent?: string | undefined;
}

interface ReportTable {
  readonly headings: readonly string[];
  row(value: Json, now: Date): string[];
  /** Message when the list is empty. */
  readonly emptyMessage: string;
}

const SESSIONS: ReportTable = {
  headings: ['SESSION', 'ITEMS', 'TAINTED', 'LAST-USED', 'AGE'],
  row: (value, now) => [
    textAt(value, ['session']),
    formatCell(member(value, 'items')),
    formatCell(member(value, 'tainted')),
    formatAge(textAt(value, ['lastUsedAt']), now),
    formatAge(textAt(value, ['openedAt']), now),
  ],
  emptyMessage: 'No sessions',
};

const AGENTS_NOW: ReportTable = {
  headings: ['AGENT', 'WAITING', 'IN-FLIGHT', 'DEAD', 'TOKENS/H', 'LAST-SEEN'],
  row: (value, now) => [
    textAt(value, ['agent']),
    ...['waiting', 'inFlight', 'deadLetters', 'tokensThisHour'].map((key) => formatCell(member(value, key))),
    formatAge(textAt(value, ['lastSeen']), now),
  ],
  emptyMessage: 'No agents',
};

const TOOLS_NOW: ReportTable = {
  headings: ['TOOL', 'AGENT', 'SESSION', 'USES', 'PROMOTION', 'DIGEST', 'AGE'],
  row: (value, now) => [
    textAt(value, ['name']),
    textAt(value, ['agent']),
    textAt(value, ['session']),
    formatCell(member(value, 'uses')),
    member(value, 'outOfService') === undefined ? textAt(value, ['promotion', 'state'], '-') : 'OutOfService',
    textAt(value, ['digest']).slice(0, 'sha256:'.length + 12),
    formatAge(textAt(value, ['acceptedAt']), now),
  ],
  emptyMessage: 'No tools in open sessions',
};

export async function sessions(options: SessionsOptions, io: CliIo): Promise<number> {
  await using cluster = await openCluster(options, io);
  const gateway = new GatewayUserClient(cluster, io.signal);
  const found = await gateway.call({ method: 'GET', path: `agents/${encodeURIComponent(options.agent)}/sessions` });
  return print(SESSIONS, listOf(found), cluster, options, io);
}

/** Prints live counters of the gateway, not those in the status of objects. */
export async function top(options: TopOptions, io: CliIo): Promise<number> {
  await using cluster = await openCluster(options, io);
  const gateway = new GatewayUserClient(cluster, io.signal);
  if (options.kind === 'agents') {
    return print(AGENTS_NOW, listOf(await gateway.call({ method: 'GET', path: 'top' })), cluster, options, io);
  }
  const tools = await readSessionTools(cluster, gateway, options.agent, io.signal);
  return print(TOOLS_NOW, tools, cluster, options, io);
}

/** Prints the usage per window, and the quotas. */
export async function usage(options: UsageOptions, io: CliIo): Promise<number> {
  await using cluster = await openCluster(options, io);
  const gateway = new GatewayUserClient(cluster, io.signal);
  const { agent, policy } = options;
  const subjectPath =
    policy === undefined ? `agents/${encodeURIComponent(agent ?? '')}` : `policies/${encodeURIComponent(policy)}`;
  const report = await gateway.call({ method: 'GET', path: `${subjectPath}/usage` });
  if (options.output === 'json') {
    if (isJsonObject(report)) writeJsonLine(io, report);
    return EXIT.ok;
  }
  const rows = listOf(member(report, 'windows') ?? null).map((window) => [
    textAt(window, ['window']),
    ...['inputTokens', 'outputTokens', 'inFlightTokens'].map((key) => formatCell(member(window, key))),
    dollars(member(window, 'costMicros')),
    formatCell(member(window, 'networkBytes')),
  ]);
  io.out(table(['WINDOW', 'INPUT', 'OUTPUT', 'IN-FLIGHT', 'COST', 'NETWORK-BYTES'], rows));
  const limits = member(report, 'limits');
  if (isJsonObject(limits) && Object.keys(limits).length > 0) {
    io.out(
      `\n${table(
        ['QUOTA', 'LIMIT'],
        Object.entries(limits).map(([name, limit]) => [name, formatCell(limit)]),
      )}`,
    );
  }
  return EXIT.ok;
}

function print(
  report: ReportTable,
  values: readonly Json[],
  cluster: Cluster,
  options: ReportOptions,
  io: CliIo,
): number {
  if (options.output === 'json') {
    for (const value of values) if (isJsonObject(value)) writeJsonLine(io, value);
  } else if (values.length === 0) {
    io.out(`${report.emptyMessage} in ${cluster.location}.\n`);
  } else {
    const now = new Date();
    io.out(
      table(
        report.headings,
        values.map((value) => report.row(value, now)),
      ),
    );
  }
  return EXIT.ok;
}

function dollars(micros: Json | undefined): string {
  return typeof micros === 'number' ? `$${(micros / 1_000_000).toFixed(4)}` : '-';
}
