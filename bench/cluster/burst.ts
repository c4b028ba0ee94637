import { buildAgent } from '../../test/support/builders.ts';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { TYPES } from '../../src/operator/kube/types.ts';
import { quantile } from '../baseline/baseline.ts';
import { runConcurrently, runningAgents } from './support/agents.ts';
import { BenchCluster } from './support/bench-cluster.ts';
import { listKinds, observeCalls } from './support/operator-calls.ts';
import { residentBytes } from './support/processes.ts';
import { atMost, mebibytes, plain, type Row, seconds } from './row.ts';

const CREATE_CONCURRENCY = 100;
const NAMESPACE_CONCURRENCY = 10;

export interface BurstOptions {
  readonly agents: number;
  readonly namespaces: number;
}

/** Creates all agents of an organisation at once, in namespaces in which no agent has run before. */
export async function benchBurst({ agents, namespaces }: BurstOptions): Promise<Row[]> {
  await using cluster = await BenchCluster.open();
  const names = Array.from({ length: namespaces }, (_, index) => `team-${index}`);
  await runConcurrently(namespaces, NAMESPACE_CONCURRENCY, async (index) => {
    await cluster.createAgentsNamespace(names[index] ?? '');
    return 0;
  });
  const operator = await cluster.startOperator();
  await operator.waitUntilReady();
  await using running = await runningAgents(cluster);
  const endCalls = await observeCalls(cluster);
  const endLoad = cluster.measure(operator);
  const start = performance.now();
  const ready: Promise<number>[] = [];
  await runConcurrently(agents, CREATE_CONCURRENCY, async (index) => {
    const agent = buildAgent(names[index % namespaces] ?? '', `agent-${Math.floor(index / namespaces)}`);
    const created = Promise.withResolvers<void>();
    const create = () =>
      cluster.client.create(TYPES.agents, agent, NEVER_ABORTED).then(() => created.resolve(), created.reject);
    const waiting = running.timeUntilReady(agent, create);
    // Counted below.
    waiting.catch(() => undefined);
    ready.push(waiting);
    await created.promise;
    return 0;
  });
  const created = (performance.now() - start) / 1_000;
  const results = await Promise.allSettled(ready);
  const all = (performance.now() - start) / 1_000;
  const spent = endLoad();
  const calls = await endCalls();
  const times = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value / 1_000] : []));
  const restarts = (operator.hasEnded ? 1 : 0) + ((await operator.isLeading()) ? 0 : 1);
  const surplus = (calls.byKind['create pods'] ?? 0) + (calls.byKind['delete pods'] ?? 0) - agents;
  const what = `${agents} agents in ${namespaces} namespaces at once`;
  const note = `created within ${seconds(created)}; each p50 ${seconds(quantile(times, 0.5))}, p99 ${seconds(quantile(times, 0.99))}`;
  return [
    atMost('requirement', `${what}: not Ready`, agents - times.length, 0, plain, { spent, note }),
    {
      what: `${what}: until the last is Ready`,
      kind: 'reference',
      value: seconds(all),
      note: `${(agents / all).toFixed(0)} agents per second`,
    },
    atMost('requirement', `${what}: pods created again or deleted`, surplus, 0, plain, { note: listKinds(calls) }),
    atMost('requirement', `${what}: operators that ended or lost their Lease`, restarts, 0, plain),
    atMost('requirement', `${what}: conflicts`, calls.conflicts, Math.ceil(agents / 200), plain),
    { what: `${what}: memory of the operator`, kind: 'reference', value: mebibytes(residentBytes(operator.pid)) },
  ];
}
