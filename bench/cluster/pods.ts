import { setTimeout as sleep } from 'node:timers/promises';
import { createKubeClient } from '../../src/kube/client/http-kube-client.ts';
import { loadClusterAccess } from '../../src/kube/client/cluster-access.ts';
import { createTransport } from '../../src/kube/client/transport.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { type InstalledCluster, startInstalledCluster } from '../../test/e2e/support/installed-cluster.ts';
import { namespaceObject } from '../../test/e2e/support/fixture.ts';
import { quantile } from '../baseline/baseline.ts';
import { type Api, createAgent, readyPods, runningAgents } from './support/agents.ts';
import { idleMemory } from './memory.ts';
import { atMost, milliseconds, type Row, seconds } from './row.ts';
import { benchWakes, TOOL_SCRIPT, WAKE_NAMESPACES } from './wakes.ts';
import { NO_METRICS } from '../../test/support/stubs.ts';
import { buildTrustPolicy } from '../../test/support/builders.ts';

const MAX_SAMPLES = 20;
const COLD = 'cold';
const WARM = 'warm';
const MODEL = { model: { primary: 'default/default' } };
const COLD_LIMIT = 1_500;
const WARM_LIMIT = 250;
/** The time in which a newly ready pod still uses the processor. */
const QUIET_MS = 2_000;

/**
 * The time from the creation of an Agent to Ready on a real node, one agent at a time; from a message that wakes an agent to the first tool
 * result; and the memory of idle pods. `count` is the number of agents and wakes, at most 20.
 */
export async function benchPods(count: number): Promise<Row[]> {
  const samples = Math.min(count, MAX_SAMPLES);
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    return [{ kind: 'reference', what: 'agents on real pods', value: 'not measured: needs root on Linux' }];
  }
  await using cluster = await startInstalledCluster(
    '--set-json',
    `sandboxClasses=${JSON.stringify([aClass()])}`,
    '--set-literal',
    `replay.script=${JSON.stringify(TOOL_SCRIPT)}`,
  );
  const wakes = await benchWakes(cluster, samples);
  const access = await loadClusterAccess({ kind: 'file', path: cluster.node.kubeconfig }, systemClock);
  await using transport = createTransport({ access, clock: systemClock, metrics: NO_METRICS });
  const api = { transport, client: createKubeClient(transport) };
  await createNamespaces(cluster);
  const cold = await creationTimes(api, COLD, samples, () => sleep(QUIET_MS));
  await using pods = await readyPods(api, WARM);
  // Wait for the pods of the previous agents and for the warm pod of the pool.
  const warm = await creationTimes(api, WARM, samples, async (before) => {
    await pods.waitForCount(before + 1);
    await sleep(QUIET_MS);
  });
  return [
    row('real pods: agent created → Ready, cold, image present, p50', cold, COLD_LIMIT, seconds, 1_000),
    row('real pods: warm claim, p50', warm, WARM_LIMIT, milliseconds),
    ...wakes,
    ...(await idleMemory(cluster, WARM)),
  ];
}

function aClass() {
  const resources = { cpu: '10m', cpuLimit: '1', memory: '192Mi', ephemeralStorage: '64Mi' };
  return {
    name: 'standard',
    resources,
    workspace: '64Mi',
    pool: [WARM, WAKE_NAMESPACES.warm].map((namespace) => ({ namespace, size: 1 })),
  };
}

async function createNamespaces(cluster: InstalledCluster): Promise<void> {
  for (const namespace of [COLD, WARM]) {
    await cluster.apply(namespaceObject(namespace), buildTrustPolicy(namespace));
  }
}

/** Milliseconds per agent. The first agent includes one-time setup and is not measured. */
async function creationTimes(
  api: Api,
  namespace: string,
  count: number,
  rest: (before: number) => Promise<unknown>,
): Promise<number[]> {
  await using running = await runningAgents(api, namespace);
  const times: number[] = [];
  for (let index = 0; index <= count; index += 1) {
    await rest(index);
    times.push(await createAgent(api, running, namespace, `agent-${index}`, MODEL));
  }
  return times.slice(1);
}

function row(what: string, times: number[], limit: number, show: (value: number) => string, unit = 1): Row {
  const [p50 = 0, p90 = 0, p99 = 0] = [0.5, 0.9, 0.99].map((share) => quantile(times, share) / unit);
  const note = `p90 ${show(p90)}, p99 ${show(p99)}; ${times.length} agents, one at a time, the whole cluster on this machine`;
  return atMost('goal', what, p50, limit / unit, show, { note });
}
