import type { Profiling } from './idle.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { TYPES } from '../../src/operator/kube/types.ts';
import { isJsonObject, parseUntrustedJson } from '../../src/lib/json.ts';
import type { JetStreamConnection } from '../../src/nats/connection/connection.ts';
import { STREAMS } from '../../src/nats/jetstream/names.ts';
import { EVERY_SUBJECT, readMessages } from '../../src/nats/jetstream/stream-reader.ts';
import { buildAgent } from '../../test/support/builders.ts';
import { startNatsFixture } from '../../test/support/nats/nats-fixture.ts';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { quantile } from '../baseline/baseline.ts';
import { runConcurrently, runningAgents } from './support/agents.ts';
import { BenchCluster } from './support/bench-cluster.ts';
import type { LoadReport } from './support/load.ts';
import { listKinds, observeCalls, type OperatorCalls } from './support/operator-calls.ts';
import { OperatorReplicas } from './support/operator-replicas.ts';
import type { OperatorProcess } from './support/operator-process.ts';
import { requestRow, type Timing, timings, timingsSince } from './support/request-row.ts';
import { atMost, plain, type Row, seconds } from './row.ts';

const NAMESPACE = 'team-a';
const CONCURRENCY = 50;
const REPLICAS = 2;
const MINUTE_MS = 60_000;
/** From the last schedule that was set until the first run: the operator reads it, and stores when its first run is due. */
const AHEAD_MS = 15_000;
/** The leader is killed so long after the start of the minute, between two due times. */
const CRASH_MS = 30_500;
/** The longest time after the minute until every run is stored. */
const AFTER_MS = 60_000;
/** A run that starts twice starts again soon after the next leader has read it. */
const SETTLE_MS = 10_000;
const POLL_MS = 2_000;
const GOAL_SECONDS = 1;
const CRASH_SECONDS = 20;

/** One message of a run: of which agent, due when, and stored when, in epoch milliseconds. */
interface Run {
  readonly agent: number;
  readonly due: number;
  readonly stored: number;
}

/** What the first leader did from the start of the minute until it was killed. */
interface FirstHalf {
  readonly requests: readonly Timing[];
  readonly calls: OperatorCalls;
  readonly spent: LoadReport;
  readonly killedAt: number;
}

/** All agents have one run in the same minute, in whose middle the leader is killed. No pod works on it, so an agent has one run only. */
export async function benchSchedules(agents: number, profiling: Profiling): Promise<Row[]> {
  const nats = await startNatsFixture();
  await using cluster = await BenchCluster.open(undefined, async () => nats);
  await cluster.createAgentsNamespace(NAMESPACE);
  await using operators = await OperatorReplicas.start(cluster, REPLICAS);
  await operators.leader();
  const minute = await schedule(cluster, agents);
  const connection = await nats.connect('gateway');
  const leader = await operators.leader();
  await sleep(minute - Date.now());
  const restarts = operators.restarts;
  const first = await crash(cluster, leader, minute, profiling);
  const endLoad = cluster.measure();
  const found = await allRuns(connection, agents, minute + MINUTE_MS + AFTER_MS);
  const crashes = operators.restarts - restarts;
  return rowsOf(found, { agents, minute, first, crashes, spent: endLoad() });
}

/** Gives each running agent one run in a minute that follows, at a second of its own. Returns when the minute starts. */
async function schedule(cluster: BenchCluster, agents: number): Promise<number> {
  const { client } = cluster;
  await using running = await runningAgents(cluster, NAMESPACE);
  const created = await runConcurrently(agents, CONCURRENCY, (index) => {
    const agent = buildAgent(NAMESPACE, nameOf(index));
    return running.timeUntilReady(agent, () => client.create(TYPES.agents, agent, NEVER_ABORTED));
  });
  // A change of an agent is less work than its creation. The minute has to be known before the first change.
  const minute = Math.ceil((Date.now() + created.all + AHEAD_MS) / 1_000) * 1_000;
  await runConcurrently(agents, CONCURRENCY, async (index) => {
    const cron = cronOf(new Date(dueOf(index, agents, minute)));
    const spec = { schedule: { mode: 'Periodic', cron, message: `${index} {{time}}` } };
    await client.patch(TYPES.agents, { namespace: NAMESPACE, name: nameOf(index) }, { spec }, NEVER_ABORTED);
    return 0;
  });
  if (Date.now() + AHEAD_MS > minute) throw new Error('the schedules were set too late: use fewer agents');
  return minute;
}

async function crash(
  cluster: BenchCluster,
  leader: OperatorProcess,
  minute: number,
  profiling: Profiling,
): Promise<FirstHalf> {
  const requestsNow = async () => timings(await leader.metrics(), 'temper_nats_request', 'operation');
  const before = await requestsNow();
  const endCalls = await observeCalls(cluster);
  const endLoad = cluster.measure(leader);
  {
    await using _profile = await profiling(leader);
    await sleep(minute + CRASH_MS - Date.now());
  }
  const requests = timingsSince(before, await requestsNow());
  const spent = endLoad();
  await leader.end('SIGKILL');
  const killedAt = Date.now();
  return { requests, calls: await endCalls(), spent, killedAt };
}

/** Waits until each agent has a run, and for those that start twice. */
async function allRuns(connection: JetStreamConnection, agents: number, until: number): Promise<Run[]> {
  while (Date.now() < until && new Set((await runs(connection)).map(({ agent }) => agent)).size < agents)
    await sleep(POLL_MS);
  await sleep(SETTLE_MS);
  return runs(connection);
}

async function runs(connection: JetStreamConnection): Promise<Run[]> {
  const found: Run[] = [];
  for await (const { data, timestamp } of readMessages(connection, STREAMS.inbox, EVERY_SUBJECT)) {
    const message = parseUntrustedJson(Buffer.from(data).toString('utf8'));
    if (!isJsonObject(message) || message.source !== 'Schedule' || typeof message.text !== 'string') continue;
    const [agent, due = ''] = message.text.split(' ');
    found.push({ agent: Number(agent), due: Date.parse(due), stored: Date.parse(timestamp) });
  }
  return found;
}

interface Measured {
  readonly agents: number;
  readonly minute: number;
  readonly first: FirstHalf;
  /** The replica that was killed, and those that ended because they lost their Lease. */
  readonly crashes: number;
  /** From the crash to the end. */
  readonly spent: LoadReport;
}

function rowsOf(found: readonly Run[], { agents, minute, first, crashes, spent }: Measured): Row[] {
  const { killedAt, requests, calls } = first;
  const onTime = found.filter(({ agent, due }) => due === dueOf(agent, agents, minute));
  const agentsWithRun = new Set(onTime.map(({ agent }) => agent)).size;
  const late = (of: readonly Run[]) => of.map(({ due, stored }) => (stored - due) / 1_000);
  // The leader had the time of the goal for these.
  const isBefore = ({ due }: Run) => due + GOAL_SECONDS * 1_000 <= killedAt;
  const [before, across] = [late(onTime.filter(isBefore)), late(onTime.filter((run) => !isBefore(run)))];
  const started = found.filter(({ stored }) => stored < killedAt).length;
  const what = `${agents} schedules due in one minute`;
  const note = `p50 ${seconds(quantile(before, 0.5))}, last ${seconds(Math.max(...before))}`;
  const p99 = quantile(before, 0.99);
  return [
    atMost('requirement', `${what}: missed`, agents - agentsWithRun, 0, plain, { spent: first.spent }),
    atMost('requirement', `${what}: started twice`, found.length - agentsWithRun, 0, plain),
    atMost('goal', `${what}: in the inbox after the due time, p99`, p99, GOAL_SECONDS, seconds, { note }),
    atMost(
      'requirement',
      `${what}: the last one across a crash of the leader`,
      Math.max(...across),
      CRASH_SECONDS,
      seconds,
      {
        spent,
        note: `p50 ${seconds(quantile(across, 0.5))} of ${across.length} runs; operators that ended: ${crashes}`,
      },
    ),
    requestRow('requests to NATS per run that starts', requests, started),
    {
      kind: 'reference',
      what: 'writes to the API server per run that starts',
      value: plain(calls.writes / started),
      note: listKinds(calls),
    },
  ];
}

function nameOf(index: number): string {
  return `agent-${index}`;
}

/** The runs are spread over the seconds of the minute. */
function dueOf(index: number, agents: number, minute: number): number {
  return minute + Math.floor((index * 60) / agents) * 1_000;
}

function cronOf(due: Date): string {
  const time = [due.getUTCSeconds(), due.getUTCMinutes(), due.getUTCHours(), due.getUTCDate(), due.getUTCMonth() + 1];
  return `${time.join(' ')} *`;
}
