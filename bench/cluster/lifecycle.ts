import { setTimeout as sleep } from 'node:timers/promises';
import { quantile } from '../baseline/baseline.ts';
import { type Floor, type Floors, measureFloors } from './floors.ts';
import { createAgent, runConcurrently, runAtRate, readyPods, runningAgents, type Times } from './support/agents.ts';
import { BenchCluster } from './support/bench-cluster.ts';
import type { OperatorProcess } from './support/operator-process.ts';
import { listKinds, observeCalls, type OperatorCalls } from './support/operator-calls.ts';
import { atMost, milliseconds, plain, type Row, times } from './row.ts';
import type { LoadReport } from './support/load.ts';
import { pollValue } from '../../test/support/poll.ts';

const CONCURRENCY = 20;
const PER_SECOND = 20;
const POOL = 100;
/** The agent count in the status of a policy, which is one of the writes, lags by ten seconds. */
const LAG_MS = 12_000;
const POOL_TIMEOUT_MS = 600_000;
const MAX_CHECKS = 20;
/** The agent has a status and an Event besides its pod, and two more hops. */
const MAX_RATIO = 1.6;

/** Measurements of the agents of one namespace from creation to Ready. */
interface LifecycleSample {
  readonly agents: number;
  readonly times: Times;
  readonly calls: OperatorCalls;
  readonly reconciles: number;
  readonly spent: LoadReport;
}

/** Measures writes, conflicts, reconciles and durations from creation to Ready. */
export async function benchLifecycle(
  agents: number,
  profile: (operator: OperatorProcess) => Promise<AsyncDisposable>,
): Promise<Row[]> {
  const warm = { namespace: 'warm', size: POOL };
  await using cluster = await BenchCluster.open(warm);
  const floors = await measureFloors(cluster, agents, CONCURRENCY);
  const operator = await cluster.startOperator();
  await operator.waitUntilReady();
  await cluster.createAgentsNamespace('cold');
  const bench = { cluster, operator };
  await using _profile = await profile(operator);
  const cold = await measureLifecycle(bench, 'cold', agents, (count, one) => runConcurrently(count, CONCURRENCY, one));
  const claims = (count: number, one: (index: number) => Promise<number>) => runAtRate(count, PER_SECOND, one);
  await waitForPool(cluster, warm);
  const claimed = await measureLifecycle(bench, 'warm', agents, claims);
  return [...counts(cold, claimed), ...latencies(floors, cold, claimed)];
}

async function waitForPool(
  cluster: BenchCluster,
  { namespace, size }: { namespace: string; size: number },
): Promise<void> {
  await using pods = await readyPods(cluster, namespace);
  const countRunning = () => pods.list().filter(({ status }) => status?.phase === 'Running').length;
  await pollValue(`a pool of ${size} pods`, countRunning, (count) => count >= size, { timeoutMs: POOL_TIMEOUT_MS });
  await sleep(2_000);
}

async function measureLifecycle(
  { cluster, operator }: { cluster: BenchCluster; operator: OperatorProcess },
  namespace: string,
  agents: number,
  pace: (count: number, one: (index: number) => Promise<number>) => Promise<Times>,
): Promise<LifecycleSample> {
  await using running = await runningAgents(cluster, namespace);
  // The first agent causes the writes that are needed once per namespace.
  await createAgent(cluster, running, namespace, 'first');
  await sleep(LAG_MS);
  const reconciles = () => operator.metric('controller_runtime_reconcile_total', { controller: 'agents' });
  const before = await reconciles();
  const endCalls = await observeCalls(cluster);
  const endLoad = cluster.measure(operator);
  const times = await pace(agents, (index) => createAgent(cluster, running, namespace, `agent-${index}`));
  const spent = endLoad();
  const calls = await waitUntilWritten(endCalls);
  return { agents, times, spent, calls, reconciles: (await reconciles()) - before };
}

/** Events are written one at a time and some time after their cause: waits until the number of writes is stable. */
async function waitUntilWritten(soFar: () => Promise<OperatorCalls>): Promise<OperatorCalls> {
  const own = ({ writes, policyStatusWrites: folds }: OperatorCalls) => writes - folds;
  let before = await soFar();
  for (let check = 0; check < MAX_CHECKS; check += 1) {
    await sleep(LAG_MS);
    const now = await soFar();
    if (own(now) === own(before)) return now;
    before = now;
  }
  throw new Error('the operator does not stop writing');
}

function counts(cold: LifecycleSample, claimed: LifecycleSample): Row[] {
  const all = [cold, claimed];
  const agents = all.reduce((sum, { agents: count }) => sum + count, 0);
  const conflicts = all.reduce((sum, { calls }) => sum + calls.conflicts, 0);
  // Policy status writes are excluded: one write per ten seconds covers all agents. The note shows them.
  const each = ({ calls, agents: count }: LifecycleSample) => (calls.writes - calls.policyStatusWrites) / count;
  const kinds = ({ calls, spent }: LifecycleSample) => ({ spent, note: `${listKinds(calls)}.` });
  return [
    atMost('requirement', `writes per agent, cold (${cold.agents} agents)`, each(cold), 3, plain, kinds(cold)),
    atMost(
      'requirement',
      `writes per agent, warm with refill (${claimed.agents})`,
      each(claimed),
      3,
      plain,
      kinds(claimed),
    ),
    atMost('requirement', 'conflicts per 1,000 agents', (conflicts * 1_000) / agents, 5, plain),
    atMost('requirement', 'reconciles per agent, cold', cold.reconciles / cold.agents, 6, plain),
    atMost('requirement', 'reconciles per agent, warm', claimed.reconciles / claimed.agents, 6, plain),
  ];
}

function latencies({ agentPods, smallPods }: Floors, cold: LifecycleSample, claimed: LifecycleSample): Row[] {
  const p = ({ each }: Times, share: number) => quantile(each, share);
  const all = (times: Times) =>
    `p50/p90/p99 ${[0.5, 0.9, 0.99].map((share) => p(times, share).toFixed(0)).join('/')} ms`;
  const rate = ({ each, all: whole }: Times) => (each.length * 1_000) / whole;
  const floor = (what: string, { times, spent }: Floor): Row => ({
    kind: 'reference',
    what: `${what} → Ready without operator, ${CONCURRENCY} in flight`,
    value: `${all(times)}, ${rate(times).toFixed(0)}/s`,
    spent,
  });
  const slower = p(cold.times, 0.5) / p(agentPods.times, 0.5);
  const spent = { spent: cold.spent, note: `${all(cold.times)}, ${rate(cold.times).toFixed(0)}/s` };
  return [
    floor('pod of an agent, account and admission policies of the operator', agentPods),
    floor('pod of one container without a volume, as administrator', smallPods),
    atMost('goal', 'agent created → Ready, cold, p50 relative to its pod alone', slower, MAX_RATIO, times, spent),
    atMost('goal', `warm claim at ${PER_SECOND}/s, p50`, p(claimed.times, 0.5), 50, milliseconds, {
      spent: claimed.spent,
      note: all(claimed.times),
    }),
    atMost('goal', `warm claim at ${PER_SECOND}/s, p99`, p(claimed.times, 0.99), 150, milliseconds),
  ];
}
