import { setTimeout as sleep } from 'node:timers/promises';

import { createAgent, runConcurrently, runningAgents } from './support/agents.ts';
import { BenchCluster } from './support/bench-cluster.ts';
import type { OperatorProcess } from './support/operator-process.ts';
import { listKinds, observeCalls } from './support/operator-calls.ts';
import { residentBytes } from './support/processes.ts';
import { atMost, mebibytes, plain, type Row, seconds } from './row.ts';

const CONCURRENCY = 20;
/** The last memory figure uses five times as many agents. */
const MANY_FACTOR = 5;
const HANDOVERS = 3;
/** Delayed writes, such as the agent count in the status of a policy, are done after this time. */
const SETTLE_MS = 12_000;
const KIBIBYTE = 1_024;
const MEMORY_LIMIT = 512 * KIBIBYTE * KIBIBYTE;

interface Bench {
  readonly cluster: BenchCluster;
  readonly agents: number;
  readonly quietSeconds: number;
  readonly profile: Profiling;
}

/** Profiles the operator until it is disposed. */
export type Profiling = (operator: OperatorProcess, part?: string) => Promise<AsyncDisposable>;

interface RestartOptions {
  readonly cluster: BenchCluster;
  readonly agents: number;
  readonly maxSeconds?: number;
  readonly profile: Profiling;
  /** Starts the new operator. */
  readonly start?: () => Promise<OperatorProcess>;
}

/** The cost of existing agents: while nothing changes, after the operator is killed, and during a leader handover. */
export async function benchIdle(options: Omit<Bench, 'cluster'>): Promise<Row[]> {
  await using cluster = await BenchCluster.open();
  await cluster.createAgentsNamespace('idle');
  const bench = { cluster, ...options };
  const operator = await cluster.startOperator();
  await operator.waitUntilReady();
  await populate(bench, 0, 1);
  await sleep(SETTLE_MS);
  const empty = await operator.memory();
  await populate(bench, 1, options.agents);
  await sleep(2 * SETTLE_MS);
  const full = await operator.memory();
  const quiet = await measureQuiet(bench, operator);
  const killed = await restart(bench, operator);
  const handovers = await handOver(bench, killed.operator);
  await populate(bench, options.agents, options.agents * MANY_FACTOR);
  const many = await memoryOfMany(bench, handovers.operator);
  return [...quiet, ...memory(options.agents, empty, full), ...killed.rows, ...handovers.rows, ...many];
}

async function populate({ cluster }: Bench, from: number, to: number): Promise<void> {
  await using running = await runningAgents(cluster, 'idle');
  await runConcurrently(to - from, CONCURRENCY, (index) =>
    createAgent(cluster, running, 'idle', `agent-${from + index}`),
  );
}

/** The cost of agents while nothing changes. */
export async function measureQuiet(
  { cluster, agents, quietSeconds, profile, maxCpuPercent = 2 }: Bench & { readonly maxCpuPercent?: number },
  operator: OperatorProcess,
) {
  const endCalls = await observeCalls(cluster);
  const watches = await operator.metric('reflector_watches_total');
  const endLoad = cluster.measure(operator);
  {
    await using _profile = await profile(operator, 'quiet');
    await sleep(quietSeconds * 1_000);
  }
  const spent = endLoad();
  const calls = await endCalls();
  const watchRestarts = (await operator.metric('reflector_watches_total')) - watches;
  const what = `${agents} agents, nothing changing, ${quietSeconds} s`;
  const note = `also ${calls.gets} reads of single objects, ${calls.dryRuns} dry runs of the admission policies, ${watchRestarts} watch restarts`;
  const share = ((spent.cpu['operator'] ?? 0) * 100) / spent.seconds;
  const percent = (value: number) => `${value.toFixed(1)} % of a core`;
  return [
    atMost('requirement', `${what}: writes without the Lease`, calls.writes, 0, plain, {
      spent,
      note: calls.writes === 0 ? note : `${listKinds(calls)}; ${note}`,
    }),
    atMost('requirement', `${what}: lists`, calls.lists, 0, plain, { note: calls.listed.join(', ') }),
    atMost('requirement', `${what}: the operator's CPU`, share, maxCpuPercent, percent),
  ];
}

interface Memory {
  readonly heap: number;
  readonly resident: number;
}

function memory(agents: number, empty: Memory, full: Memory): Row[] {
  const each = (of: keyof Memory) => (full[of] - empty[of]) / (agents - 1) / KIBIBYTE;
  const kibibytes = (value: number) => `${value.toFixed(1)} KiB`;
  const note = `${kibibytes(each('resident'))} by the resident memory of the process, from ${mebibytes(empty.resident)} to ${mebibytes(full.resident)}, which includes freed memory that V8 keeps`;
  return [atMost('goal', `memory per agent, heap after a full collection`, each('heap'), 60, kibibytes, { note })];
}

/** Kills the operator and starts a new one, as a restarted container. The Lease of the dead operator must expire first. */
export async function restart(
  { cluster, agents, profile, maxSeconds = 15, start = () => cluster.startOperator() }: RestartOptions,
  operator: OperatorProcess,
) {
  const endCalls = await observeCalls(cluster);
  const begin = performance.now();
  await operator.end('SIGKILL');
  const next = await start();
  const endLoad = cluster.measure(next);
  await next.waitUntilReady({ leading: false });
  const known = performance.now();
  await using _profile = await profile(next, 'restart');
  await next.waitUntil('leading', () => next.isLeading());
  const led = performance.now();
  await next.waitUntil('done with all agents', () => next.isReconciled(agents));
  const done = performance.now();
  const spent = endLoad();
  await sleep(SETTLE_MS);
  const calls = await endCalls();
  const waited = Math.max(0, led - known);
  const what = `operator killed with ${agents} agents, restarted`;
  const note = `${seconds((known - begin) / 1_000)} until the caches were synced and ${seconds((done - led) / 1_000)} for all agents; the wait of ${seconds(waited / 1_000)} for the Lease of the dead operator is not included`;
  const rows = [
    atMost('goal', `${what}: reconciled`, (done - begin - waited) / 1_000, maxSeconds, seconds, { spent, note }),
    atMost('requirement', `${what}: objects rewritten`, calls.writes, 0, plain, {
      note: calls.writes === 0 ? 'according to the audit log, until 12 s later' : listKinds(calls),
    }),
  ];
  return { operator: next, rows };
}

/** Hands the leadership back and forth between two replicas, by SIGTERM and by SIGKILL. */
async function handOver({ cluster }: Bench, operator: OperatorProcess) {
  let leader = operator;
  const take = async (signal: 'SIGTERM' | 'SIGKILL') => {
    const other = await cluster.startOperator();
    await other.waitUntilReady({ leading: false });
    // Let the replica observe the Lease, like a long-running standby.
    await sleep(3_000);
    const start = performance.now();
    const ended = leader.end(signal);
    await other.waitUntil('leading', () => other.isLeading());
    const took = performance.now() - start;
    await ended;
    leader = other;
    return took / 1_000;
  };
  const clean = [];
  const crash = [];
  for (let round = 0; round < HANDOVERS; round += 1) {
    clean.push(await take('SIGTERM'));
    crash.push(await take('SIGKILL'));
  }
  const all = (times: number[]) => ({ note: `the slowest of ${times.map((time) => seconds(time)).join(', ')}` });
  const rows = [
    atMost('goal', 'clean handover until the other replica leads', Math.max(...clean), 3, seconds, all(clean)),
    atMost('goal', 'crash until the other replica leads', Math.max(...crash), 17, seconds, all(crash)),
  ];
  return { operator: leader, rows };
}

async function memoryOfMany({ agents }: Bench, operator: OperatorProcess): Promise<Row[]> {
  const before = residentBytes(operator.pid);
  const { heap, resident } = await operator.memory();
  const note = `right after their creation, before a forced garbage collection; after it ${mebibytes(resident)}, of which heap ${mebibytes(heap)}`;
  return [
    atMost('goal', `${agents * MANY_FACTOR} agents: memory of the operator`, before, MEMORY_LIMIT, mebibytes, { note }),
  ];
}
