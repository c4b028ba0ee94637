import { setTimeout as sleep } from 'node:timers/promises';
import { NUMBERS_INTERVAL_MS } from '../../src/operator/agent/deferral/status-throttle.ts';
import { TYPES } from '../../src/operator/kube/types.ts';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { poll } from '../../test/support/poll.ts';
import { quantile } from '../baseline/baseline.ts';
import { measureQuiet, type Profiling, restart } from './idle.ts';
import { observeCalls } from './support/operator-calls.ts';
import { runAtRate, type Times } from './support/agents.ts';
import type { LoadReport } from './support/load.ts';
import { residentBytes } from './support/processes.ts';
import { type EventLoopReport, measureEventLoop } from './scale/event-loop.ts';
import { PodFleet } from './scale/pods/pod-fleet.ts';
import { ScaleCluster } from './scale/scale-cluster.ts';
import { trustedAuthority } from './scale/pods/simulated-pod.ts';
import { UserMessages } from './scale/user-messages.ts';
import { atMost, mebibytes, milliseconds, plain, type Row, seconds } from './row.ts';

const MEBIBYTE = 1_048_576;
const OPERATOR_LIMIT = 364 * MEBIBYTE;
const GATEWAY_LIMIT = 400 * MEBIBYTE;
const MAX_ASSETS = 20;
const RESTART_SECONDS = 30;
const EDIT_SECONDS = 2;
const EDIT_PIECE_MS = 50;
const QUIET_PERCENT = 5;
const CREATE_CONCURRENCY = 20;
const SETTLE_MS = 30_000;
const TIMEOUT_MS = 900_000;

export interface ScaleOptions {
  readonly agents: number;
  readonly namespaces: number;
  readonly gateways: number;
  /** Messages that users send per second. */
  readonly rate: number;
  readonly quietSeconds: number;
  readonly profile: Profiling;
}

interface Bench {
  readonly cluster: ScaleCluster;
  readonly fleet: PodFleet;
  readonly messages: UserMessages;
  readonly options: ScaleOptions;
  readonly measure: () => () => LoadReport;
}

/** Many agents whose pods poll several gateways, on three NATS servers: messages, memory, a restart, an edit of every policy, rest. */
export async function* benchAgentsAtScale(options: ScaleOptions): AsyncGenerator<Row[]> {
  const { agents, namespaces, gateways, profile } = options;
  await using cluster = await ScaleCluster.open(namespaces);
  const empty = await cluster.operator.memory();
  await cluster.startGateways(gateways);
  const created = await cluster.createAgents(agents, CREATE_CONCURRENCY);
  const what = `${agents} agents in ${namespaces} namespaces`;
  yield [createdRow(created, what)];
  await sleep(SETTLE_MS);
  const idle = await cluster.nats.usage();
  const secureContext = trustedAuthority(cluster.authority);
  const messages = await UserMessages.open(cluster, secureContext);
  await using fleet = await PodFleet.start(cluster, messages);
  const measure = () => cluster.kube.measureProcesses(serversOf(cluster));
  const bench = { cluster, fleet, messages, options, measure };
  yield await measureMessages(bench, what);
  yield await measureAssets(bench, what, idle);
  yield await measureMemory(bench, what, empty.heap);
  await writtenCounts(cluster);
  yield await measureEdit(bench, what);
  const { quietSeconds } = options;
  const quiet = { cluster: cluster.kube, agents, quietSeconds, profile, maxCpuPercent: QUIET_PERCENT };
  const endLoad = measure();
  yield await measureQuiet(quiet, cluster.operator);
  yield [gatewayLoad(endLoad(), what, gateways)];
  const restarted = await restart(
    { ...quiet, maxSeconds: RESTART_SECONDS, start: () => cluster.startOperator() },
    cluster.operator,
  );
  messages.close();
  yield restarted.rows;
}

function createdRow({ each, all }: Times, what: string): Row {
  const note = `p50 ${milliseconds(quantile(each, 0.5))}, p99 ${milliseconds(quantile(each, 0.99))}, ${CREATE_CONCURRENCY} in flight`;
  return { what: `${what}: created`, kind: 'reference', value: `${((each.length * 1_000) / all).toFixed(0)}/s`, note };
}

function serversOf({ operator, gateways, nats }: ScaleCluster): [string, number][] {
  return [
    ['operator', operator.pid],
    ...gateways.map(({ pid }, index): [string, number] => [`gateway ${index}`, pid]),
    ...nats.pids.map((pid, index): [string, number] => [`NATS ${index}`, pid]),
  ];
}

/** One message to each agent. */
async function measureMessages({ cluster, fleet, messages, options, measure }: Bench, what: string): Promise<Row[]> {
  const agents = cluster.boundAgents();
  const endLoad = measure();
  const stop = AbortSignal.timeout(TIMEOUT_MS);
  await runAtRate(agents.length, options.rate, async (index) => {
    const { namespace = '', name = '' } = agents[index] ?? {};
    await messages.send(namespace, name, stop);
    return 0;
  });
  await poll('an answer to each message', () => messages.answered === agents.length, { timeoutMs: TIMEOUT_MS });
  const spent = endLoad();
  const { lost, doubled, redelivered } = await messages.audit();
  const times = messages.times();
  const errors = fleet.listErrors();
  const note = `${redelivered} delivered again${errors === '' ? '' : `; errors of requests: ${errors}`}`;
  const time = `p99 ${milliseconds(quantile(times, 0.99))}, ${options.rate} messages per second`;
  return [
    atMost('requirement', `${what}: messages without exactly one reply`, lost + doubled, 0, plain, { spent, note }),
    {
      what: `${what}: message to acknowledged reply, p50`,
      kind: 'reference',
      value: milliseconds(quantile(times, 0.5)),
      note: time,
    },
  ];
}

async function measureAssets(
  { cluster }: Bench,
  what: string,
  before: { streams: number; consumers: number },
): Promise<Row[]> {
  const { streams, consumers, bytes } = await cluster.nats.usage();
  const note = `${streams} streams and ${consumers} consumers, ${before.streams} and ${before.consumers} before the first message; memory of the servers ${mebibytes(bytes)}`;
  return [atMost('requirement', `${what}: Raft groups`, streams + consumers, MAX_ASSETS, plain, { note })];
}

async function measureMemory({ cluster, options }: Bench, what: string, emptyHeap: number): Promise<Row[]> {
  const before = residentBytes(cluster.operator.pid);
  const operator = await cluster.operator.memory();
  const gateways = cluster.gateways.map(({ pid }) => residentBytes(pid));
  const collected = await Promise.all(cluster.gateways.map((gateway) => gateway.memory()));
  const pods = Math.ceil(options.agents / options.gateways);
  const each = ((operator.heap - emptyHeap) / options.agents / 1_024).toFixed(1);
  const operatorNote = `after a garbage collection ${mebibytes(operator.resident)}, of which heap ${mebibytes(operator.heap)}; ${each} KiB of heap per agent`;
  const gatewayNote = `after a garbage collection ${mebibytes(Math.max(...collected.map(({ resident }) => resident)))}, of which heap ${mebibytes(Math.max(...collected.map(({ heap }) => heap)))}`;
  return [
    atMost('goal', `${what}: memory of the operator`, before, OPERATOR_LIMIT, mebibytes, { note: operatorNote }),
    atMost('goal', `${what}: memory of a gateway, ${pods} pods each`, Math.max(...gateways), GATEWAY_LIMIT, mebibytes, {
      note: gatewayNote,
    }),
  ];
}

/**
 * Waits until the operator has written the counts that the messages changed into the statuses. It does so every five minutes at most, for each
 * agent at another time, so their writes would be counted with whatever is measured then.
 */
async function writtenCounts({ kube }: ScaleCluster): Promise<void> {
  await sleep(NUMBERS_INTERVAL_MS);
  const isQuiet = async () => {
    const end = await observeCalls(kube);
    await sleep(SETTLE_MS);
    return (await end()).writes === 0;
  };
  await poll('the last write of a count', isQuiet, { timeoutMs: TIMEOUT_MS });
}

/** Edits every policy at once: the operator reconciles all agents, and the gateways send all assignments again. */
async function measureEdit({ cluster, fleet, options, measure }: Bench, what: string): Promise<Row[]> {
  const { kube, operator, gateways, namespaces } = cluster;
  const reconciles = () => operator.metric('controller_runtime_reconcile_total', { controller: 'agents' });
  const before = await reconciles();
  await using _profile = await options.profile(operator, 'edit');
  const endLoops = await Promise.all([operator, ...gateways].map(measureEventLoop));
  const endLoad = measure();
  const start = performance.now();
  const patch = { spec: { models: { allow: ['openai/*'] } } };
  await Promise.all(
    namespaces.map((namespace) =>
      kube.client.patch(TYPES.trustPolicies, { namespace, name: 'standard' }, patch, NEVER_ABORTED),
    ),
  );
  await fleet.waitForAssignments(options.agents, 2);
  const assigned = (performance.now() - start) / 1_000;
  await operator.waitUntil('done with all agents', async () => {
    return (await reconciles()) - before >= options.agents && (await operator.isReconciled(0));
  });
  const spent = endLoad();
  const [ofOperator, ...ofGateways] = await Promise.all(endLoops.map((end) => end()));
  if (ofOperator === undefined) return [];
  const edit = `${what}, every policy edited`;
  const slowest = ofGateways.toSorted((one, other) => other.longestMs - one.longestMs)[0] ?? ofOperator;
  return [
    atMost('goal', `${edit}: event loop of the operator`, ofOperator.seconds, EDIT_SECONDS, seconds, { spent }),
    pieces(`${edit}: longest piece of the operator`, ofOperator),
    pieces(`${edit}: longest piece of a gateway`, slowest),
    {
      what: `${edit}: until every pod has its assignment`,
      kind: 'reference',
      value: seconds(assigned),
      note: `event loop of the gateways ${ofGateways.map((loop) => seconds(loop.seconds)).join(', ')}`,
    },
  ];
}

/** The cost of pods that poll. */
function gatewayLoad({ cpu, seconds: period, text }: LoadReport, what: string, gateways: number): Row {
  const used = Array.from({ length: gateways }, (_, index) => ((cpu[`gateway ${index}`] ?? 0) * 100) / period);
  const value = used.map((share) => `${share.toFixed(1)} %`).join(', ');
  return { what: `${what}, nothing changing: a core's share of each gateway`, kind: 'reference', value, note: text };
}

function pieces(what: string, { longestMs, longestWallMs }: EventLoopReport): Row {
  const note = `processor time; ${milliseconds(longestWallMs)} by the clock, waits for a processor included`;
  return atMost('goal', what, longestMs, EDIT_PIECE_MS, milliseconds, { note });
}
