import { setTimeout as sleep } from 'node:timers/promises';

import { createAgent, inFlight, runningAgents } from './agents.ts';
import { Installation } from './installation.ts';
import type { OperatorProcess } from './operator-process.ts';
import { listKinds, observeCalls } from './operator-calls.ts';
import { residentBytes } from './processes.ts';
import { atMost, mebibytes, plain, type Row, seconds } from './row.ts';

const AT_ONCE = 20;
/** Five times as many for the last figure of memory. */
const MANY = 5;
const HANDOVERS = 3;
/** After everything was told: what may still be written later, such as the count of a policy, is written by then. */
const AFTERMATH_MS = 12_000;
const KIBIBYTE = 1_024;
const MEMORY_LIMIT = 512 * KIBIBYTE * KIBIBYTE;

interface Bench {
  readonly installation: Installation;
  readonly agents: number;
  readonly quietSeconds: number;
  readonly profile: (operator: OperatorProcess) => Promise<AsyncDisposable>;
}

/** Agents that stand there: what they cost while nothing changes, what a dead operator leaves, and who leads next. */
export async function benchStanding(options: Omit<Bench, 'installation'>): Promise<Row[]> {
  await using installation = await Installation.open();
  await installation.agentsNamespace('standing');
  const bench = { installation, ...options };
  const operator = await installation.startOperator();
  await operator.ready();
  await populate(bench, 0, 1);
  await sleep(AFTERMATH_MS);
  const empty = await operator.memory();
  await populate(bench, 1, options.agents);
  await sleep(2 * AFTERMATH_MS);
  const full = await operator.memory();
  const quiet = await undisturbed(bench, operator);
  const killed = await restart(bench, operator);
  const handovers = await handOver(bench, killed.operator);
  await populate(bench, options.agents, options.agents * MANY);
  const many = await memoryOfMany(bench, handovers.operator);
  return [...quiet, ...memory(options.agents, empty, full), ...killed.rows, ...handovers.rows, ...many];
}

async function populate({ installation }: Bench, from: number, to: number): Promise<void> {
  await using running = await runningAgents(installation, 'standing');
  await inFlight(to - from, AT_ONCE, (index) =>
    createAgent(installation, running, 'standing', `agent-${from + index}`),
  );
}

async function undisturbed({ installation, agents, quietSeconds, profile }: Bench, operator: OperatorProcess) {
  const endCalls = await observeCalls(installation);
  const watches = await operator.metric('reflector_watches_total');
  const endLoad = installation.measure(operator);
  {
    await using _profile = await profile(operator);
    await sleep(quietSeconds * 1_000);
  }
  const spent = endLoad();
  const calls = await endCalls();
  const again = (await operator.metric('reflector_watches_total')) - watches;
  const what = `${agents} agents, nothing changing, ${quietSeconds} s`;
  const note = `beside them ${calls.gets} reads of single objects, ${calls.dryRuns} dry runs of the guards, ${again} watches begun again`;
  const share = ((spent.cpu['operator'] ?? 0) * 100) / spent.seconds;
  const percent = (value: number) => `${value.toFixed(1)} % of a core`;
  return [
    atMost('requirement', `${what}: writes beside the Lease`, calls.writes, 0, plain, {
      spent,
      note: calls.writes === 0 ? note : `${listKinds(calls)}; ${note}`,
    }),
    atMost('requirement', `${what}: lists`, calls.lists, 0, plain),
    atMost('requirement', `${what}: the operator's CPU`, share, 2, percent),
  ];
}

interface Memory {
  readonly heap: number;
  readonly resident: number;
}

function memory(agents: number, empty: Memory, full: Memory): Row[] {
  const each = (of: keyof Memory) => (full[of] - empty[of]) / (agents - 1) / KIBIBYTE;
  const kibibytes = (value: number) => `${value.toFixed(1)} KiB`;
  const note = `${kibibytes(each('resident'))} by the memory of the whole process, from ${mebibytes(empty.resident)} to ${mebibytes(full.resident)}, which keeps what the collector may use again`;
  return [atMost('goal', `memory per agent, heap after a full collection`, each('heap'), 60, kibibytes, { note })];
}

/** As a container that is started again at once; the Lease of the dead one has to run out first. */
async function restart({ installation, agents }: Bench, operator: OperatorProcess) {
  const endCalls = await observeCalls(installation);
  const begun = performance.now();
  await operator.end('SIGKILL');
  const next = await installation.startOperator();
  const endLoad = installation.measure(next);
  await next.ready({ leading: false });
  const known = performance.now();
  await next.until('leading', () => next.leads());
  const led = performance.now();
  await next.until('done with every agent', () => next.reconciled(agents));
  const done = performance.now();
  const spent = endLoad();
  await sleep(AFTERMATH_MS);
  const calls = await endCalls();
  const waited = Math.max(0, led - known);
  const what = `operator killed with ${agents} agents, started again`;
  const note = `of it ${seconds((known - begun) / 1_000)} until everything was read and ${seconds((done - led) / 1_000)} for all agents; between them it waited ${seconds(waited / 1_000)} for the Lease of the dead one, which is not counted here but below`;
  const rows = [
    atMost('goal', `${what}: reconciled`, (done - begun - waited) / 1_000, 15, seconds, { spent, note }),
    atMost('requirement', `${what}: objects rewritten`, calls.writes, 0, plain, {
      note: calls.writes === 0 ? 'by the audit log, 12 s beyond' : listKinds(calls),
    }),
  ];
  return { operator: next, rows };
}

/** Two replicas take turns. */
async function handOver({ installation }: Bench, operator: OperatorProcess) {
  let leader = operator;
  const take = async (signal: 'SIGTERM' | 'SIGKILL') => {
    const other = await installation.startOperator();
    await other.ready({ leading: false });
    // It has seen the Lease held, as a replica that has been there for long.
    await sleep(3_000);
    const begun = performance.now();
    const ended = leader.end(signal);
    await other.until('leading', () => other.leads());
    const took = performance.now() - begun;
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
  const note = `right after they were made, before any forced collection; after one ${mebibytes(resident)}, of it heap ${mebibytes(heap)}`;
  return [atMost('goal', `${agents * MANY} agents: memory of the operator`, before, MEMORY_LIMIT, mebibytes, { note })];
}
