import { setTimeout as sleep } from 'node:timers/promises';
import { NAMESPACE_OBJECTS } from '../../src/api/cluster.ts';
import { podTemplate } from '../../src/operator/agent/pod-template.ts';
import { TYPES } from '../../src/operator/kube-types.ts';
import { quantile } from '../beside-bare.ts';
import { createAgent, inFlight, atRate, readyPods, runningAgents, type Times } from './agents.ts';
import { Installation } from './installation.ts';
import type { OperatorProcess } from './operator-process.ts';
import { listKinds, observeCalls, type OperatorCalls } from './operator-calls.ts';
import { atMost, milliseconds, plain, type Row } from './row.ts';
import type { Spent } from './load.ts';

const NOBODY = new AbortController().signal;
const AT_ONCE = 20;
const PER_SECOND = 20;
const POOL = 100;
/** The count of agents in a policy's status lags by ten seconds; it is one of the writes. */
const LAG_MS = 12_000;
const LOOKS = 20;

/** What was seen of the agents of one namespace from created to Ready. */
interface Life {
  readonly agents: number;
  readonly times: Times;
  readonly calls: OperatorCalls;
  readonly reconciles: number;
  readonly spent: Spent;
}

/** Writes, conflicts and reconciles from created to Ready, and how long it takes. */
export async function benchLife(
  agents: number,
  profile: (operator: OperatorProcess) => Promise<AsyncDisposable>,
): Promise<Row[]> {
  const warm = { namespace: 'warm', size: POOL };
  await using installation = await Installation.open(warm);
  const floor = await barePods(installation, agents);
  const operator = await installation.startOperator();
  await operator.ready();
  await installation.agentsNamespace('cold');
  const bench = { installation, operator };
  await using _profile = await profile(operator);
  const cold = await life(bench, 'cold', agents, (count, one) => inFlight(count, AT_ONCE, one));
  const claims = (count: number, one: (index: number) => Promise<number>) => atRate(count, PER_SECOND, one);
  await pooled(installation, warm);
  const claimed = await life(bench, 'warm', agents, claims);
  return [...counts(cold, claimed), ...latencies(floor, cold, claimed)];
}

async function pooled(
  installation: Installation,
  { namespace, size }: { namespace: string; size: number },
): Promise<void> {
  await using pods = await readyPods(installation, namespace);
  const isUp = () => pods.list().filter(({ status }) => status?.phase === 'Running').length >= size;
  while (!isUp()) await sleep(50);
  await sleep(2_000);
}

async function life(
  { installation, operator }: { installation: Installation; operator: OperatorProcess },
  namespace: string,
  agents: number,
  pace: (count: number, one: (index: number) => Promise<number>) => Promise<Times>,
): Promise<Life> {
  await using running = await runningAgents(installation, namespace);
  // What is made once for a namespace is not an agent's.
  await createAgent(installation, running, namespace, 'first');
  await sleep(LAG_MS);
  const reconciles = () => operator.metric('controller_runtime_reconcile_total', { controller: 'agents' });
  const before = await reconciles();
  const endCalls = await observeCalls(installation);
  const endLoad = installation.measure(operator);
  const times = await pace(agents, (index) => createAgent(installation, running, namespace, `agent-${index}`));
  const spent = endLoad();
  const calls = await whenWritten(endCalls);
  return { agents, times, spent, calls, reconciles: (await reconciles()) - before };
}

/** Events are written one after the other, some time after what they tell of. */
async function whenWritten(soFar: () => Promise<OperatorCalls>): Promise<OperatorCalls> {
  const own = ({ writes, folds }: OperatorCalls) => writes - folds;
  let before = await soFar();
  for (let look = 0; look < LOOKS; look += 1) {
    await sleep(LAG_MS);
    const now = await soFar();
    if (own(now) === own(before)) return now;
    before = now;
  }
  throw new Error('the operator does not cease to write');
}

/** The same pods made by hand, without an operator: what API server, scheduler and fake nodes take by themselves. */
async function barePods(installation: Installation, count: number): Promise<Life['times'] & { spent: Spent }> {
  const { client, plane, config } = installation;
  const [standard] = config?.sandboxClasses ?? [];
  if (config === undefined || standard === undefined) throw new Error('the chart has no sandbox class');
  const { spec } = podTemplate(config, standard);
  const namespace = 'floor';
  for (const [path, object] of [
    ['/api/v1/namespaces', { kind: 'Namespace', metadata: { name: namespace } }],
    [
      `/api/v1/namespaces/${namespace}/serviceaccounts`,
      { kind: 'ServiceAccount', metadata: { name: NAMESPACE_OBJECTS.agentServiceAccount } },
    ],
  ] as const) {
    const { status } = await plane.admin.call('POST', path, { body: { apiVersion: 'v1', ...object } });
    if (status !== 201) throw new Error(`${path}: ${status}`);
  }
  await using ready = await readyPods(installation, namespace);
  const one = (index: number) => {
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: `pod-${index}`, namespace }, spec };
    return ready.timed(pod, () => client.create(TYPES.pods, pod, NOBODY));
  };
  // The first ones pay for what is set up once.
  await inFlight(AT_ONCE, AT_ONCE, (index) => one(count + index));
  const endLoad = installation.measure();
  const times = await inFlight(count, AT_ONCE, one);
  return { ...times, spent: endLoad() };
}

function counts(cold: Life, claimed: Life): Row[] {
  const all = [cold, claimed];
  const agents = all.reduce((sum, { agents: count }) => sum + count, 0);
  const conflicts = all.reduce((sum, { calls }) => sum + calls.conflicts, 0);
  // A policy's status is no agent's: one write in ten seconds for all of them; it stands in the note.
  const each = ({ calls, agents: count }: Life) => (calls.writes - calls.folds) / count;
  const kinds = ({ calls, spent }: Life) => ({ spent, note: `${listKinds(calls)}.` });
  return [
    atMost('requirement', `writes per agent, cold (${cold.agents} agents)`, each(cold), 5, plain, kinds(cold)),
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

function latencies(floor: Times & { spent: Spent }, cold: Life, claimed: Life): Row[] {
  const p = ({ each }: Times, share: number) => quantile(each, share);
  const all = (times: Times) =>
    `p50/p90/p99 ${[0.5, 0.9, 0.99].map((share) => p(times, share).toFixed(0)).join('/')} ms`;
  const rate = ({ each, all: whole }: Times) => (each.length * 1_000) / whole;
  const perSecond = (value: number) => `${value.toFixed(0)}/s`;
  const ratio = (p(cold.times, 0.5) / p(floor, 0.5)).toFixed(2);
  const own = `${all(cold.times)}; ${ratio} × a bare pod at p50`;
  return [
    {
      kind: 'beside',
      what: `bare pod → Ready without operator, ${AT_ONCE} in flight`,
      value: `${all(floor)}, ${perSecond(rate(floor))}`,
      spent: floor.spent,
    },
    atMost('goal', `agent created → Ready, cold, ${AT_ONCE} in flight, p50`, p(cold.times, 0.5), 250, milliseconds, {
      spent: cold.spent,
      note: own,
    }),
    {
      kind: 'goal',
      what: 'agents per second, cold',
      value: perSecond(rate(cold.times)),
      limit: '≥ 90/s',
      met: rate(cold.times) >= 90,
    },
    atMost('goal', `warm claim at ${PER_SECOND}/s, p50`, p(claimed.times, 0.5), 50, milliseconds, {
      spent: claimed.spent,
      note: all(claimed.times),
    }),
    atMost('goal', `warm claim at ${PER_SECOND}/s, p99`, p(claimed.times, 0.99), 150, milliseconds),
  ];
}
