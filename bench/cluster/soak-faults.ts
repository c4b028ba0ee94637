import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { poll } from '../../test/support/poll.ts';
import { quantile } from '../baseline/baseline.ts';
import { residentBytes } from './support/processes.ts';
import { FAULTS } from './scale/faults.ts';
import { PodFleet } from './scale/pods/pod-fleet.ts';
import { ScaleCluster } from './scale/scale-cluster.ts';
import { trustedAuthority } from './scale/pods/simulated-pod.ts';
import { Trend } from './scale/trend.ts';
import { UserMessages } from './scale/user-messages.ts';
import { atMost, mebibytes, milliseconds, plain, type Row } from './row.ts';

const CREATE_CONCURRENCY = 20;
const SAMPLE_MS = 5_000;
const DRAIN_MS = 600_000;
const MEBIBYTE = 1_048_576;
/** Changes per hour of all processes together. */
const MAX_MEMORY_SLOPE = 60 * MEBIBYTE;
const MAX_HANDLE_SLOPE = 60;

export interface SoakOptions {
  readonly agents: number;
  readonly namespaces: number;
  readonly gateways: number;
  readonly rate: number;
  /** How long messages are sent. */
  readonly seconds: number;
  /** The pause between two faults. */
  readonly faultSeconds: number;
  /** Without faults that kill a process, the memory of each one has the whole time to grow. */
  readonly kills: boolean;
}

const ROLES = ['operator', 'gateways', 'NATS'] as const;
type Role = (typeof ROLES)[number];

interface Trends {
  readonly memory: Readonly<Record<Role, Trend>>;
  readonly handles: Trend;
  readonly assets: Trend;
  readonly waiting: Trend;
}

/** Messages during one fault after the other: none is lost or answered twice, and nothing grows. */
export async function benchSoakFaults(options: SoakOptions): Promise<Row[]> {
  await using cluster = await ScaleCluster.open(options.namespaces, { slowDisks: true });
  await cluster.startGateways(options.gateways);
  await cluster.createAgents(options.agents, CREATE_CONCURRENCY);
  const secureContext = trustedAuthority(cluster.authority);
  const messages = await UserMessages.open(cluster, secureContext);
  await using fleet = await PodFleet.start(cluster, messages);
  const end = AbortSignal.timeout(options.seconds * 1_000);
  const memory = { operator: new Trend(), gateways: new Trend(), NATS: new Trend() };
  const trends = { memory, handles: new Trend(), assets: new Trend(), waiting: new Trend() };
  const [{ names: faults, ended }, sending] = await Promise.all([
    causeFaults(cluster, options, end),
    sendMessages(cluster, messages, options.rate, end),
    sample(cluster, messages, trends, end),
  ]);
  await Promise.race([sending.all, sleep(DRAIN_MS, undefined, { ref: false })]);
  const drained = await drain(messages);
  await record(cluster, messages, trends, options.seconds * 1_000);
  const { lost, doubled, redelivered } = await messages.audit();
  messages.close();
  const times = messages.times();
  const what = `${options.agents} agents, ${options.seconds} s, ${faults.length} faults`;
  const kinds = [...new Set(faults)].map((name) => `${faults.filter((other) => other === name).length} × ${name}`);
  const note = `${messages.sent} messages, ${redelivered} delivered again, p50 ${milliseconds(quantile(times, 0.5))}, p99 ${milliseconds(quantile(times, 0.99))}; ${kinds.join(', ')}; ${ended} processes ended on their own and were started again; errors of pods: ${fleet.listErrors()}`;
  return [
    atMost(
      'requirement',
      `${what}: messages lost`,
      lost + (drained ? 0 : messages.sent - messages.answered),
      0,
      plain,
      { note },
    ),
    atMost('requirement', `${what}: messages answered twice`, doubled, 0, plain),
    memoryRow(what, trends.memory),
    atMost('goal', `${what}: open files and sockets per hour`, trends.handles.slope(), MAX_HANDLE_SLOPE, plain, {
      note: `${plain(trends.handles.last)} at the end`,
    }),
    atMost('requirement', `${what}: streams and consumers per hour`, trends.assets.slope(), 1, plain, {
      note: `${plain(trends.assets.last)} at the end`,
    }),
    atMost('requirement', `${what}: messages that wait at the end`, trends.waiting.last, 0, plain),
  ];
}

function memoryRow(what: string, memory: Trends['memory']): Row {
  const slope = ROLES.reduce((sum, role) => sum + memory[role].slope(), 0);
  const each = ROLES.map((role) => `${role} ${mebibytes(memory[role].slope())} to ${mebibytes(memory[role].last)}`);
  return atMost('goal', `${what}: memory per hour`, slope, MAX_MEMORY_SLOPE, mebibytes, { note: each.join(', ') });
}

/** Returns the names of the faults that were caused, and how many processes ended on their own. */
async function causeFaults(cluster: ScaleCluster, { faultSeconds, kills }: SoakOptions, end: AbortSignal) {
  const faults = FAULTS.filter((fault) => kills || fault.kills !== true);
  const names: string[] = [];
  let ended = 0;
  for (let round = 0; !end.aborted; round += 1) {
    await sleep(faultSeconds * 1_000, undefined, { signal: end }).catch(() => undefined);
    const fault = faults[round % faults.length];
    if (end.aborted || fault === undefined) break;
    names.push(fault.name);
    ended += await cluster.restartEnded();
    await fault.cause(cluster, round);
  }
  ended += await cluster.restartEnded();
  return { names, ended };
}

/** Sends at the rate until the signal aborts. Resolves to the end of the messages that are being sent then. */
async function sendMessages(cluster: ScaleCluster, messages: UserMessages, rate: number, end: AbortSignal) {
  const agents = cluster.boundAgents();
  const sending: Promise<void>[] = [];
  const stop = AbortSignal.any([]);
  for (let index = 0; !end.aborted; index += 1) {
    const { namespace = '', name = '' } = agents[(index * 7_919) % agents.length] ?? {};
    sending.push(messages.send(namespace, name, stop));
    await sleep(1_000 / rate, undefined, { signal: end }).catch(() => undefined);
  }
  return { all: Promise.all(sending) };
}

async function drain(messages: UserMessages): Promise<boolean> {
  try {
    await poll('an answer to each message', () => messages.answered === messages.sent, { timeoutMs: DRAIN_MS });
    return true;
  } catch {
    return false;
  }
}

async function sample(cluster: ScaleCluster, messages: UserMessages, trends: Trends, end: AbortSignal): Promise<void> {
  const start = performance.now();
  while (!end.aborted) {
    await sleep(SAMPLE_MS, undefined, { signal: end }).catch(() => undefined);
    // A killed process is counted again when it runs.
    await record(cluster, messages, trends, performance.now() - start).catch(() => undefined);
  }
}

async function record(cluster: ScaleCluster, messages: UserMessages, trends: Trends, at: number): Promise<void> {
  const pids: Record<Role, number[]> = {
    operator: [cluster.operator.pid],
    gateways: cluster.gateways.map(({ pid }) => pid),
    NATS: cluster.nats.pids,
  };
  const { streams, consumers } = await cluster.nats.usage();
  const sum = (of: readonly number[], measure: (pid: number) => number) =>
    of.reduce((total, pid) => total + measure(pid), 0);
  const bytes = ROLES.map((role) => sum(pids[role], residentBytes));
  const handles = sum(Object.values(pids).flat(), (pid) => readdirSync(`/proc/${pid}/fd`).length);
  for (const [index, role] of ROLES.entries()) trends.memory[role].add(at, bytes[index] ?? 0);
  trends.handles.add(at, handles);
  trends.assets.add(at, streams + consumers);
  trends.waiting.add(at, messages.sent - messages.answered);
}
